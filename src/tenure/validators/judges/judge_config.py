"""The judges of the configuration: `[judges.default]`, `kind = "anthropic"`, `model = "…"`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.inputs import check_key


class Answer(NamedTuple):
    text: str
    model: str
    usage: dict[str, int]  # tokens: fresh, cached, written, output; empty where they are unknown
    stderr: str = ""  # of a command: its end, without secrets


class JudgeTransport(Protocol):
    def ask(self, system: str, prompt: str) -> Answer:
        """The answer; raises Undecided where there is none."""


KINDS = ("anthropic", "openai", "command")


class Judge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Literal["anthropic", "openai", "command"]
    model: str = ""
    url: str = ""  # of an endpoint, without the path that its kind adds
    key: str = ""  # the name of the environment variable that has the key; never the key
    argv: tuple[str, ...] = ()  # of a command, which gets the question on stdin
    field: str = ""  # of a command that answers in JSON: the field that has the text
    env: tuple[str, ...] = ()  # names of further variables that a command gets
    timeout: float = limits.JUDGE_TIMEOUT  # seconds
    more: dict[str, Any] = {}  # further fields of the request: `temperature`, `reasoning_effort`, …


def read_judges(section: Mapping[str, Any]) -> dict[str, Judge]:
    """The judges of a `[judges]` section; raises InvalidInput with the path of an error."""
    judges = {}
    for name, given in section.items():
        where = f"judges.{name[:60]}"
        if isinstance(given, Mapping) and "kind" not in given:
            raise InvalidInput(f"{where}.kind is missing", f"set it to one of {', '.join(KINDS)}")
        for key in given if isinstance(given, Mapping) else ():
            check_key(key, Judge.__struct_fields__, where)
        try:
            judge = msgspec.convert(given, Judge)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"{where}: {error}") from None
        if judge.kind == "command" and not (judge.argv and judge.argv[0]):
            raise InvalidInput(f"{where}.argv must be a list of words, the program first")
        if judge.kind != "command" and not judge.model:
            raise InvalidInput(f"{where}.model must name a model")
        if not 0 < judge.timeout <= limits.JUDGE_TIMEOUT_MAX:
            raise InvalidInput(f"{where}.timeout must be more than 0 and at most {limits.JUDGE_TIMEOUT_MAX:.0f} s")
        transport_for(judge)  # refuses an address that is not valid
        judges[name] = judge
    return judges


def transport_for(judge: Judge) -> JudgeTransport:
    if judge.kind == "command":
        from tenure.validators.judges.command import CommandJudge

        return CommandJudge(judge)
    from tenure.validators.judges.endpoints import AnthropicJudge, OpenAIJudge

    return OpenAIJudge(judge) if judge.kind == "openai" else AnthropicJudge(judge)

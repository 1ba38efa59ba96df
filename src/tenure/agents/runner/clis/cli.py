"""The interface of a CLI agent: its program, the arguments to run it without a terminal, a reader of its output."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

from tenure.agents.runner.agent_output import Reader
from tenure.core.errors import TenureError

GENERIC = "generic"  # the type of any command that is not a known agent


class NoProgram(TenureError):
    code = "NO_PROGRAM"


class Start(NamedTuple):
    prompt: str  # path of the file with the prompt, which is also its stdin
    folder: str  # where it works
    beside: str  # prefix of the paths of files that it writes, beside its transcript
    model: str | None = None
    budget: str | None = None  # dollars that it may spend
    extra: tuple[str, ...] = ()  # arguments that the user added
    writable: tuple[str, ...] = ()  # folders outside of `folder` that it must be able to write
    environ: Mapping[str, str] = {}  # in which its own settings are found

    def has(self, *options: str) -> bool:
        """Has the user set one of these options?"""
        return any(word.partition("=")[0] in options for word in self.extra)

    def value(self, *options: str) -> str | None:
        """What the user gave with one of these options."""
        for word, after in pairwise((*self.extra, "")):
            name, has_value, value = word.partition("=")
            if name in options:
                return (value if has_value else after) or None
        return None


class Cli:
    """Subclassed once for each agent."""

    type: str
    program: str
    families: tuple[str, ...] = ()  # how the names of its models begin
    model_variable: str = ""  # environment variable that selects its model; empty where there is none
    tells_cost: bool = True  # its output has dollars, or it uses no model
    tells_model: bool = False  # its output names the models that it used

    def arguments(self, start: Start) -> list[str]:
        """The arguments before the user's."""
        raise NotImplementedError

    def last_words(self) -> list[str]:
        """The arguments after the user's."""
        return []

    def takes(self, model: str) -> bool:
        """Can this agent use that model? Tasks name models of any vendor."""
        return model.lower().startswith(self.families)

    def may_take(self, model: str) -> bool:
        """As `takes`, for a name that somebody else gave: no option of the agent's program is one."""
        from tenure.core.inputs import is_model

        return is_model(model) and self.takes(model)

    def environment(self, start: Start) -> dict[str, str]:
        """Environment variables beside those that every agent gets."""
        return {}

    def reader(self, start: Start) -> Reader:
        raise NotImplementedError

    def own_model(self, start: Start) -> str | None:
        """The model that it will use: the requested one, else that of the CLI's settings; None: not known."""
        return start.model or start.value("--model", "-m") or start.environ.get(self.model_variable) or None

    def command(self, path: str, start: Start) -> list[str]:
        return [path, *self.arguments(start), *start.extra, *self.last_words()]

    def found(self, environ: Mapping[str, str]) -> str:
        """The program's path; NoProgram where it is not installed."""
        path = shutil.which(self.program, path=environ.get("PATH"))
        if path is None:
            from tenure.agents.identity import KNOWN
            from tenure.core.inputs import suggestion

            near = "" if self.program in KNOWN else suggestion(self.program, sorted(KNOWN))
            raise NoProgram(
                f"{self.program} is not installed, or not on the PATH{near}",
                "install it, or name another with --agent",
            )
        return path

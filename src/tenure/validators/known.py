"""The validators by the name in an output contract's `validation`.

Third parties add one with an entry point in the group `tenure.validators`: a callable () → Validator, under its name.
The group is looked up only for other names. `none` and `review` need no validator: the first checks nothing, the
second waits for a person.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tenure.core.errors import InvalidInput
from tenure.core.inputs import suggestion

if TYPE_CHECKING:
    from tenure.validators.commands import Command
    from tenure.validators.judges.judge_config import Judge
    from tenure.validators.port import Validator

GROUP = "tenure.validators"
NAMES = ("json-schema", "regex", "test-pass", "llm-judge")
QUICK = ("json-schema", "regex")  # run before the submission's transaction


def validator(
    name: str,
    *,
    commands: Mapping[str, Command] | None = None,
    judges: Mapping[str, Judge] | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> Validator:
    """The validator of that name. `commands` and `judges`: trusted ones only; see `trust`.

    Without them only the form of contracts is checked: the machine that runs the command knows it. `is_wanted` is
    asked during long checks.
    """
    if name == "json-schema":
        from tenure.validators.schemas import JsonSchema

        return JsonSchema()
    if name == "regex":
        from tenure.validators.patterns import Regex

        return Regex()
    if name == "test-pass":
        from tenure.validators.commands import TestPass

        return TestPass(commands, is_wanted)
    if name == "llm-judge":
        from tenure.validators.llm_judge import LlmJudge

        return LlmJudge(judges)
    return _of_third_party(name)


def names() -> tuple[str, ...]:
    """All known names, those of plug-ins last."""
    from importlib.metadata import entry_points

    return tuple(dict.fromkeys((*NAMES, *sorted(entry.name for entry in entry_points(group=GROUP)))))


def _of_third_party(name: str) -> Validator:
    from importlib.metadata import entry_points

    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in known:
        all_names = (*NAMES, *sorted(known))
        raise InvalidInput(
            f"unknown validator {name[:60]!r}{suggestion(name, all_names)}", f"valid: {', '.join(all_names)}"
        )
    made: Validator = known[name].load()()
    return made

"""What a tool answers: a value for programs, a text for models; each says all of it.

Agents show their model one or the other: Claude Code and Codex the structured value, Gemini CLI and OpenCode the text
(so does Claude Code where the call failed), Copilot CLI both. So neither may lean on the other, and both stay short:
the value has the shape of `--json` without the book-keeping that no holder needs, and `next`, the way on; the text is
that value, a line a field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tenure.agents.quotations import as_json
from tenure.client.wire import outcome_value, plain
from tenure.core.errors import TenureError
from tenure.core.outcomes import CODES, Outcome

_BOOKKEEPING = frozenset({"command_id", "version"})
# What whoever works on a task, or chooses one, wants to know of it; `show` has the rest.
_OF_A_TASK = (
    "key", "title", "description", "state", "type", "tier", "tags", "spec", "metadata", "constraints", "output",
    "touches", "deadline", "parent", "attempts", "max_attempts", "agent", "percent", "step", "reason", "answers",
    "last_error", "work_product", "created_by",
)  # fmt: skip
_IN_A_LIST = ("key", "title", "state", "type", "tier", "tags", "agent", "percent")

# What a directive asks of the holder; with `continue` there is nothing to say.
DIRECTIVES = {
    "warn": "Tell your progress, or the task is taken from you.",
    "changed": "Read the diff of the description; finish with seen=brief when your work fits it.",
    "pause": "Stop and save a checkpoint; finish with outcome=release if you still hold it.",
    "cancel": "Stop, and discard what you have for this task.",
    "terminated": "Finish what you hold, then stop: an operator has ended this agent. Claim nothing more.",
    "abort": "Stop: this task is not yours any more. Change nothing further for it.",
}


class Reply(NamedTuple):
    value: dict[str, Any]
    text: str
    is_error: bool = False


def told(value: Mapping[str, Any], *, next: str | None = None, is_error: bool = False) -> Reply:
    """A value as it is, and its text: a line a field."""
    whole = dict(value) | ({"next": next} if next else {})
    return Reply(whole, "\n".join(f"{name}: {_text(part)}" for name, part in whole.items()), is_error)


def answered(outcome: Outcome, *, next: str | None = None, asks: bool = False) -> Reply:
    """An outcome. `asks`: the tool asks who may have something, so that a denial is an answer and no error.

    An error is what makes the agent change its course: its receipt is stale, its result was refused, its name for the
    task is wrong. Clients mark errors, some print them in red, and models give up on tools that fail; that another
    holds a task, or that there is none, is everyday news.
    """
    kind = CODES[outcome.outcome].kind
    value = {name: part for name, part in outcome_value(outcome).items() if name not in _BOOKKEEPING}
    value.setdefault("message", CODES[outcome.outcome].meaning)
    if "task" in value:
        value["task"] = lean(value["task"])
    if "tasks" in value:
        value["tasks"] = listed(value["tasks"])
    ways = [DIRECTIVES.get(outcome.directive or ""), next]
    is_error = kind != "ok" and not (asks and kind in ("nothing", "held", "denied"))
    return told(value, next=" ".join(way for way in ways if way), is_error=is_error)


def refused(error: TenureError) -> Reply:
    """An error, in the shape of `--json`."""
    parts = {"code": error.code, "message": error.message, "hint": error.hint, "definite": error.definite}
    said = {name: part for name, part in parts.items() if part is not None}
    text = f"{error.code}: {error.message}" + (f"\n{error.hint}" if error.hint else "")
    return Reply({"error": said}, text, is_error=True)


def lean(task: Mapping[str, Any]) -> dict[str, Any]:
    return {name: task[name] for name in _OF_A_TASK if name in task}


def listed(tasks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: task[name] for name in _IN_A_LIST if name in task} for task in plain(list(tasks))]


def seen(view: Any) -> Any:
    """What a look gave, for the wire; in lists of rows what is not set is left out."""
    if isinstance(view, list):
        return [{name: part for name, part in row.items() if part not in (None, [], {})} for row in plain(view)]
    return plain(view)


def _text(value: Any) -> str:
    """A text of one line as it is; any other as JSON, in which nothing can pass for a field of ours."""
    return value if isinstance(value, str) and value.isprintable() else as_json(value)

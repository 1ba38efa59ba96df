"""The replies of the tools: a value for programs and a text for models, with the same content.

Agents show their model one or the other: Claude Code and Codex the structured value, Gemini CLI and OpenCode the text
(so does Claude Code if the call failed), Copilot CLI both. So each must be complete, and both stay short: the value has
the shape of `--json` without fields that no holder needs, plus `next`, what to do; the text is that value, one line per
field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tenure.agents.quotations import as_json
from tenure.client.wire import outcome_value, plain
from tenure.core.errors import TenureError
from tenure.core.outcomes import CODES, Outcome
from tenure.core.safe_text import neutral, visible, visible_value

_BOOKKEEPING = frozenset({"command_id", "version"})
# The fields of a task that an agent needs to work on it, or to choose it; `show` has all.
_OF_A_TASK = (
    "key", "title", "description", "state", "type", "tier", "tags", "spec", "metadata", "constraints", "output",
    "touches", "deadline", "parent", "attempts", "max_attempts", "agent", "percent", "step", "reason", "answers",
    "last_error", "work_product", "created_by",
)  # fmt: skip
_IN_A_LIST = ("key", "title", "state", "type", "tier", "tags", "agent", "percent")

# What each directive asks of the holder; `continue` asks nothing.
DIRECTIVES = {
    "warn": "Do what directive_text asks, or the claim ends.",
    "changed": "Read the diff of the description; finish with seen=brief when your work fits it.",
    "pause": "Stop and save a checkpoint; finish with outcome=release if you still hold it.",
    "cancel": "Stop, and discard your work on this task.",
    "terminated": "Finish what you hold, then stop: an operator has terminated this agent. Claim nothing more.",
    "abort": "Stop: you no longer hold this task. Change nothing more for it.",
}


SECRETS = "not shown here; for a command that needs them: `tenure show TASK --receipt RECEIPT --json`"


class Reply(NamedTuple):
    value: dict[str, Any]
    text: str
    is_error: bool = False


def value_reply(value: Mapping[str, Any], *, next: str | None = None, is_error: bool = False) -> Reply:
    """A value, and its text: one line per field."""
    whole = visible_value(dict(value) | ({"next": next} if next else {}))
    return Reply(whole, "\n".join(f"{name}: {_text(part)}" for name, part in whole.items()), is_error)


def outcome_reply(
    outcome: Outcome, *, next: str | None = None, asks: bool = False, more: Mapping[str, Any] | None = None
) -> Reply:
    """An outcome. `asks`: the tool requests something, so a denial is a normal answer, not an error.

    An error makes the agent change its course: its receipt is stale, its result was refused, its name for the task is
    wrong. Clients mark errors, some in red, and models give up on tools that fail; but it is normal that another agent
    holds a task, or that there is none.
    """
    kind = CODES[outcome.outcome].kind
    value = {name: part for name, part in outcome_value(outcome).items() if name not in _BOOKKEEPING}
    value.setdefault("message", CODES[outcome.outcome].meaning)
    for granted in (value, *value.get("claims", ())):
        if granted.pop("secrets", None):  # a reply becomes part of a prompt, and of its transcript
            granted["secrets"] = SECRETS
    if "task" in value:
        value["task"] = lean(value["task"])
    if "tasks" in value:
        value["tasks"] = listed(value["tasks"])
    value |= more or {}
    ways = [_asked(outcome), next]
    is_error = kind != "ok" and not (asks and kind in ("nothing", "held", "denied"))
    return value_reply(value, next=" ".join(way for way in ways if way), is_error=is_error)


def _asked(outcome: Outcome) -> str | None:
    """What the directive asks; a warning says itself of what."""
    if outcome.directive == "warn" and outcome.directive_text:
        return f"{outcome.directive_text[:1].upper()}{outcome.directive_text[1:]}."
    return DIRECTIVES.get(outcome.directive or "")


def error_reply(error: TenureError) -> Reply:
    """An error, in the form of `--json`."""
    parts = {"code": error.code, "message": error.message, "hint": error.hint, "definite": error.definite}
    fields = {
        name: visible(part) if isinstance(part, str) else part for name, part in parts.items() if part is not None
    }
    text = neutral(f"{error.code}: {error.message}" + (f"\n{error.hint}" if error.hint else ""))
    return Reply({"error": fields}, text, is_error=True)


def lean(task: Mapping[str, Any]) -> dict[str, Any]:
    return {name: task[name] for name in _OF_A_TASK if name in task}


def listed(tasks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: task[name] for name in _IN_A_LIST if name in task} for task in plain(list(tasks))]


def view_value(view: Any) -> Any:
    """A view as JSON; rows of a list without unset fields."""
    if isinstance(view, list):
        return [{name: part for name, part in row.items() if part not in (None, [], {})} for row in plain(view)]
    return plain(view)


def _text(value: Any) -> str:
    """A one-line text as it is; any other value as JSON, so that it cannot look like another field."""
    return value if isinstance(value, str) and value.isprintable() else as_json(value)

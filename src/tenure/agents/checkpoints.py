"""The fields of a checkpoint, and its text within a budget of tokens: the most important first.

A checkpoint holds what an agent knew when its context was lost, for itself or the next holder. Interfaces save and show
these fields; the store keeps any JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tenure.agents.tokens import estimate, one_line
from tenure.core.errors import InvalidInput
from tenure.core.inputs import suggestion

# In the order of their value to the next holder.
FIELDS = {
    "next_action": "what to do next",
    "blockers": "obstacles",
    "tests": "the state of the tests",
    "files": "the files concerned",
    "notes": "anything else, any JSON",
}
_LISTS = ("blockers", "files")
_TEXTS = ("next_action", "tests")
_SMALLEST = 8  # tokens; a shorter excerpt is useless


def shaped(data: Any) -> dict[str, Any]:
    """`data` as a checkpoint: known fields of the right types, empty ones left out. InvalidInput otherwise."""
    if not isinstance(data, Mapping):
        raise InvalidInput("checkpoint: must be a JSON object", f"its fields: {', '.join(FIELDS)}")
    found: dict[str, Any] = {}
    for name, given in data.items():
        if name not in FIELDS:
            near = suggestion(str(name), FIELDS) or f"; there are: {', '.join(FIELDS)}"
            raise InvalidInput(f"checkpoint: unknown field {str(name)[:60]!r}{near}", "put anything else into notes")
        value = [given] if name in _LISTS and isinstance(given, str) else given
        if value in (None, "", [], {}):
            continue
        if name in _TEXTS and not isinstance(value, str):
            raise InvalidInput(f"checkpoint: {name} must be a text")
        if name in _LISTS and not (isinstance(value, list) and all(isinstance(part, str) for part in value)):
            raise InvalidInput(f"checkpoint: {name} must be a list of texts")
        found[name] = value
    if not found:
        raise InvalidInput("checkpoint: empty", f"give at least one of: {', '.join(FIELDS)}")
    return found


class Fitted(NamedTuple):
    lines: list[str]
    left_out: list[str]  # fields that were shortened or dropped


def fitted(data: Any, budget: int | None = None) -> Fitted:
    """The checkpoint as lines within `budget` tokens. Unknown fields are shown as they are."""
    if not isinstance(data, Mapping):
        data = {"notes": data}
    ordered = [name for name in FIELDS if name in data] + [name for name in data if name not in FIELDS]
    lines: list[str] = []
    left_out: list[str] = []
    for name in ordered:
        text = _as_text(data[name])
        if not text:
            continue
        label = f"{str(name).replace('_', ' ')}: "
        room = None if budget is None else budget - estimate("\n".join([*lines, label]))
        if room is None or estimate(text) <= room:
            lines.append(label + one_line(text, len(text) + 1))
        else:
            left_out.append(str(name))
            if room >= _SMALLEST:
                lines.append(label + one_line(text, room))
    return Fitted(lines, left_out)


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    import msgspec

    return msgspec.json.encode(value).decode()

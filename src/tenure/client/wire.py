"""The JSON of all interfaces: outcomes and views as plain values, instants as RFC 3339.

Rows have microseconds; people and other programs read `2026-03-01T12:04:10.000000Z`. Next to an instant that a program
acts on is a duration in seconds (`lease`), which is right even if the clocks differ.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core.instants import format_instant, is_instant, parse_instant
from tenure.core.outcomes import Outcome


def plain(value: Any) -> Any:
    """`value` for JSON; results, specs and metadata stay as their author wrote them."""
    # What `to_builtins` makes is new in all its parts: they are changed in place.
    return _spell(msgspec.to_builtins(value))


def _spell(value: Any) -> Any:
    if type(value) is dict:
        for name, part in value.items():
            kind = type(part)
            if kind in _PLAIN:
                continue
            if kind is int:
                if is_instant(name):
                    value[name] = format_instant(part)
            elif name not in _THEIRS:
                _spell(part)
    elif type(value) in (list, tuple):
        for part in value:
            _spell(part)
    return value


_PLAIN = frozenset({str, float, bool, type(None)})  # most values: unchanged under any name
_THEIRS = frozenset(
    {
        "data", "metadata", "spec", "constraints", "output", "details", "template", "filter", "on_end", "settings",
    }
)  # fmt: skip


def cursor_text(place: tuple[Any, str]) -> str:
    """Where the next page of tasks begins, as opaque text for URLs."""
    from base64 import urlsafe_b64encode  # few answers have a cursor; keeps startup fast

    return urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def read_cursor(text: str) -> tuple[Any, str]:
    """The place that `cursor_text` encoded; ValueError for any other text."""
    from base64 import urlsafe_b64decode

    place: tuple[Any, str] = msgspec.json.decode(
        urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=tuple[int | str | None, str]
    )
    return place


def outcome_value(outcome: Outcome) -> dict[str, Any]:
    """An outcome for JSON, without its unset fields."""
    value: dict[str, Any] = plain(outcome)
    return value


def from_plain(value: Any) -> Any:
    """The value that `plain` made JSON of: instants are microseconds again."""
    if isinstance(value, dict):
        return {name: _field_from_plain(name, part) for name, part in value.items()}
    if isinstance(value, list):
        return [from_plain(part) for part in value]
    return value


def _field_from_plain(name: str, value: Any) -> Any:
    if name in _THEIRS:
        return value
    return parse_instant(value) if is_instant(name) and isinstance(value, str) else from_plain(value)

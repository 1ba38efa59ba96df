"""The JSON of all interfaces: outcomes and views as plain values, instants as RFC 3339.

Rows have microseconds; people and other programs read `2026-03-01T12:04:10.000000Z`. Next to an instant that a program
acts on is a duration in seconds (`lease`), which is right even if the clocks differ.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any

import msgspec

from tenure.core.outcomes import Outcome

_INSTANTS = frozenset(
    {"deadline", "not_before", "time", "until", "since", "at", "now", "last_seen", "last_activity", "created_from"}
)
_ENDINGS = ("_at", "_until")


@cache  # there are few names: those of fields
def is_instant(name: str) -> bool:
    return name in _INSTANTS or name.endswith(_ENDINGS)


@lru_cache(4096)  # the answers of a batch share most instants
def format_instant(instant: int) -> str:
    second, micros = divmod(instant, 1_000_000)
    return f"{_second(second)}.{micros:06}Z"


@lru_cache(4096)  # the others fall into few seconds
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def parse_instant(text: str) -> int:
    """The microseconds of an RFC 3339 text; ValueError where it is not valid, or has no zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text[:80]!r} has no time zone: end it with Z")
    return round(moment.timestamp() * 1e6)


def plain(value: Any) -> Any:
    """`value` for JSON; results, specs and metadata stay as their author wrote them."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        made = value.copy()
        for name, part in value.items():
            kind = type(part)
            if kind in _PLAIN:
                continue
            if kind is not int:
                made[name] = part if name in _THEIRS else plain(part)
            elif is_instant(name):
                made[name] = format_instant(part)
        return made
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


_PLAIN = frozenset({str, float, bool, type(None)})  # most values: unchanged under any name
_THEIRS = frozenset(
    {
        "data", "metadata", "spec", "constraints", "output", "details", "template", "filter", "on_end", "settings",
    }
)  # fmt: skip


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

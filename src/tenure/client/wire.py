"""The JSON that interfaces show: outcomes and views as plain values, instants as RFC 3339.

Rows count microseconds; people and other programs read `2026-03-01T12:04:10.000000Z`. Beside an instant that a
program acts on stands a duration in seconds (`lease`), which needs no clock to agree.
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


@cache  # names are those of fields
def is_instant(name: str) -> bool:
    return name in _INSTANTS or name.endswith(_ENDINGS)


@lru_cache(4096)  # the answers of a batch share most of theirs
def spelled(instant: int) -> str:
    second, micros = divmod(instant, 1_000_000)
    return f"{_second(second)}.{micros:06}Z"


@lru_cache(4096)  # and the rest are of few seconds
def _second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def instant(text: str) -> int:
    """The microseconds that an RFC 3339 text spells; ValueError where it spells none, or has no zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text[:80]!r} has no time zone: end it with Z")
    return round(moment.timestamp() * 1e6)


def plain(value: Any) -> Any:
    """`value` as JSON has it; what people put into results, specs and metadata stays as they put it."""
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
                made[name] = spelled(part)
        return made
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


_PLAIN = frozenset({str, float, bool, type(None)})  # whatever it is called, it stays: most of what is answered
_THEIRS = frozenset(
    {
        "data", "metadata", "spec", "constraints", "output", "details", "template", "filter", "on_end", "settings",
    }
)  # fmt: skip


def outcome_value(outcome: Outcome) -> dict[str, Any]:
    """An outcome in its one shape; unset fields are left out."""
    value: dict[str, Any] = plain(outcome)
    return value


def unspelled(value: Any) -> Any:
    """What `plain` was given, as far as JSON tells: instants are microseconds again."""
    if isinstance(value, dict):
        return {name: _unspelled_field(name, part) for name, part in value.items()}
    if isinstance(value, list):
        return [unspelled(part) for part in value]
    return value


def _unspelled_field(name: str, value: Any) -> Any:
    if name in _THEIRS:
        return value
    return instant(value) if is_instant(name) and isinstance(value, str) else unspelled(value)

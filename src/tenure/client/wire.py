"""The JSON that interfaces show: outcomes and views as plain values, instants as RFC 3339.

Rows count microseconds; people and other programs read `2026-03-01T12:04:10.000000Z`. Beside an instant that a
program acts on stands a duration in seconds (`lease`), which needs no clock to agree.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from tenure.core.outcomes import Outcome

_INSTANTS = frozenset({"deadline", "not_before", "time", "until", "since", "at", "now", "last_seen", "last_activity"})
_ENDINGS = ("_at", "_until")


def is_instant(name: str) -> bool:
    return name in _INSTANTS or name.endswith(_ENDINGS)


def spelled(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant(text: str) -> int:
    """The microseconds that `spelled` spelled."""
    return round(datetime.fromisoformat(text).timestamp() * 1e6)


def plain(value: Any) -> Any:
    """`value` as JSON has it; what people put into results, specs and metadata stays as they put it."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        return {name: _field(name, part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


_THEIRS = frozenset({"data", "metadata", "spec", "constraints", "output", "details"})


def _field(name: str, value: Any) -> Any:
    if name in _THEIRS:
        return value
    if is_instant(name) and isinstance(value, int) and not isinstance(value, bool):
        return spelled(value)
    return plain(value)


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

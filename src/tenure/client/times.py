"""Times and durations of a caller as those of the commands: seconds, and microseconds UTC.

Wherever a command or query has a duration, a caller may give seconds, a timedelta or a text such as `2h`; wherever it
has an instant, microseconds, a datetime with a zone or an RFC 3339 text. A new task's deadline or start may also be
given as a duration from now.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.instants import is_instant
from tenure.core.queries import AT, Query
from tenure.core.records import replace

if TYPE_CHECKING:
    from datetime import datetime, timedelta
    from typing import TypeAlias

    from tenure.core.outcomes import Outcome

    Duration: TypeAlias = float | timedelta | str
    Instant: TypeAlias = int | datetime | str
    When: TypeAlias = int | datetime | timedelta | str
    Moment: TypeAlias = int | datetime | str  # a whole number is the sequence of an event

S = TypeVar("S", bound=msgspec.Struct)

SECOND = 1_000_000
AUTO = "auto"  # a lease that the store chooses
# Fields with seconds, of commands, queries, new tasks, constraints and limits of a task.
DURATIONS = frozenset(
    {
        "lease", "deadline_in", "not_before_in", "retry_after", "done_in", "seconds", "duration", "grace", "expires",
        "heartbeat", "stale_after", "idle", "max_duration", "estimated_duration",
    }
)  # fmt: skip
_RELATIVE = {"deadline": "deadline_in", "not_before": "not_before_in"}
_NESTED = frozenset({"task", "tasks", "template", "on_end", "changes", "constraints"})
_PLAIN = (int, float, type(None))


def seconds_of(value: Any, what: str) -> float:
    """Seconds of a number, a timedelta or a text such as `2h` or `1d 12h`."""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        from tenure.core.written_times import parse_duration

        found = parse_duration(value)
        if found is None:
            raise InvalidInput(f"{what} {value[:40]!r} is not a duration", "as in 90s, 15m, 2h or 1d 12h")
        return found / SECOND
    from datetime import timedelta

    if isinstance(value, timedelta):
        return value.total_seconds()
    raise InvalidInput(
        f"{what} must be a duration (got {type(value).__name__})", "give seconds, a timedelta, or a text such as 2h"
    )


def granted_lease(asked: float | str, granted: Outcome) -> float:
    """The seconds that a claim lasts: as asked, or as long as the store chose for `auto`."""
    if isinstance(asked, str):
        return granted.lease or limits.LEASE
    return asked


def instant_of(value: Any, what: str) -> int:
    """Microseconds UTC of a number, a datetime with a zone or an RFC 3339 text."""
    if isinstance(value, (int, float)):
        return int(value)
    from datetime import datetime

    if isinstance(value, str):
        from tenure.core.written_times import parse_instant

        found = parse_instant(value, what, 0)
        if found.after is not None:
            raise InvalidInput(f"{what} {value[:40]!r} is a duration, not a time", "as in 2026-03-01T18:00:00Z")
        return found.instant
    if not isinstance(value, datetime):
        raise InvalidInput(
            f"{what} must be a time (got {type(value).__name__})", "give a datetime with a zone, or an RFC 3339 text"
        )
    if value.tzinfo is None:
        raise InvalidInput(f"{what} {value.isoformat()}: the time zone is missing", "as in datetime.now(timezone.utc)")
    return round(value.timestamp() * SECOND)


def moment_of(value: Any) -> str | None:
    """A moment of the past for a query: the sequence of an event, a datetime with a zone, or a text of either."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    from tenure.core.written_times import spell_instant

    return spell_instant(instant_of(value, AT))


def as_datetime(instant: int) -> datetime:
    """An instant of a view, in microseconds, as a datetime in UTC."""
    from datetime import UTC, datetime, timedelta

    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=instant)


def with_plain_times(given: S) -> S:
    """The command, query or new task with seconds and microseconds; the same object if it has nothing else."""
    changes: dict[str, Any] = {}
    for name in _timed(type(given)):
        value = getattr(given, name)
        if type(value) in _PLAIN:
            continue
        changes |= _field(name, value)
    return replace(given, **changes) if changes else given


@cache
def _timed(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    names = [n for n in kind.__struct_fields__ if n != AT or not issubclass(kind, Query)]
    return tuple(n for n in names if n in DURATIONS or n in _NESTED or is_instant(n))


def _field(name: str, value: Any) -> dict[str, Any]:
    """The field with a plain value, where it is another; a relative deadline becomes `deadline_in`."""
    if name in _NESTED:
        plain = _nested(value)
        return {} if plain is value else {name: plain}
    if name == "lease" and value == AUTO:
        return {}
    if name in DURATIONS:
        return {name: seconds_of(value, name)}
    if name in _RELATIVE:
        seconds = _relative(value)
        if seconds is not None:
            return {name: None, _RELATIVE[name]: seconds}
    return {name: instant_of(value, name)}


def _relative(value: Any) -> float | None:
    """Seconds from now where a deadline was given so."""
    if isinstance(value, str):
        from tenure.core.written_times import parse_duration

        found = parse_duration(value)
        return None if found is None else found / SECOND
    from datetime import timedelta

    return value.total_seconds() if isinstance(value, timedelta) else None


def _nested(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return with_plain_times(value)
    if isinstance(value, tuple):
        made = tuple(with_plain_times(one) if isinstance(one, msgspec.Struct) else one for one in value)
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    if not isinstance(value, dict):
        return value
    changes: dict[str, Any] = {}
    for name, part in value.items():
        if type(part) in _PLAIN:
            continue
        if isinstance(part, msgspec.Struct):
            changes[name] = with_plain_times(part)
        elif name in _RELATIVE:  # of an edit, which has no `deadline_in`
            changes[name] = instant_of(part, name)
        elif name in DURATIONS or name in _NESTED or is_instant(name):
            changes |= _field(name, part)
    return value | changes if changes else value

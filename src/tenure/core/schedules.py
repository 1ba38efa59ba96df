"""When a schedule is due: a cron expression in a time zone, by the rules of Debian's cron where clocks change.

- A job at a fixed time runs once a day: a time skipped in spring runs right after the gap, a time that occurs twice in
  autumn runs the first time.
- A job whose minute or hour begins with `*` runs by real time: nothing is skipped, and the repeated hour counts
  twice.

Where only half an hour repeats, as on Lord Howe Island, an hourly job runs once in it: cronsim knows whole hours.

All instants are microseconds UTC. The zone's rules are the only thing read from the system.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from tenure.core import limits
from tenure.core.errors import InvalidInput

SKIP, ONCE, ALL = "skip", "once", "all"
MISFIRES = (SKIP, ONCE, ALL)
MOST_AT_ONCE = limits.MISSED_TICKS
GRACE = limits.SCHEDULE_GRACE
NICKNAMES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR = 9000  # latest year, with room for later ticks
_HOUR = 3600 * 1_000_000
_WINDOWS = (_HOUR, 24 * _HOUR, 32 * 24 * _HOUR, 366 * 24 * _HOUR)


class Due(NamedTuple):
    """Ticks to fire, oldest first. `missed`: the policy skipped others."""

    ticks: tuple[int, ...]
    missed: bool


def owner_of(name: str) -> str:
    """The owner of the secrets in its template."""
    return f"schedule:{name}"


def check_schedule(cron: str, zone: str) -> None:
    """Raise InvalidInput for an invalid schedule."""
    _zone(zone)
    _simulated(cron, _EPOCH)


def next_tick(cron: str, zone: str, after: int) -> int | None:
    """The first tick after `after`; None where there is none for fifty years."""
    start = _local(after, zone)
    for tick in _simulated(cron, start):
        # Computed on the wall clock: in the repeated hour it may show an earlier time, and a gap merges two ticks.
        found = _instant(tick)
        if found > after:
            return found
    return None


def due_ticks(cron: str, zone: str, *, since: int, now: int, misfire: str = ONCE) -> Due:
    """What to fire at `now`, where everything up to `since` was handled.

    A tick is missed when it is more than a minute late. `skip` skips missed ones; `once` fires the last one that is
    due; `all` fires each, but at most the last hundred.
    """
    if misfire not in MISFIRES:
        raise InvalidInput(f"misfire {misfire[:40]!r} must be one of {', '.join(MISFIRES)}")
    most = 1 if misfire == ONCE else MOST_AT_ONCE
    ticks, is_more = _latest(cron, zone, since, now, most)
    if misfire == SKIP:
        timely = tuple(tick for tick in ticks if now - tick <= GRACE)
        return Due(timely, is_more or len(timely) < len(ticks))
    return Due(ticks, is_more)


def local_time(instant: int, zone: str) -> datetime:
    """The wall clock in the zone."""
    return _local(instant, zone)


def _latest(cron: str, zone: str, since: int, now: int, most: int) -> tuple[tuple[int, ...], bool]:
    """The last ticks in (since, now], and whether there are more before them.

    Searched in ever longer windows before `now`: a year of missed minutes is not counted one by one.
    """
    start = since
    for window in (*_WINDOWS, None):
        start = since if window is None else max(since, now - window)
        ticks = _between(cron, zone, start, now)
        if len(ticks) > most or start == since:
            return tuple(ticks[-most:]), len(ticks) > most
        if len(ticks) == most and next_tick(cron, zone, since) != ticks[0]:
            return tuple(ticks), True
    raise AssertionError("the last window begins at `since`")


def _between(cron: str, zone: str, start: int, end: int) -> list[int]:
    found: list[int] = []
    if start >= end:
        return found
    for tick in _simulated(cron, _local(start, zone)):
        instant = _instant(tick)
        if instant > end:
            break
        if instant > (found[-1] if found else start):
            found.append(instant)
    return found


def _simulated(cron: str, start: datetime) -> CronSim:
    expression = NICKNAMES.get(cron.strip().lower(), cron) if len(cron) <= limits.CRON else ""
    if len(expression.split()) != 5:
        raise InvalidInput(
            f"schedule {cron[:60]!r} must have five fields (minute, hour, day of month, month, day of week)",
            "use for example `30 6 * * mon-fri`, or one of " + ", ".join(NICKNAMES) + ".",
        )
    try:
        return CronSim(expression, start)
    except (CronSimError, ValueError, AssertionError) as error:
        raise InvalidInput(f"schedule {cron[:60]!r}: {str(error).lower()}") from None


def _local(instant: int, zone: str) -> datetime:
    try:
        moment = _EPOCH + timedelta(microseconds=instant)
    except OverflowError:
        moment = _EPOCH.replace(year=_LAST_YEAR)
    if not _EPOCH <= moment < _EPOCH.replace(year=_LAST_YEAR):
        raise InvalidInput(f"instant must be between 1970 and {_LAST_YEAR} (got {instant})")
    return moment.astimezone(_zone(zone))


def _instant(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)  # it accepts no path outside of its folder
    except (KeyError, ValueError, OSError):
        hint = "use for example Europe/Berlin or UTC; a missing zone may need the package tzdata"
        raise InvalidInput(f"unknown time zone {name[:64]!r}", hint) from None

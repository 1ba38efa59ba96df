"""When a schedule is due: five fields of cron in a time zone, by the rules of Debian's cron where clocks change.

- A job at a fixed time runs once a day: one whose time is skipped in spring runs right after the gap, one whose time
  comes twice in autumn runs the first time.
- A job whose minute or hour begins with `*` goes by real time: nothing is skipped, and the hour that comes twice counts
  twice.

Where only half an hour comes twice, as on Lord Howe Island, an hourly job runs once in it: cronsim knows whole hours.

All instants are microseconds UTC. The zone's rules are read from the system, and are the only thing that is.
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
LONGEST = limits.CRON
NICKNAMES = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}  # fmt: skip

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR = 9000  # of instants that can be reckoned with, with room for what comes after them
_HOUR = 3600 * 1_000_000
_WINDOWS = (_HOUR, 24 * _HOUR, 32 * 24 * _HOUR, 366 * 24 * _HOUR)


class Due(NamedTuple):
    """Ticks to fire, oldest first. `missed`: there were others, which the policy lets go."""

    ticks: tuple[int, ...]
    missed: bool


def check_schedule(cron: str, zone: str) -> None:
    """Raise InvalidInput for what is no schedule."""
    _zone(zone)
    _simulated(cron, _EPOCH)


def next_tick(cron: str, zone: str, after: int) -> int | None:
    """The first tick behind `after`; None where there is none for fifty years."""
    start = _local(after, zone)
    for tick in _simulated(cron, start):
        # Reckoned on the clock on the wall, which a time in the repeated hour can lie behind, and a gap makes two one.
        found = _instant(tick)
        if found > after:
            return found
    return None


def due_ticks(cron: str, zone: str, *, since: int, now: int, misfire: str = ONCE) -> Due:
    """What to fire at `now`, where everything up to `since` was dealt with.

    A tick is missed when it is more than a minute late. `skip` lets missed ones go; `once` fires the last one that
    is due, however many there were; `all` fires each, but no more than the last hundred.
    """
    if misfire not in MISFIRES:
        raise InvalidInput(f"misfire {misfire[:40]!r}: one of {', '.join(MISFIRES)}")
    most = 1 if misfire == ONCE else MOST_AT_ONCE
    ticks, is_more = _latest(cron, zone, since, now, most)
    if misfire == SKIP:
        timely = tuple(tick for tick in ticks if now - tick <= GRACE)
        return Due(timely, is_more or len(timely) < len(ticks))
    return Due(ticks, is_more)


def local_time(instant: int, zone: str) -> datetime:
    """What the clock on the wall shows there."""
    return _local(instant, zone)


def _latest(cron: str, zone: str, since: int, now: int, most: int) -> tuple[tuple[int, ...], bool]:
    """The last ticks in (since, now], and whether there are more before them.

    Looked for in ever longer times before `now`: after a year of silence nobody counts half a million minutes.
    """
    start = since
    for window in (*_WINDOWS, None):
        start = since if window is None else max(since, now - window)
        ticks = _between(cron, zone, start, now)
        if len(ticks) > most or start == since:
            return tuple(ticks[-most:]), len(ticks) > most
        if len(ticks) == most and next_tick(cron, zone, since) != ticks[0]:
            return tuple(ticks), True
    raise AssertionError("the last window begins where all do")


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
    expression = NICKNAMES.get(cron.strip().lower(), cron) if len(cron) <= LONGEST else ""
    if len(expression.split()) != 5:
        raise InvalidInput(
            f"schedule {cron[:60]!r}: not five fields (minute, hour, day of month, month, day of week)",
            "As in `30 6 * * mon-fri`, or one of " + ", ".join(NICKNAMES) + ".",
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
        raise InvalidInput(f"instant {instant}: not between 1970 and {_LAST_YEAR}")
    return moment.astimezone(_zone(zone))


def _instant(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)  # which takes no path out of its folder
    except (KeyError, ValueError, OSError):
        hint = "As in Europe/Berlin or UTC. If it should be there: is tzdata installed?"
        raise InvalidInput(f"time zone {name[:64]!r}: unknown", hint) from None

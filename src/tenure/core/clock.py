"""The store's time from a host's clock that may be wrong: `now` never goes back, and a jump ahead is refused.

People and programs set a host's clock; nobody sets the machine's uptime. Their difference is kept with the store: if it
has grown by more than `limits.CLOCK_AHEAD` for a writer of the same boot, the clock jumped. So a store that was unused
for a month does not count as a jump.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from tenure.core import lifecycle, limits
from tenure.core.errors import ClockJump
from tenure.core.records import (
    Agent,
    ApiKey,
    Leader,
    Model,
    Reservation,
    Row,
    Session,
    Task,
    Trigger,
    Validation,
    replace,
)

SECOND = 1_000_000
DRIFT = 60 * SECOND  # a smaller step forward is accepted silently


class Reading(msgspec.Struct, frozen=True):
    """A host's clocks at one moment, in microseconds."""

    wall: int
    uptime: int = 0
    boot: str = ""  # changes with each start of the machine; empty: uptime unknown

    @property
    def offset(self) -> int:
        return self.wall - self.uptime


class Kept(NamedTuple):
    """What a store keeps about its writers' clocks."""

    boot: str = ""
    offset: int = 0  # wall clock minus uptime, in that boot
    ahead_at: int | None = None  # while the last event is ahead: its time when first noticed
    ahead_uptime: int | None = None  # and the uptime then


class ClockReading(NamedTuple):
    """The store's time, the state to keep, and how far the clock has jumped ahead (0: it has not)."""

    now: int
    kept: Kept
    jump: int = 0


def store_time(kept: Kept, at: Reading, last: int | None) -> ClockReading:
    """The time for a transaction; `last` is the last event's. After a jump nothing may be written.

    A clock behind the last event is followed from there by the uptime since that was noticed.
    """
    if not at.boot:
        return ClockReading(at.wall if last is None else max(at.wall, last), kept)
    if kept.boot != at.boot:
        kept = Kept(at.boot, at.offset)
    ahead = at.offset - kept.offset
    if ahead > limits.CLOCK_AHEAD:
        now = kept.offset + at.uptime  # the time without the jump
        return ClockReading(now if last is None else max(now, last), kept, ahead)
    if ahead > DRIFT:
        kept = kept._replace(offset=at.offset)
    if last is None or at.wall >= last:
        return ClockReading(at.wall, kept._replace(ahead_at=None, ahead_uptime=None))
    if kept.ahead_at is None or kept.ahead_uptime is None:
        if last - at.wall >= SECOND:  # smaller differences are noise
            kept = kept._replace(ahead_at=last, ahead_uptime=at.uptime)
        return ClockReading(last, kept)
    return ClockReading(max(last, kept.ahead_at + max(0, at.uptime - kept.ahead_uptime)), kept)


def accepted(at: Reading) -> Kept:
    """The state to keep once a person has confirmed the clock."""
    return Kept(at.boot, at.offset) if at.boot else Kept()


def refusal(jump: int, where: str) -> ClockJump:
    return ClockJump(
        f"{where}: this host's clock is {jump // SECOND} s ahead of the clock of the store's last write; "
        "nothing was written",
        "Correct the clock. `tenure db clock` shows its state, and how to continue if it is right now.",
    )


# --- repair of rows written ahead ----------------------------------------------------------------------------

_OF_TASKS = (
    "retry_at", "lease_until", "presented_at", "progress_at", "done_by", "warned_at", "offer_until",
    "created_at", "updated_at", "ready_at", "started_at", "failed_at", "dead_lettered_at",
)  # fmt: skip
_BY_PEOPLE = ("not_before", "deadline")  # dates, unless the task was created while the clock was ahead
_OF_OTHERS: dict[type[Row], tuple[str, ...]] = {
    Agent: ("last_seen", "cool_until"),
    Leader: ("elected_at", "until"),
    Model: ("cool_until",),
    Reservation: ("created_at", "until"),
    Session: ("last_activity",),
    Trigger: ("reported_at",),
    Validation: ("taken_at", "until", "retry_at"),
}
MOVED: tuple[type[Row], ...] = (Task, ApiKey, *_OF_OTHERS)  # rows with times that move back


def moved_back(row: Any, now: int, back: int) -> Any:
    """The row with times set while the clock was ahead moved back by the jump; the same row where there are none.

    `now` is the accepted time: later times that were written ahead move `back`, but a time in the future never moves
    before `now`.
    """
    if isinstance(row, Task):
        if row.updated_at <= now or row.state in lifecycle.FINISHED:
            return row
        names = _OF_TASKS + (_BY_PEOPLE if row.created_at > now else ())
        cool_offs = {agent: until - back if until > now else until for agent, until in row.cool_offs.items()}
        pauses = tuple(replace(pause, **_moved(pause, ("at", "until"), now, back)) for pause in row.pauses)
        return replace(row, cool_offs=cool_offs, pauses=pauses, **_moved(row, names, now, back))
    if isinstance(row, ApiKey):
        return replace(row, **_moved(row, ("expires_at",), now, back)) if row.created_at > now else row
    fields = _moved(row, _OF_OTHERS[type(row)], now, back)
    if isinstance(row, Leader) and any(at > now for at in row.duties_begun.values()):
        fields["duties_begun"] = {duty: min(at, now) for duty, at in row.duties_begun.items()}
    return replace(row, **fields) if fields else row


def _moved(row: Any, names: tuple[str, ...], now: int, back: int) -> dict[str, Any]:
    return {name: at - back for name in names if (at := getattr(row, name)) is not None and at > now}


def is_made_ahead(task: Task, now: int) -> bool:
    """Whether its claim was made while the clock was ahead."""
    return task.state in lifecycle.HELD and task.claimed_at is not None and task.claimed_at > now

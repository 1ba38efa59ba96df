"""Bringing a task up to `now`: the one function that commands, reads and sweeps share.

Each call applies the earliest item that is due and returns the instant at which it fell due; later times (a retry's
delay) count from that instant, so that no answer depends on when somebody looked.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core import claims, lifecycle, limits, moves, priority
from tenure.core.lifecycle import (
    ABORTED_BY,
    DEAD_LETTERED,
    ERROR_BY,
    EXPIRED_BY,
    LOST,
    PAUSED,
    PENDING,
    READY,
    RETRYING,
    PauseCause,
)
from tenure.core.records import Brief, Claim, Task, replace

MINUTE = 60_000_000
RAISE_PRIORITY = 10  # points by which an aborted task moves ahead
_MISSES_NOTHING = (lifecycle.CREATED, *lifecycle.ENDED)  # states in which a deadline passes without an event


class Settled(msgspec.Struct, frozen=True):
    """What fell due: the event's kind, the new rows, and the instant."""

    kind: str
    task: Task
    claim: Claim | None
    at: int
    details: dict[str, Any]


def due_at(task: Task, now: int) -> int | None:
    """When `settle` next has something to do, as far as this row shows."""
    if task.state in lifecycle.ENDED:
        return None
    times = [_missed_at(task)]
    if task.state in lifecycle.HELD:
        if task.done_by is task.deadline is task.estimate is task.max_duration is task.warned_at is None:
            return task.lease_until  # as most
        times += (task.lease_until, warn_at(task), abort_at(task))
    elif task.state == RETRYING:
        times.append(task.retry_at)
    elif task.state == PENDING and task.unmet == 0:
        times.append(task.not_before or now)
    elif task.state == READY:
        times += (task.offer_until, priority.next_urgency(task.deadline, now))
    elif task.state == PAUSED:
        times.append(next_end(task))
    return min([t for t in times if t is not None], default=None)


def warn_at(task: Task) -> int | None:
    """When the holder is warned: past the end that it announced, else past three times the task's estimate.

    Recent progress puts it off.
    """
    if task.warned_at is not None:
        return None
    if task.done_by is not None:
        return max(task.done_by, task.progress_at or 0) + limits.HUNG_AFTER
    if task.estimate is None or task.claimed_at is None:
        return None
    over = task.claimed_at + limits.HUNG_TIMES * task.estimate
    return over if task.progress_at is None else max(over, task.progress_at + limits.HUNG_AFTER)


def abort_at(task: Task) -> int | None:
    """When the claim is ended: over max_duration, or hung and silent since the warning."""
    if task.max_duration is task.warned_at is None:
        return None
    times = []
    if task.max_duration is not None and task.claimed_at is not None:
        times.append(task.claimed_at + task.max_duration)
    if task.warned_at is not None:
        times.append(task.warned_at + limits.ABORT_AFTER)
    return min(times, default=None)


def next_end(task: Task) -> int | None:
    """When the first cause of a pause ends without a command, as a budget's does with its next period."""
    return min((pause.until for pause in task.pauses if pause.until is not None), default=None)


def needs_claim(task: Task) -> bool:
    return task.state in lifecycle.HELD


def settle(
    task: Task, claim: Claim | None, brief: Brief | None, epoch: str, now: int, fraction: float
) -> Settled | None:
    """The earliest item due on this row, or None. `claim` and `brief` are needed while it is held."""
    due = _settle_state(task, claim, brief, epoch, now, fraction)
    missed = _missed_at(task)
    if missed is not None and missed <= now and (due is None or missed <= due.at):
        return Settled("task.deadline_missed", replace(task, missed=True), None, missed, {})
    return due


def _missed_at(task: Task) -> int | None:
    """When the deadline passes, for a task that can still miss it."""
    return None if task.missed or task.state in _MISSES_NOTHING else task.deadline


def _settle_state(
    task: Task, claim: Claim | None, brief: Brief | None, epoch: str, now: int, fraction: float
) -> Settled | None:
    if task.state in lifecycle.HELD and claim is not None and brief is not None:
        if task.claim_epoch != epoch:
            free, over = claims.ended(task, claim, ERROR_BY, now, retry=brief.retry)
            return Settled("task.epoch_ended", free, over, now, {})
        return _settle_held(task, claim, brief, now, fraction)
    if task.state == RETRYING and task.retry_at is not None and task.retry_at <= now:
        at = task.retry_at
        return Settled("task.retry_due", moves.waiting(task, at), None, at, {})
    if task.state == PENDING and task.unmet == 0 and (task.not_before is None or task.not_before <= now):
        at = task.not_before or now
        return Settled("task.ready", moves.waiting(task, at), None, at, {})
    end = next_end(task) if task.state == PAUSED else None
    if end is not None and end <= now:
        return _pause_over(task, end)
    if task.state == READY and task.offer_until is not None and task.offer_until <= now:
        at = task.offer_until
        return Settled(
            "task.offer_ended",
            replace(task, offer_to=None, offer_until=None, offer_term=None),
            None,
            at,
            {"agent": task.offer_to},
        )
    return None


def _pause_over(task: Task, at: int) -> Settled:
    """Lift the causes that end at this instant, and no others."""
    free = moves.lifted(task, lambda pause: pause.until == at, at)
    details = {"lifted": [pause.cause for pause in task.pauses if pause.until == at]}
    return Settled("task.resumed" if free.state != PAUSED else "task.pause_lifted", free, None, at, details)


def _settle_held(task: Task, claim: Claim, brief: Brief, now: int, fraction: float) -> Settled | None:
    lease = task.lease_until
    abort = abort_at(task)
    warn = warn_at(task)
    first = min((t for t in (lease, abort, warn) if t is not None), default=None)
    if first is None or first > now:
        return None
    if first == lease:
        return _expired(task, claim, brief, first, fraction)
    if first == abort:
        return aborted(task, claim, brief, first, fraction, "no progress, or over its allowed time")
    warned = replace(task, warned_at=first, wanted=task.wanted or "warn")  # a requested pause takes precedence
    return Settled("task.warned", warned, None, first, {})


def _expired(task: Task, claim: Claim, brief: Brief, at: int, fraction: float) -> Settled:
    free, over = _lost(task, claim, brief, at, fraction, "lease lost")
    return Settled("task.lease_expired", free, over, at, {"lease_until": task.lease_until})


def gone(task: Task, claim: Claim, brief: Brief, at: int, fraction: float) -> Settled:
    """The holder's process has ended: the effect of an expired lease, without the wait."""
    free, over = _lost(task, claim, brief, at, fraction, claims.PROCESS_GONE)
    over = replace(over, error=claims.PROCESS_GONE)
    return Settled("task.process_gone", free, over, at, {"lease_until": task.lease_until})


def _lost(task: Task, claim: Claim, brief: Brief, at: int, fraction: float, why: str) -> tuple[Task, Claim]:
    """Task and claim after the holder was lost; `on_lost` gives the task's next state."""
    free, over = claims.ended(task, claim, EXPIRED_BY, at, retry=brief.retry)
    if brief.on_lost == "back_off":
        free = claims.tried_again(free, brief.retry, at, fraction)
    elif brief.on_lost == "hold" and free.state != DEAD_LETTERED:
        free = moves.paused(free, PauseCause(cause=LOST, reason=f"{why}; on_lost = hold", at=at))
    return free, over


def aborted(task: Task, claim: Claim, brief: Brief, at: int, fraction: float, why: str) -> Settled:
    """The claim is ended and the attempt counts; the next attempt comes sooner, but never with critical priority."""
    free, over = claims.ended(
        task, claim, ABORTED_BY, at, retry=brief.retry, error_class="timeout", error=why
    )  # fmt: skip
    free = claims.tried_again(free, brief.retry, at, fraction)
    if free.priority > priority.TIERS["high"][0]:
        free = replace(free, priority=max(priority.TIERS["high"][0], free.priority - RAISE_PRIORITY))
    return Settled("task.aborted", free, over, at, {"error_class": "timeout", "error": why})


def stamp(task: Task, now: int, **changes: Any) -> Task:
    """The derived columns: position in the claim order while claimable, and the next due time. Run at every write.

    `changes`: fields on which none of them depends, set together with them.
    """
    claimable = task.state == READY and task.set_aside_for is None and task.offer_to is None
    lane = priority.lane_of(task) if claimable else None
    rank = priority.rank(task, now) if task.state == READY else task.rank
    return replace(
        task, lane=lane, band=priority.band_of(task), rank=rank, due_at=due_at(task, now), plain=is_plain(task),
        **changes,
    )  # fmt: skip


# --- plain tasks: rows that the fast path may take ----------------------------------------------------------


def is_plain(task: Task) -> bool:
    """Whether a claim, a renewal or an accepted result concerns only the row itself and its claim.

    A store may do these three for plain rows in one statement, guard and stamp only; every other row takes the slow
    path through `claims`. `stamp` sets the mark at every write of the row, so only this function defines a plain task.
    """
    is_held = task.state in lifecycle.HELD
    if not is_held and task.state != READY:
        return False
    if task.checked or task.metered or task.artifacts:  # validated, learnt from, or with artifacts to pass on
        return False
    if task.sealed:  # its holder gets the secrets, and its result is searched for them
        return False
    if task.capped or task.funded or task.reserved or task.pauses or task.unseen_since is not None:
        return False
    if task.region is not None and task.region.startswith(priority.PREFERS):  # its position depends on who asks
        return False
    if task.guarded or task.models or task.fallback_models or task.waits_on or task.wanted is not None:
        return False
    if not (task.deadline is None is task.max_duration is task.estimate is task.done_by is task.warned_at):
        return False
    return is_held or _is_fresh(task)


def _is_fresh(task: Task) -> bool:
    """Never claimed, and without traces of earlier events: a claim has nothing to undo."""
    return (
        task.generation == 0
        and task.attempts == 0
        and task.losses == 0
        and task.renewals == 0
        and not task.late_submit_open
        and not task.cool_offs
        and task.retry_at is None
        and task.offer_until is None
        and task.offer_term is None
        and task.percent is None
        and task.step is None
        and task.progress_at is None
        and task.cancelled is None
        and task.state_before is None
    )

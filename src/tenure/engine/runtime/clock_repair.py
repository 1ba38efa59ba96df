"""Repair after a host's clock was ahead and was corrected: times written meanwhile are corrected too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tenure.core import claims, clock, lifecycle
from tenure.core.records import Row, Schedule, Task, replace
from tenure.core.schedules import next_tick
from tenure.engine.duties.sweep import projects
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import current_claim
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.stores.port import HOST_CLOCK

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine


class ClockState(NamedTuple):
    """In microseconds: the store's time, how far the clock is behind it, and how far it has jumped ahead."""

    now: int
    behind: int
    jump: int
    is_host: bool  # False: the time is a database server's


class Accepted(NamedTuple):
    """How many microseconds the store's time went back, and the tasks whose claims ended with that."""

    back: int
    ended: list[str]


def clock_state(engine: Engine) -> ClockState:
    return engine.read(lambda tx: ClockState(tx.now, tx.behind, tx.jump, HOST_CLOCK in engine.store.features))


def accept_clock(engine: Engine) -> Accepted:
    """Accept the host's clock, in one transaction.

    Each project gets one event `clock.accepted`; only this event may be earlier than the one before it. Future times
    that were set ahead move back by the same amount. Claims made ahead end, and their attempts are given back.
    """
    names = projects(engine)
    accepted: Accepted = engine.transact(["", *names], lambda work: _accepted(work, names), settled=False)
    return accepted


def _accepted(work: UnitOfWork, names: list[str]) -> Accepted:
    back = work.tx.accept_clock()
    work.now = work.instant = work.tx.now
    ended = []
    for project in ("", *names):
        moved = list(_moved(work, project, back)) if back else []
        message = f"the clock was corrected: {back // clock.SECOND} s back"
        fields = {"level": "warning", "message": message, "details": {"back_ms": back // 1000, "moved": len(moved)}}
        work.record("clock.accepted", *moved, project=project, **fields)
        ended += [_ended(work, task) for task in _made_ahead(work, project)] if back else []
    spread(work)
    return Accepted(back, ended)


def _moved(work: UnitOfWork, project: str, back: int) -> Iterator[Row]:
    for kind in clock.MOVED:
        for row in work.find(kind, {"project": project}):
            moved = clock.moved_back(row, work.now, back)
            if moved is not row:
                yield moved
    for schedule in work.find(Schedule, {"project": project}):
        if schedule.next_at is not None and schedule.next_at > work.now:
            following = next_tick(schedule.cron, schedule.zone, work.now)
            if following is not None and following < schedule.next_at:
                yield replace(schedule, next_at=following)


def _made_ahead(work: UnitOfWork, project: str) -> list[Task]:
    return [
        t for t in work.find(Task, {"project": project, "state": lifecycle.HELD}) if clock.is_made_ahead(t, work.now)
    ]


def _ended(work: UnitOfWork, task: Task) -> str:
    free, over = claims.ended(task, current_claim(work, task), lifecycle.ERROR_BY, work.now)
    over = replace(over, acquired_at=min(over.acquired_at, work.now))
    work.record("task.clock_ended", over, task=free, level="warning")
    return task.key

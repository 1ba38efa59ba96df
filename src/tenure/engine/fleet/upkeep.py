"""Spawns that are over: found and ended in one transaction, which returns the processes that must still be ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tenure.core import pools
from tenure.core.records import Agent, Pool, Session, Spawn
from tenure.engine.fleet.spawn_rows import end_spawn, held_by
from tenure.engine.runtime.unit_of_work import UnitOfWork

SECOND = 1_000_000
CLOSING = SECOND  # a process closes its sessions one by one, and needs its key for that
PARTING = 5 * SECOND  # a process that has left ends by itself; after this it is ended


class Ending(NamedTuple):
    """A process that must end."""

    spawner: str
    handle: str
    graceful: bool = False
    at: int = 0  # not before
    tries: int = 0


def keep(work: UnitOfWork, project: str, reports: Mapping[str, str], absent: Collection[str] = ()) -> list[Ending]:
    """Bring the open spawns of a project up to date.

    `reports`: handle → what its spawner last reported. `absent`: spawns that have no process, and will have none.
    """
    endings = []
    for spawn in work.find(Spawn, {"project": project, "state": pools.OPEN}):
        facts = _facts(work, spawn, reports, absent)
        end = pools.end_of(spawn, facts, work.now)
        if end is not None:
            is_gone = facts.report == pools.ENDED or facts.is_absent
            end_spawn(work, spawn, end.state, end.why, counts=end.counts, is_gone=is_gone)
            if spawn.handle is not None and not is_gone:
                at = work.now + PARTING if end.why == pools.LEFT else work.now
                endings.append(Ending(spawn.spawner, spawn.handle, at=at))
            continue
        if facts.is_terminated and spawn.handle is not None:
            endings.append(Ending(spawn.spawner, spawn.handle, graceful=True))
        after = pools.watched(spawn, facts.holds, work.now)
        if after is not spawn:
            work.put(after)
    _drop_old(work, project)
    return endings


def _facts(work: UnitOfWork, spawn: Spawn, reports: Mapping[str, str], absent: Collection[str]) -> pools.Facts:
    agent = work.get(Agent, spawn.project, spawn.agent)
    session = None if spawn.session is None else work.get(Session, spawn.project, spawn.session)
    return pools.Facts(
        pool=work.get(Pool, spawn.project, spawn.pool),
        report=None if spawn.handle is None else reports.get(spawn.handle),
        has_left=session is not None and session.ended_at is not None and session.ended_at + CLOSING <= work.now,
        is_terminated=agent is not None and agent.terminated_at is not None,
        holds=bool(held_by(work, spawn)),
        is_absent=spawn.handle is None and spawn.id in absent,
    )


def _drop_old(work: UnitOfWork, project: str) -> None:
    over = {"project": project, "state": (pools.ENDED, pools.LOST)}
    if work.tally(Spawn, over, pools.KEPT + 1) > pools.KEPT:
        for spawn in pools.surplus(work.find(Spawn, over)):
            work.remove(spawn)


def save_handle(work: UnitOfWork, project: str, spawn: str, handle: str, session: str | None) -> Ending | None:
    """The spawner's answer. The process of a spawn that is over meanwhile must end."""
    row = work.get(Spawn, project, spawn)
    if row is None or row.state not in pools.OPEN:
        return Ending(row.spawner, handle) if row is not None else None
    work.put(pools.answered(row, handle, session))
    return None


def save_failure(work: UnitOfWork, project: str, spawn: str, why: str, *, is_definite: bool) -> None:
    """The spawner's error. Definite: nothing was started. Else the process may still come: its offer runs out."""
    row = work.get(Spawn, project, spawn)
    if row is None or row.state != pools.STARTING:
        return
    if is_definite:
        end_spawn(work, row, pools.ENDED, f"not started: {why}")
        return
    work.put(pools.unanswered(row, why))
    pool = work.get(Pool, project, row.pool)
    if pool is not None:
        work.put(pools.failed(pool, why, work.now))

"""Claims that carry the id of a spawn: judged before anything else, so that no process outlives its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tenure.core import commands, pools
from tenure.core.outcomes import Outcome
from tenure.core.records import Pool, Spawn, replace
from tenure.engine.fleet.spawn_rows import record
from tenure.engine.runtime.unit_of_work import UnitOfWork

C = TypeVar("C", commands.ClaimTask, commands.ClaimNext)


def judged(work: UnitOfWork, cmd: C, decide: Callable[[UnitOfWork, C], Outcome]) -> Outcome:
    """DENIED_SPAWN where the process must end; else the answer to its claim, which is its sign of life."""
    assert cmd.spawn is not None
    spawn = work.get(Spawn, cmd.project, cmd.spawn)
    pool = None if spawn is None else work.get(Pool, cmd.project, spawn.pool)
    why = pools.refusal(spawn, pool, work.principal, cmd.agent, cmd.session, work.now)
    if why is not None:
        return Outcome(
            outcome="DENIED_SPAWN", directive="terminated", message=f"spawn {cmd.spawn[:80]} {why}",
            hint="end this process: its pool starts another one while tasks are ready",
        )  # fmt: skip
    assert spawn is not None
    outcome = decide(work, cmd if pool is None else _within(cmd, pool))
    after = pools.called(spawn, cmd.session, work.now, is_granted=outcome.outcome == "GRANTED")
    if spawn.state == pools.STARTING:
        record(work, "spawn.running", after)
    elif after != spawn:
        work.put(after)
    if outcome.outcome == "GRANTED" and pool is not None and pool.failures:
        work.put(pools.succeeded(pool))
    return outcome


def _within(cmd: C, pool: Pool) -> C:
    """The claim of the next task, limited to what the pool takes, as at its choice."""
    if not isinstance(cmd, commands.ClaimNext):
        return cmd
    capabilities = cmd.capabilities if cmd.capabilities is not None or not pool.capabilities else pool.capabilities
    return replace(cmd, types=cmd.types or pool.types, tracks=cmd.tracks or pool.tracks, capabilities=capabilities)

"""Pools: setting, pausing, removing and reading them. `fleet.py` keeps them filled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import commands, inputs, limits, pools
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, LimitReached, NotFound
from tenure.core.outcomes import Outcome
from tenure.core.records import Pool, Spawn, replace
from tenure.engine.fleet.spawn_rows import held_by
from tenure.engine.runtime.rows import fields_of
from tenure.engine.runtime.unit_of_work import Handlers, Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views import PoolInFull, PoolView, SpawnView

SECOND = 1_000_000
MOST_LISTED = limits.LISTED
LISTS = {"capabilities": "capability", "types": "type", "tracks": "track", "models": "model"}


# --- commands -----------------------------------------------------------------------------------------------


def set_pool(work: UnitOfWork, cmd: commands.SetPool) -> Outcome:
    before = work.get(Pool, cmd.project, cmd.pool)
    if before is None:
        pools.check_name(cmd.pool, "pool")
    if before is None and work.tally(Pool, {"project": cmd.project}, limits.POOLS) >= limits.POOLS:
        raise LimitReached(f"{cmd.project} has {limits.POOLS} pools, the maximum", "remove one first")
    wanted = _changed(before or _new(work, cmd), cmd)
    if wanted == before:
        return _done(work, "UNCHANGED", wanted)
    # A new setting is tried at once.
    wanted = replace(pools.succeeded(wanted), changed_at=work.now, error=None, error_at=None)
    _record(work, "pool.set", wanted)
    return _done(work, "UPDATED" if before else "CREATED", wanted)


def _new(work: UnitOfWork, cmd: commands.SetPool) -> Pool:
    if cmd.program is None:
        raise InvalidInput(f"pool {cmd.pool} is new: which program does it start?", "name an agent, as in claude")
    return Pool(
        project=cmd.project, id=cmd.pool, program=cmd.program, size=1, idle=round(limits.POOL_IDLE * SECOND),
        created_by=work.principal.name, created_at=work.now, changed_at=work.now,
    )  # fmt: skip


def _changed(row: Pool, cmd: commands.SetPool) -> Pool:
    """The row with every field that the command gives."""
    changes: dict[str, Any] = {}
    for field in ("program", "spawner"):
        if (value := getattr(cmd, field)) is not None:
            changes[field] = pools.check_name(value, field)
    for field, what in LISTS.items():
        if (value := getattr(cmd, field)) is not None:
            changes[field] = tuple(
                sorted((inputs.check_models if field == "models" else inputs.check_list)(value, what))
            )
    if cmd.size is not None:
        changes["size"] = pools.check_size(cmd.size)
    if cmd.idle is not None:
        changes["idle"] = inputs.micros(cmd.idle, "idle", low=1, high=86400)
    return replace(row, **changes)


def pause_pool(work: UnitOfWork, cmd: commands.PausePool) -> Outcome:
    row = named(work, cmd.project, cmd.pool)
    if not row.enabled:
        return _done(work, "UNCHANGED", row)
    why = inputs.check_text(cmd.reason, "reason", 500) or "paused by a person"
    row = replace(row, enabled=False, disabled_for=why, changed_at=work.now)
    _record(work, "pool.paused", row, cmd.reason)
    return _done(work, "UPDATED", row)


def resume_pool(work: UnitOfWork, cmd: commands.ResumePool) -> Outcome:
    row = named(work, cmd.project, cmd.pool)
    if row.enabled and row.wait_until is None:
        return _done(work, "UNCHANGED", row)
    row = pools.succeeded(replace(row, enabled=True, disabled_for=None, changed_at=work.now))
    _record(work, "pool.resumed", row)
    return _done(work, "UPDATED", row)


def remove_pool(work: UnitOfWork, cmd: commands.RemovePool) -> Outcome:
    """The pool's spawns stay: those that have not called yet are refused at their claim, the others finish."""
    row = named(work, cmd.project, cmd.pool)
    live = _live(work, row)
    work.record("pool.removed", project=row.project, removed=[row], details={"pool": row.id})
    running = [spawn.agent for spawn in live if spawn.state == pools.RUNNING]
    finishing = f"; {', '.join(running[:5])}{' …' if len(running) > 5 else ''} may finish" if running else ""
    return Outcome(outcome="UPDATED", command_id=work.command_id, message=f"pool {row.id} is removed{finishing}")


# --- what they share ----------------------------------------------------------------------------------------


def named(work: UnitOfWork, project: str, name: str) -> Pool:
    row = work.get(Pool, project, name) if len(name) <= inputs.LONGEST_NAME else None
    if row is None:
        known = [pool.id for pool in work.find(Pool, {"project": project}, limit=limits.POOLS)]
        raise NotFound(f"no pool {name[:80]!r} in project {project}{inputs.suggestion(name, known)}")
    return row


def _live(work: UnitOfWork, row: Pool) -> list[Spawn]:
    found = work.find(Spawn, {"project": row.project, "state": pools.OPEN})
    return [spawn for spawn in found if spawn.pool == row.id and pools.is_live(spawn, work.now)]


def _record(work: UnitOfWork, kind: str, row: Pool, message: str = "") -> None:
    details = {"pool": row.id, "program": row.program, "size": row.size, "spawner": row.spawner}
    work.record(kind, row, project=row.project, message=message, details=details)


def _done(work: UnitOfWork, outcome: str, row: Pool) -> Outcome:
    command_id = work.command_id if outcome != "UNCHANGED" else None
    return Outcome(outcome=outcome, command_id=command_id, pool=view(work, row, _live(work, row)))


# --- queries ------------------------------------------------------------------------------------------------


def read_pools(work: UnitOfWork, project: str) -> list[PoolView]:
    return [view(work, row, _live(work, row)) for row in work.find(Pool, {"project": project}, limit=limits.POOLS)]


def read_pool(work: UnitOfWork, project: str, name: str) -> PoolInFull:
    row = named(work, project, name)
    live = _live(work, row)
    return {**view(work, row, live), "spawns": [spawn_view(work, spawn) for spawn in live]}


def read_spawns(
    work: UnitOfWork,
    project: str,
    *,
    pool: str | None = None,
    state: Sequence[str] | None = None,
    limit: int = 100,
) -> list[SpawnView]:
    """The newest first. A removed pool's are found by its name too."""
    for one in state or ():
        inputs.check_choice(one, pools.STATES, "state")
    where: dict[str, object] = {"project": project}
    where |= {} if pool is None else {"pool": pool}
    where |= {} if not state else {"state": tuple(state)}
    found = work.find(Spawn, where, order="-started_at", limit=limit)
    return [spawn_view(work, spawn) for spawn in found]


def view(work: UnitOfWork, row: Pool, live: Sequence[Spawn]) -> PoolView:
    fields = "program spawner size capabilities types tracks models enabled disabled_for spawned failures wait_until"
    answer: PoolView = fields_of(row, fields + " error error_at created_by created_at changed_at") | {
        "name": row.id,
        "idle": row.idle / SECOND,
        "state": pools.status(row, work.now),
        "starting": sum(spawn.state == pools.STARTING for spawn in live),
        "running": sum(spawn.state == pools.RUNNING for spawn in live),
    }
    return answer


def spawn_view(work: UnitOfWork, spawn: Spawn) -> SpawnView:
    """As time has it: an offer that has run out is lost, whether or not a leader has noticed."""
    is_late = spawn.state == pools.STARTING and not pools.is_live(spawn, work.now)
    fields = "id pool agent spawner handle session remote_session term started_at offer_until running_at claimed_at"
    answer: SpawnView = fields_of(spawn, fields + " idle_at ended_at") | {
        "task": spawn.task_key,
        "state": pools.LOST if is_late else spawn.state,
        "why": pools.NOT_HEARD if is_late else spawn.why,
        "holds": [task.key for task in held_by(work, spawn)] if spawn.state == pools.RUNNING else [],
    }
    return answer


HANDLERS: Handlers = {
    commands.SetPool: set_pool,
    commands.PausePool: pause_pool,
    commands.ResumePool: resume_pool,
    commands.RemovePool: remove_pool,
}

READS: Reads = {q.Pools: read_pools, q.ShowPool: read_pool, q.Spawns: read_spawns}

"""Rows of spawns: their events, their ends, and the keys that end with them."""

from __future__ import annotations

from typing import Any

from tenure.core import claims, keys, pools, settle
from tenure.core.lifecycle import READY
from tenure.core.records import STORE, ApiKey, Pool, Spawn, Task, replace
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import brief_of, current_claim
from tenure.engine.runtime.unit_of_work import UnitOfWork


def record(work: UnitOfWork, kind: str, spawn: Spawn, level: str = "info") -> None:
    details: dict[str, Any] = {
        "pool": spawn.pool, "spawn": spawn.id, "agent": spawn.agent, "task": spawn.task, "task_key": spawn.task_key,
    }  # fmt: skip
    if kind == "spawn.starting":
        details |= {"spawner": spawn.spawner, "term": spawn.term}
    else:
        details["session"] = spawn.session
    if spawn.state not in pools.OPEN:
        details |= {"why": spawn.why, "claimed": spawn.claimed_at is not None}
    work.record(kind, spawn, project=spawn.project, agent=spawn.agent, level=level, details=details)


def end_spawn(
    work: UnitOfWork, spawn: Spawn, state: str, why: str, *, counts: bool = True, is_gone: bool = False
) -> Spawn:
    """The spawn is over: its place is free, its key is revoked, its offer is withdrawn.

    `counts`: where it claimed nothing, the pool backs off. `is_gone`: its process is proven to have ended, so its
    claims end as with their lease, without the wait.
    """
    ended = pools.over(spawn, state, why, work.now)
    record(work, f"spawn.{state}", ended, "info" if spawn.claimed_at is not None or not counts else "warning")
    revoke_key(work, spawn)
    _withdraw(work, spawn)
    if is_gone:
        _end_claims(work, spawn)
    pool = work.get(Pool, spawn.project, spawn.pool)
    if counts and spawn.claimed_at is None and spawn.why is None and pool is not None:
        work.put(pools.failed(pool, why, work.now))
    return ended


def new_key(work: UnitOfWork, spawn: Spawn) -> tuple[ApiKey, str]:
    """A key for this agent alone, and its secret, which is stored nowhere."""
    secret = keys.new_secret(work.random.token(keys.SECRET_BYTES))
    key = ApiKey(
        project=STORE, id=keys.new_id(work.random.token(keys.ID_BYTES)), name=f"spawn {spawn.id}", role="agent",
        user=f"pool:{spawn.pool}", agent=spawn.agent, projects=(spawn.project,), digest=keys.digest_of(secret),
        created_at=work.now, created_by=f"pool:{spawn.pool}",
    )  # fmt: skip
    work.record("key.created", key, project=STORE, details=_of_key(key))
    return key, keys.spelled(work.context.tenant, key.id, secret)


def revoke_key(work: UnitOfWork, spawn: Spawn) -> None:
    """The row is removed with the key's end: a pool would leave thousands of them. The log has both."""
    key = None if spawn.api_key is None else work.get(ApiKey, STORE, spawn.api_key)
    if key is not None:
        work.record("key.revoked", project=STORE, removed=[key], details=_of_key(key))


def _of_key(key: ApiKey) -> dict[str, Any]:
    return {"key": key.id, "name": key.name, "role": key.role, "by": key.created_by}


def _withdraw(work: UnitOfWork, spawn: Spawn) -> None:
    """Nobody will come for the offer: any agent may claim the task. Another offer to the same agent stays."""
    task = work.get(Task, spawn.project, spawn.task)
    ours = (READY, spawn.agent, spawn.offer_until)
    if task is not None and (task.state, task.offer_to, task.offer_until) == ours:
        free = replace(task, offer_to=None, offer_until=None, offer_term=None)
        work.record("task.offer_ended", task=free, details={"agent": spawn.agent})
        spread(work)


def held_by(work: UnitOfWork, spawn: Spawn) -> list[Task]:
    """What the process holds."""
    if spawn.session is None:
        return []
    found = work.find(Task, {"project": spawn.project, "session": spawn.session})
    return [task for task in found if claims.is_held(task)]


def _end_claims(work: UnitOfWork, spawn: Spawn) -> None:
    for task in held_by(work, spawn):
        claim = current_claim(work, task)
        lost = settle.gone(task, claim, brief_of(work, task), work.now, work.random.fraction())
        assert lost.claim is not None, claim.id
        details = {**lost.details, "spawn": spawn.id, "said_by": f"spawner:{spawn.spawner}"}
        message = f"the process of spawn {spawn.id} is gone"
        work.record(
            lost.kind, lost.claim, task=lost.task, holder=task, level="warning", message=message, details=details
        )
    spread(work)

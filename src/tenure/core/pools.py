"""Pools: which places are free, which process may claim, which spawns are lost, how long a pool backs off.

A pool has `size` places, and each place has one agent's name. A spawn takes a place; it is *live* while its process may
claim: `running`, or `starting` and its offer not over. A place never has two live spawns, and a spawn serves one
session, so no more than `size` processes of a pool are able to claim, however many are still alive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from tenure.core import ids, limits
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput
from tenure.core.records import Pool, Spawn, replace

STARTING, RUNNING, ENDED, LOST = "starting", "running", "ended", "lost"
STATES = (STARTING, RUNNING, ENDED, LOST)
OPEN = (STARTING, RUNNING)
AGENT_TYPES = ("claude", "codex", "gemini", "opencode", "copilot")  # programs that are agents; others are commands
OFFER = limits.SPAWN_OFFER
BACK_OFF_FIRST = 1_000_000
UNANSWERED = 3_000_000  # a spawn without a handle is searched for after this
LONGEST_NAME = limits.POOL_NAME
KEPT = limits.SPAWNS_KEPT
LONGEST_ERROR = limits.POOL_ERROR

NOT_HEARD = f"it did not claim within {OFFER // 1_000_000} s"
IDLE = "it held no task for too long"
LEFT = "its agent left"
EXITED = "its process has ended"
ABSENT = "its spawner has no process for it"
UNKNOWN = "its spawner does not know the process"
TERMINATED = "its agent was terminated by an operator"
SMALLER = "its pool is removed, or has fewer places now"


# --- settings ---------------------------------------------------------------------------------------------------


def check_name(name: str, what: str) -> str:
    """Names of pools, programs and spawners: part of agents' names and of tables in the configuration."""
    if what == "program" and ("/" in name or " " in name):
        raise InvalidInput(
            f"{what} {name[:80]!r} is a command, and a pool starts programs by name",
            'name it in tenure.toml, as in [programs.bot] agent = "…", run `tenure trust`, and set `--agent bot`',
        )
    ids.check_new_name(name, what)
    if len(name) > LONGEST_NAME:
        raise InvalidInput(f"{what} {name[:80]!r} must have at most {LONGEST_NAME} characters")
    return name


def check_size(size: int) -> int:
    if not 1 <= size <= limits.POOL_SIZE:
        raise InvalidInput(
            f"size must be from 1 to {limits.POOL_SIZE} (got {size})", "to start nothing, pause the pool"
        )
    return size


def agent_of(pool: str, place: int) -> str:
    """The name that claims from this place."""
    return f"{pool}-{place}"


def agent_type(program: str) -> str:
    return program if program in AGENT_TYPES else "generic"


# --- places -----------------------------------------------------------------------------------------------------


def is_live(spawn: Spawn, now: int) -> bool:
    """Whether its process may be able to claim."""
    return spawn.state == RUNNING or (spawn.state == STARTING and now < spawn.offer_until)


def free_places(pool: Pool, spawns: Iterable[Spawn], now: int) -> list[int]:
    """The places of the pool without a live spawn."""
    taken = {spawn.place for spawn in spawns if spawn.pool == pool.id and is_live(spawn, now)}
    return [place for place in range(1, pool.size + 1) if place not in taken]


def may_start(pool: Pool, now: int) -> bool:
    return pool.enabled and (pool.wait_until is None or pool.wait_until <= now)


# --- backing off --------------------------------------------------------------------------------------------------


def failed(pool: Pool, why: str, now: int) -> Pool:
    """After a spawn that claimed nothing: 1, 2, 4 … 60 s until the next."""
    pause = min(limits.SPAWN_BACK_OFF, BACK_OFF_FIRST << min(pool.failures, 10))
    from tenure.core.redaction import without_secrets  # few spawns fail; keeps startup fast

    text = without_secrets(why)[:LONGEST_ERROR]
    return replace(
        pool, failures=pool.failures + 1, wait_until=now + pause, error=text, error_at=now,
    )  # fmt: skip


def succeeded(pool: Pool) -> Pool:
    """After the first claim of one of its spawns."""
    return replace(pool, failures=0, wait_until=None, error=None, error_at=None) if pool.failures else pool


def status(pool: Pool, now: int) -> str:
    if not pool.enabled:
        return "paused"
    if not may_start(pool, now):
        return "backing off"
    return "failing" if pool.error is not None else "ok"


# --- claims -------------------------------------------------------------------------------------------------------


def refusal(
    spawn: Spawn | None, pool: Pool | None, principal: Principal, agent: str, session: str, now: int
) -> str | None:
    """Why a process with this spawn may not claim; None where it may.

    Ids of spawns are shown to everybody in the project: over HTTP the key that was made for the spawn has to claim.
    """
    if spawn is None:
        return "is not known here"
    if principal.is_served and spawn.api_key is not None and principal.key != spawn.api_key:
        return "is for the process that has its own key"
    if spawn.agent != agent:
        return f"is for agent {spawn.agent}, not for {agent[:80]}"
    if spawn.state not in OPEN:
        return f"is {spawn.state}: {spawn.why or 'it is over'}"
    if spawn.session is not None:
        return None if spawn.session == session else "belongs to another session: its agent was started twice"
    if not is_live(spawn, now):
        return f"is {LOST}: {NOT_HEARD}"
    if pool is None:
        return f"is over: its pool {spawn.pool} is removed"
    if spawn.place > pool.size:
        return f"is over: pool {pool.id} has {pool.size} places now, and this was place {spawn.place}"
    return None


def called(spawn: Spawn, session: str, now: int, *, is_granted: bool) -> Spawn:
    """After a claim of its process, granted or not."""
    return replace(
        spawn, state=RUNNING, session=session, running_at=spawn.running_at or now, funds={}, why=None,
        claimed_at=spawn.claimed_at or (now if is_granted else None),
        idle_at=None if is_granted else spawn.idle_at or now,
    )  # fmt: skip


# --- ends ---------------------------------------------------------------------------------------------------------


def over(spawn: Spawn, state: str, why: str, now: int) -> Spawn:
    return replace(spawn, state=state, why=why[:LONGEST_ERROR], ended_at=now, funds={}, idle_at=None)


class Facts(msgspec.Struct, frozen=True):
    """Facts about an open spawn besides its row."""

    pool: Pool | None  # None: removed
    report: str | None = None  # of its spawner: running, ended, unknown
    has_left: bool = False  # its session has ended
    is_terminated: bool = False  # its agent, by an operator
    holds: bool = False  # a task
    is_absent: bool = False  # its spawner has started no process for it


class End(msgspec.Struct, frozen=True):
    """How a spawn ends. `counts`: it is a failure of its pool, if it claimed nothing."""

    state: str
    why: str
    counts: bool = True


def end_of(spawn: Spawn, facts: Facts, now: int) -> End | None:
    """How an open spawn ends now; None where it goes on."""
    if facts.report == ENDED:
        return End(ENDED, EXITED)
    if facts.is_absent:
        return End(ENDED, ABSENT)
    if facts.is_terminated and not facts.holds:
        return End(ENDED, TERMINATED, counts=False)
    if spawn.state == STARTING:
        if now >= spawn.offer_until:
            return End(LOST, NOT_HEARD)
        if facts.pool is None or spawn.place > facts.pool.size:
            return End(ENDED, SMALLER, counts=False)
        return None
    if facts.has_left:
        return End(ENDED, LEFT)
    if facts.holds or spawn.idle_at is None:
        return None
    idle = now - spawn.idle_at
    if facts.report == "unknown" and idle >= limits.SPAWN_UNKNOWN:
        return End(LOST, UNKNOWN)
    allowed = facts.pool.idle if facts.pool is not None else round(limits.POOL_IDLE * 1_000_000)
    return End(ENDED, IDLE) if idle >= allowed else None


def watched(spawn: Spawn, holds: bool, now: int) -> Spawn:
    """The row with the time since which a running process holds nothing."""
    if spawn.state != RUNNING or holds == (spawn.idle_at is None):
        return spawn
    return replace(spawn, idle_at=None if holds else now)


def answered(spawn: Spawn, handle: str, session: str | None) -> Spawn:
    """After the spawner's answer. It runs once it has called."""
    return replace(spawn, handle=handle, remote_session=session)


def unanswered(spawn: Spawn, why: str) -> Spawn:
    """After a call whose outcome is unknown: the process may still come, until its offer runs out."""
    return replace(spawn, why=f"no answer: {why}"[:LONGEST_ERROR])


def is_unanswered(spawn: Spawn, now: int) -> bool:
    """Whether its spawner's answer should have been saved by now: the leader that called it may be gone."""
    return spawn.handle is None and now >= spawn.started_at + UNANSWERED


def is_absent(spawn: Spawn, asked_at: int) -> bool:
    """Whether "no process" proves that none will come: the call of another leader may have been on its way."""
    return asked_at >= spawn.started_at + limits.SPAWN_ABSENT


# --- budgets ------------------------------------------------------------------------------------------------------


def pending_funds(spawns: Iterable[Spawn], project: str, now: int) -> dict[tuple[str, str], int]:
    """(project, budget) → what offers of pools would reserve; the tenant's budget counts those of all projects."""
    found: dict[tuple[str, str], int] = {}
    for spawn in spawns:
        if spawn.state != STARTING or not is_live(spawn, now):
            continue
        for budget, amount in spawn.funds.items():
            place = ("" if budget == "tenant" else spawn.project, budget)
            found[place] = found.get(place, 0) + amount
    return {place: amount for place, amount in found.items() if place[0] in ("", project)}


def fits(
    amounts: Mapping[str, int], rooms: Mapping[str, int], pending: Mapping[tuple[str, str], int], project: str
) -> bool:
    """Whether each budget still has room for this task besides the offers that are not claimed yet."""
    return all(
        amount + pending.get(("" if budget == "tenant" else project, budget), 0) <= rooms[budget]
        for budget, amount in amounts.items()
    )


def surplus(ended: Sequence[Spawn]) -> Collection[Spawn]:
    """The oldest of the ended spawns beyond the number that is kept."""
    newest = sorted(ended, key=lambda spawn: (spawn.ended_at or 0, spawn.id), reverse=True)
    return newest[KEPT:]

"""Agents, sessions, mail and leadership: what follows from their rows and the time."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.core import limits
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.records import Agent, HealthMinute, Leader, Session, replace

SESSION_IDLE = limits.SESSION_IDLE
PRESENCE = limits.PRESENCE
INSTANCE = "instance"  # not an agent type: the broker names `cmd.agent.instance.ID` are mailboxes
TYPE = "@type:"  # an address: all agents of that type
MESSAGE_TYPES = ("chat", "request", "response", "system")
STATUSES = ("active", "idle", "draining", "stale", "offline")
HEALTHY = "healthy"
HEALTH = (HEALTHY, "degraded", "unresponsive")
HEALTH_WORDS = (*HEALTH, "ok")  # what a heartbeat may report; `ok` is healthy
PERSON = "human"  # the type of a person's shell
MINUTE = 60_000_000


def status(agent: Agent, holds: int, now: int, *, is_gone: bool = False) -> str:
    """offline, draining, stale, active or idle. Stale concerns the agent, not its claims.

    `is_gone`: its process is proven to have ended, though nobody has recorded its death.
    """
    if is_gone or agent.left_at is not None or (agent.terminated_at is not None and not holds):
        return "offline"
    if agent.draining or agent.terminated_at is not None:
        return "draining"
    if is_silent(agent, now):
        return "offline" if is_person(agent) else "stale"
    return "active" if holds else "idle"


def health_word(reported: str) -> str:
    """The health that a heartbeat reported, in one of the words that views have."""
    return HEALTHY if reported == "ok" else reported


def is_person(agent: Agent) -> bool:
    """A shell that a person claims from. Nobody expects signs of life of it."""
    return agent.type == PERSON


def is_silent(agent: Agent, now: int) -> bool:
    return agent.left_at is None and now - agent.last_seen >= agent.stale_after


def is_stale(agent: Agent, now: int) -> bool:
    """Whether an agent should have given a sign of life; people go home without one."""
    return is_silent(agent, now) and not is_person(agent)


def is_expected(agent: Agent) -> bool:
    """Whether it counts among the agents that alerts watch."""
    return agent.left_at is None and not is_person(agent)


def next_heartbeat(agent: Agent, status: str) -> int | None:
    """When its next heartbeat is due; None where no program sends any."""
    return agent.last_seen + agent.heartbeat if agent.managed and status != "offline" else None


def minute_of(agent: Agent, now: int, before: HealthMinute | None) -> HealthMinute:
    """The agent's row for this minute: the most of each, and its last reported health."""
    at = now - now % MINUTE
    if before is None or before.at != at:
        before = HealthMinute(project=agent.project, id=minute_id(agent.id, now), agent=agent.id, at=at)
    return replace(
        before,
        health=agent.health,
        memory_mb=_most(before.memory_mb, agent.memory_mb),
        cpu_percent=_most(before.cpu_percent, agent.cpu_percent),
        percent=agent.percent,
    )


def minute_id(agent: str, now: int) -> str:
    return f"{agent}@{now // MINUTE % limits.HEALTH_MINUTES:02d}"


def _most(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def uses_name(ended_at: int | None, last_activity: int, stale_after: int, now: int) -> bool:
    """Whether a session acts for its agent now."""
    return ended_at is None and now - last_activity < stale_after


def taken_text(name: str, session: str, last_activity: int, now: int) -> str:
    """The warning of an agent that joins by the name of another: sessions may share one, and seldom mean to."""
    return (
        f"the name {name} is taken: session {session} uses it, seen {max(0, now - last_activity) // 1_000_000} s ago. "
        "Both are one agent now, with one inbox; join with another name unless that is meant"
    )


def is_over(session: Session, holds: int, now: int) -> bool:
    return session.ended_at is not None or (holds == 0 and session.last_activity < in_use_since(now))


def in_use_since(now: int) -> int:
    """A session without a sign of life since then is over, unless it holds a task."""
    return now - SESSION_IDLE + 1


def recipients(
    address: str,
    sender: str,
    agents: Iterable[Agent],
    *,
    busy: Iterable[str],
    leader: str | None,
    on_track: Iterable[str],
    now: int,
) -> tuple[str, ...]:
    """The recipients of a message, resolved once, when it is sent. Never the sender itself, unless named."""
    known = {agent.id: agent for agent in agents if agent.left_at is None}
    if not address.startswith("@"):
        return (address,)
    if address == "@all":
        found: Iterable[str] = known
    elif address == "@leader":
        if leader is None or leader == sender:
            why = (
                "this project has no leader now" if leader is None else f"{sender} leads, so it would reach nobody else"
            )
            raise NotFound(f"@leader: {why}", "send to an agent by name, or to @all; `tenure agents` lists them")
        return (leader,)
    elif address == "@idle":
        taken = set(busy)
        found = (name for name, agent in known.items() if name not in taken and status(agent, 0, now) == "idle")
    elif address.startswith(TYPE):
        kind = address.removeprefix(TYPE)
        found = (name for name, agent in known.items() if agent.type == kind)
    elif address.startswith("@track:"):
        code = address.removeprefix("@track:")
        there = set(on_track)
        found = (name for name, agent in known.items() if name in there or code in agent.tracks)
    else:
        raise InvalidInput(f"{address[:60]!r} must be an agent, @all, @leader, @idle, @track:X or @type:X")
    return tuple(sorted(name for name in found if name != sender))


def sent_text(address: str, to: tuple[str, ...], *, for_programs: bool) -> tuple[str, str | None]:
    """What became of a message, and what its sender may do."""
    if to:
        return f"sent to {len(to)} agent{'' if len(to) == 1 else 's'}", None
    if for_programs:
        return f"sent to no agent: none is {address}; brokers carry it to workers", None
    there = "no other agent is here" if address == "@all" else f"no other agent is {address} now"
    return f"sent to nobody: {there}", "`tenure agents` lists them; who joins later does not get it"


def elected(
    leader: Leader | None,
    project: str,
    name: str,
    holder: str,
    lease: int,
    term: int | None,
    now: int,
    *,
    store_term: int | None = None,
) -> Leader | None:
    """The leader's row after `holder` asked to lead, or None when another leads.

    A live leader renews with its own term; a process that does not know the term is not that leader, whatever its name.
    Once the lease is over every election has a new term.

    `store_term`: the holder leads the store with this term, and takes one of its tenants. It replaces the leader of an
    earlier term of the store, whose lease there may last; and never that of a later one, though its lease be over.
    """
    if store_term is not None and leader is not None and leader.store_term is not None:
        if leader.store_term > store_term:
            return None
        if leader.store_term < store_term:
            leader = replace(leader, until=min(leader.until, now))
    if leader is not None and leader.until > now:
        if leader.holder != holder or term != leader.term:
            return None
        return replace(leader, lease=lease, until=now + lease)
    return Leader(
        project=project, id=name, holder=holder, term=leader.term + 1 if leader else 1, elected_at=now,
        lease=lease, until=now + lease, duties_begun=leader.duties_begun if leader else {}, store_term=store_term,
    )  # fmt: skip


def is_new_start(leader: Leader, duty: str, at: int, now: int) -> bool:
    """Whether the duty was not begun for this time yet, in this term or an earlier one.

    A start in the future was written by a clock that has been set back since, and must not block the duty.
    """
    return not at <= leader.duties_begun.get(duty, 0) <= now

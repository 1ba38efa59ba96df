"""Why a task is in its state, in sentences. Writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import claims, dead_letters, lifecycle, priority, tracks
from tenure.core import queries as q
from tenure.core.filters import Present
from tenure.core.graph import is_met
from tenure.core.instants import format_instant, lasting
from tenure.core.records import Agent, Project, Reservation, Session, Task, Track
from tenure.engine.checks import validation_reads
from tenure.engine.reads import task_view
from tenure.engine.runtime.rows import brief_of, project_of, task_named
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.verbs import claim_rules
from tenure.engine.verbs.agents import is_over
from tenure.engine.verbs.claimant import KnownClaimant

if TYPE_CHECKING:
    from tenure.core.views.task_views import CouldTake, WhyView


def why(work: UnitOfWork, project: str, name: str) -> WhyView:
    """Why a task is in its state: its position in the order, its dependencies, its holder, who could claim it."""
    settings = project_of(work, project)
    task = task_named(work, project, name)
    reasons: list[str] = []
    parts = priority.explain(task, work.now)
    answer: WhyView = {"key": task.key, "state": task.state, "priority": parts, "reasons": reasons}
    if claims.is_held(task):
        left = lasting(((task.lease_until or work.now) - work.now) / 1e6)
        reasons.append(f"agent {task.agent} holds generation {task.generation}; its lease ends in {left}")
    waits = task_view.waits_for(work, task)
    if waits:
        answer["waits_for"] = list(waits)
        reasons += _by_dependencies(work, task)
    for field, text in (("not_before", "may not start before"), ("retry_at", "is retried at")):
        at = getattr(task, field)
        if at is not None and at > work.now:
            reasons.append(f"{text} {_moment(work, at)}")
    if task.state == lifecycle.PAUSED:
        reasons += [f"paused: {one.reason or one.cause} ({lifecycle.REMEDIES[one.cause]})" for one in task.pauses]
    if task.state == lifecycle.CANCELLED:
        reasons.append(f"{task.state}: {task.reason}" if task.reason else task.state)
    if task.state == lifecycle.DEAD_LETTERED:
        reasons.append(f"dead letter {dead_letters.why(task, brief_of(work, task).retry)[:300]}")
    if task.state == lifecycle.COMPLETED:
        result = task_view.accepted_result(work, task)
        by = "" if result is None else f": the result of agent {result.agent}, generation {result.generation}"
        reasons.append(f"completed{by}")
    reasons += validation_reads.sentences(work, task)
    if task.state == lifecycle.CREATED:
        reasons.append("a draft: publish it")
    if task.offer_to is not None:
        until = f" until {_moment(work, task.offer_until)}" if task.offer_until is not None else ""
        reasons.append(f"offered to agent {task.offer_to}{until}")
    reasons += _by_router(work, settings, task)
    taken = _in_the_way(work, task)
    reasons += [] if taken is None else [_overlap(work, task, taken)]
    reasons += [priority.stop_text(s, r) for s, r in settings.stopped.items() if s in priority.scopes_of(task, "")]
    if task.state == lifecycle.READY:
        answer["agents"], shared = _who_could(work, settings, task)
        reasons += shared
        if all(one["why_not"] for one in answer["agents"]):
            reasons.append("no known agent can take it" if answer["agents"] else "no agent is known yet")
    return answer


def _moment(work: UnitOfWork, at: int) -> str:
    return f"{format_instant(at)[:19].replace('T', ' ')} UTC, in {lasting((at - work.now) / 1e6)}"


# What a dependency that cannot be completed any more needs.
_ENDED = {
    lifecycle.DEAD_LETTERED: "a dead letter: retry it, adopt a result, or unlink it",
    lifecycle.CANCELLED: "cancelled: undo that, retry it, or unlink it",
    lifecycle.PAUSED: "paused",
    lifecycle.CREATED: "a draft: publish it",
}


def _by_dependencies(work: UnitOfWork, task: Task) -> list[str]:
    """Dependencies that only wait in one sentence; each that needs a person in its own."""
    unmet = [other for edge, other in task_view.dependencies(work, task) if not is_met(edge, other.state)]
    unmet.sort(key=lambda other: other.key)
    going = [other.key for other in unmet if other.state not in _ENDED]
    more = f" and {len(going) - 5} others" if len(going) > 5 else ""
    waiting = [f"waiting for {', '.join(going[:5])}{more}"] if going else []
    ended = [other for other in unmet if other.state in _ENDED]
    return [*waiting, *(f"waiting for {other.key}, which is {_ENDED[other.state]}" for other in ended[:5])]


def _by_router(work: UnitOfWork, settings: Project, task: Task) -> list[str]:
    """The agents that a ready task's track is assigned to, if it takes no more."""
    if not settings.router or task.state != lifecycle.READY:
        return []
    track = work.require(Track, task.project, task.track)
    there = tracks.assigned(track, work.now)
    return [f"track {track.id} is assigned to {', '.join(there)}"] if len(there) >= track.max_agents else []


def _in_the_way(work: UnitOfWork, task: Task) -> Reservation | None:
    """A reservation that conflicts with what a ready task touches or needs."""
    if task.state != lifecycle.READY or not task.guarded:
        return None
    return claim_rules.in_the_way(work, task, "")


def _overlap(work: UnitOfWork, task: Task, other: Reservation) -> str:
    holder = work.get(Task, task.project, other.task) if other.task else None
    whose = f" for {holder.key}" if holder else ""
    until = holder.lease_until if holder else other.until
    ends = f"; that lease ends at {_moment(work, until)}" if until is not None else ""
    return f"would overlap {other.pattern}, reserved by agent {other.agent}{whose}{ends}"


def _who_could(work: UnitOfWork, settings: Project, task: Task) -> tuple[list[CouldTake], list[str]]:
    """For each known agent why it cannot claim the task, by name or as its next one; nothing: it can.

    And what keeps the task from all of them: from anybody, where no agent is known.
    """
    known = work.find(Agent, {"project": task.project, "left_at": Present(False)})
    sessions = _sessions(work, task.project)
    nobody = Agent(project=task.project, id="", registered_at=work.now, last_seen=work.now)
    found = {
        agent.id: list(claim_rules.obstacles(KnownClaimant(work, settings, agent, sessions.get(agent.id)), task))
        for agent in known or [nobody]
    }
    of_all = set.intersection(*({o.sentence for o in obstacles} for obstacles in found.values()))
    first = next(iter(found.values()))
    shared = [o.sentence for o in first if o.word in claim_rules.OF_TASK and o.sentence in of_all]
    return [
        {"agent": agent.id, "why_not": list(dict.fromkeys(o.sentence for o in found[agent.id]))} for agent in known
    ], list(dict.fromkeys(shared))


def _sessions(work: UnitOfWork, project: str) -> dict[str, Session]:
    """The session in which each agent gave its last sign of life; an agent without one would begin a new one."""
    open_ = work.find(Session, {"project": project, "ended_at": Present(False)})
    open_.sort(key=lambda session: (session.last_activity, session.id))
    return {session.agent: session for session in open_ if not is_over(work, session)}


READS: Reads = {q.Why: why}

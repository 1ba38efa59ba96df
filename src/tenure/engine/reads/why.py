"""Why a task is in its state, in sentences. Writes nothing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tenure.core import claims, lifecycle, priority, tracks
from tenure.core import queries as q
from tenure.core.filters import Present
from tenure.core.graph import is_met
from tenure.core.instants import format_instant, lasting
from tenure.core.records import Agent, Project, Reservation, Task, Track
from tenure.engine.checks import validation_reads
from tenure.engine.models.model_choice import Cooling, user_of
from tenure.engine.reads import task_view
from tenure.engine.runtime.rows import project_of, task_named
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.verbs.track_router import assignments_for

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
    if task.state == lifecycle.CANCELLED and task.reason:
        reasons.append(f"{task.state}: {task.reason}")
    if task.state == lifecycle.DEAD_LETTERED and task.last_error:
        reasons.append(f"dead letter after {task.attempts} attempts: {task.last_error.message[:200]}")
    reasons += validation_reads.sentences(work, task)
    if task.state == lifecycle.CREATED:
        reasons.append("a draft: publish it")
    if task.offer_to is not None:
        until = f" until {_moment(work, task.offer_until)}" if task.offer_until is not None else ""
        reasons.append(f"offered to agent {task.offer_to}{until}")
    reasons += _by_router(work, settings, task)
    reasons += _by_budget(work, settings, task)
    if task.set_aside_for is not None and not task.set_aside_for.startswith("$"):
        other = work.get(Task, project, task.set_aside_for)
        reasons.append(f"would overlap the claim of {other.key if other else task.set_aside_for}")
    taken = _in_the_way(work, task)
    reasons += [] if taken is None else [_overlap(work, task, taken)]
    reasons += [priority.stop_text(s, r) for s, r in settings.stopped.items() if s in priority.scopes_of(task, "")]
    if task.state == lifecycle.READY:
        answer["agents"] = _who_could(work, settings, task, taken)
        if not any(not a["why_not"] for a in answer["agents"]):
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
    from tenure.engine.verbs.claim import in_the_way

    return in_the_way(work, task, "")


def _overlap(work: UnitOfWork, task: Task, other: Reservation) -> str:
    holder = work.get(Task, task.project, other.task) if other.task else None
    whose = f" for {holder.key}" if holder else ""
    until = holder.lease_until if holder else other.until
    ends = f"; that lease ends at {_moment(work, until)}" if until is not None else ""
    return f"would overlap {other.pattern}, reserved by agent {other.agent}{whose}{ends}"


def _by_budget(work: UnitOfWork, settings: Project, task: Task) -> list[str]:
    """Why no budget covers a ready task, for any agent."""
    if not (task.capped or settings.funded):
        return []
    from tenure.engine.budgets.budget_guard import reason, short_of

    short = short_of(work, settings, task, "") if task.state == lifecycle.READY else None
    return [] if short is None else [reason(work, short)]


def _who_could(work: UnitOfWork, settings: Project, task: Task, other: Reservation | None) -> list[CouldTake]:
    """For each known agent why it cannot claim the task; an empty list means that it can.

    The reservation `other` keeps everybody away, but not its own agent where it belongs to no claim.
    """
    out: list[CouldTake] = []
    cooling = Cooling(work, settings)
    for agent in work.find(Agent, {"project": task.project, "left_at": Present(False)}):
        profile = priority.profile_of(
            agent, settings.stopped, assignments_for(work, settings, agent.id).taken
        )  # fmt: skip
        obstacles = [
            *priority.lane_obstacles(profile, priority.lane_of_task(task)),
            *priority.task_obstacles(profile, task, work.now, partial(cooling.waits, user=user_of(agent))),
        ]
        why_not = [o.sentence for o in obstacles]
        if agent.terminated_at is not None:
            why_not.append("was terminated by an operator")
        elif agent.draining:
            why_not.append("is draining")
        if (agent.cool_until or 0) > work.now:
            why_not.append("is cooling off after failures")
        if other is not None and (other.task or other.agent != agent.id):
            why_not.append(f"would overlap {other.pattern}")
        out.append({"agent": agent.id, "why_not": why_not})
    return out


READS: Reads = {q.Why: why}

"""An agent's claims: what it holds and lost in a session, and what a claim would find. Nothing is written."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from tenure.core import claims, commands, limits, priority
from tenure.core import queries as q
from tenure.core.filters import Range
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Project, Task
from tenure.engine.reads.tasks import views
from tenure.engine.runtime.batch_reads import Lanes
from tenure.engine.runtime.rows import fields_of, project_of
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.verbs.claim import claim_next
from tenure.engine.verbs.claim_rules import in_the_way

if TYPE_CHECKING:
    from tenure.core.views import OwnClaim, TaskView
DAY = limits.LOST_CLAIM_IN_STORE


def ready(work: UnitOfWork, project: str, *, track: str | None = None, limit: int = 50) -> list[TaskView]:
    """Claimable tasks, best first, for any agent: not those that a stopped scope or a reservation keeps back."""
    settings = project_of(work, project)
    if settings.set_aside:
        from tenure.engine.budgets.unaffordable import put_back

        put_back(work, project)
    lanes = Lanes(work, project, expected=limit)
    offered = lanes.offer(lambda lane: track in (None, lane.track))
    return views(work, islice((task for task in offered if _is_free(work, settings, task)), limit))


def _is_free(work: UnitOfWork, project: Project, task: Task) -> bool:
    if any(scope in project.stopped for scope in priority.scopes_of(task, "")):
        return False
    return in_the_way(work, task, "") is None


def next_for(work: UnitOfWork, project: str, agent: str, session: str, **filters: Any) -> Outcome:
    """What `claim_next` would answer now, with the task as it is before that claim.

    The claim itself runs on the rows of a read transaction, which are never saved: so the two cannot disagree.
    """
    before = work.bookmark()
    answer = claim_next(work, commands.ClaimNext(project=project, agent=agent, session=session, **filters))
    if not answer.ok or answer.task is None:
        return answer
    work.undo_to(before)
    task = work.require(Task, project, answer.task["id"])
    return Outcome(outcome="OK", task=views(work, [task])[0], inputs=answer.inputs)


def own_claims(work: UnitOfWork, project: str, session: str, agent: str | None = None) -> list[OwnClaim]:
    """Live claims, and claims that expired or were paused while held in the last day; oldest first."""
    mine = {"project": project, "session": session} | ({} if agent is None else {"agent": agent})
    found = work.find(Claim, {**mine, "state": "active"})
    ended = work.find(Claim, {**mine, "released_at": Range(work.now - DAY + 1)})
    found += [claim for claim in ended if not claims.is_ended_by_holder(claim)]
    tasks = work.get_many(Task, project, {claim.task for claim in found})
    return [
        fields_of(claim, "task agent generation state reason released_at") | fields_of(tasks[claim.task], "key ref")
        for claim in sorted(found, key=lambda claim: (claim.acquired_at, claim.id))
        if claim.task in tasks
    ]


READS: Reads = {q.Ready: ready, q.Next: next_for, q.OwnClaims: own_claims}

"""What a claim would find: ready tasks in the order of the claim. Nothing is claimed or written."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from tenure.core import commands, inputs
from tenure.core import queries as q
from tenure.core.outcomes import Outcome
from tenure.core.records import Task
from tenure.engine.reads.tasks import MOST_LISTED, views
from tenure.engine.runtime.batch_reads import Lanes
from tenure.engine.runtime.rows import project_of
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.verbs.claim import claim_next

if TYPE_CHECKING:
    from tenure.core.views import TaskView


def ready(work: UnitOfWork, project: str, *, track: str | None = None, limit: int = 50) -> list[TaskView]:
    """Claimable tasks, best first, for any agent."""
    if project_of(work, project).set_aside:
        from tenure.engine.budgets.unaffordable import put_back

        put_back(work, project)
    limit = inputs.check_limit(limit, MOST_LISTED)
    lanes = Lanes(work, project, expected=limit)
    return views(work, islice(lanes.offer(lambda lane: track in (None, lane.track)), limit))


def next_for(work: UnitOfWork, project: str, agent: str, session: str, **filters: Any) -> Outcome:
    """What `claim_next` would answer now, with the task as it is before that claim.

    The claim itself runs on the rows of a read transaction, which are never saved: so the two cannot disagree.
    """
    before = work.bookmark()
    answer = claim_next(work, commands.ClaimNext(project=project, agent=agent, session=session, **filters))
    if not answer.ok or answer.task is None:
        return answer
    work.undo_to(before)
    task = work.get(Task, project, answer.task["id"])
    assert task is not None
    return Outcome(outcome="OK", task=views(work, [task])[0], inputs=answer.inputs)


READS: Reads = {q.Ready: ready, q.Next: next_for}

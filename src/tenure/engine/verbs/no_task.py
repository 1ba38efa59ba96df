"""NO_TASK: what an agent that finds nothing to claim learns."""

from __future__ import annotations

from collections.abc import Mapping

from tenure.core import lifecycle, limits, priority
from tenure.core.outcomes import Outcome
from tenure.core.records import Task
from tenure.engine.runtime.rows import project_of
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.stores.port import Asked


def no_task(
    work: UnitOfWork,
    project: str,
    agent: str,
    unfinished: tuple[str, ...],
    passed_over: Mapping[str, int],
    *,
    next_at: int | None = None,
) -> Outcome:
    """NO_TASK with the number of tasks by state; counts stop at a thousand to keep the answer cheap."""
    counted = {
        name: (Task, {"project": project, "state": states if len(states) > 1 else states[0]}, limits.PASSED_OVER)
        for name, states in lifecycle.PASSED_OVER.items()
    }
    work.tx.expect([*(Asked("tally", one) for one in counted.values()), Asked("next_due", (project,))])
    counts = {**{name: work.tally(*one) for name, one in counted.items()}, **passed_over}
    ends = [at for at in (work.next_due(project), next_at) if at is not None]
    due = min(ends, default=None)
    stopped = project_of(work, project).stopped
    texts = [priority.stop_text(scope, why) for scope, why in stopped.items() if _concerns(scope, agent)]
    message = "; ".join((f"nothing to claim for agent {agent}", *texts))
    return Outcome(
        outcome="NO_TASK",
        counts=counts,
        unfinished=unfinished or None,
        **work.retry_at(due),
        message=message,
        hint=priority.GO if texts else None,
    )


def _concerns(scope: str, agent: str) -> bool:
    """Whether a stopped scope may keep this agent from a task."""
    return not scope.startswith("agent:") or scope == f"agent:{agent}"

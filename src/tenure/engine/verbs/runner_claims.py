"""Claims of runners (`core/runners.py`): what a grant marks, and which claims of the agent's session are denied."""

from __future__ import annotations

from tenure.core import limits, runners
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Claim, Row, Task, replace
from tenure.engine.runtime.unit_of_work import UnitOfWork


def marked(work: UnitOfWork, held: Task, claim: Claim, rows: list[Row]) -> Task:
    """The granted task. Neither the submit that a runner keeps to itself nor further claims of its agent may take the
    fast path: `rows` gets the agent with a limit of tasks, if it has none."""
    if runners.is_marked(claim.metadata):
        agent = work.require(Agent, claim.project, claim.agent)
        if agent.max_concurrent_tasks is None:
            rows.append(replace(agent, max_concurrent_tasks=limits.RUN_HOLDS))
    return replace(held, reserved=True) if runners.has_word(claim.metadata) else held


def denied(work: UnitOfWork, project: str, session: str, task: Task | None) -> Outcome | None:
    """A session that works for a runner claims its task and the subtasks of it, by name; None: any task."""
    first = work.find(Claim, {"project": project, "session": session}, limit=1)  # by task: a subtask's id is later
    if not first or not runners.is_marked(first[0].metadata):
        return None
    above = task
    while above is not None and above.id != first[0].task:
        above = work.get(Task, project, above.parent) if above.parent is not None else None
    return runners.denied_claim(work.require(Task, project, first[0].task)) if above is None else None

"""The answer to a granted claim: the task, its receipt and lease, and everything that the holder starts with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenure.core import inputs, models
from tenure.core.claims import is_held
from tenure.core.ids import receipt_of
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Task, replace
from tenure.engine.models.model_choice import recommended
from tenure.engine.reads import task_view
from tenure.engine.runtime.rows import brief_of
from tenure.engine.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views import TaskView


def outcome_of(work: UnitOfWork, task: Task, claim: Claim) -> Outcome:
    receipt = receipt_of(task, claim)
    granted = granted_outcome(work, task, claim.generation, claim.attempt, receipt, claim.agent, claim.model)
    if task.sealed and is_live(task, claim):
        from tenure.engine.secrets.open_secrets import opened  # most tasks have none; keeps startup fast

        granted = replace(granted, secrets=opened(work, task))
    if claim.lease_why is None and claim.term is None:
        return granted
    return replace(granted, lease_why=claim.lease_why, term=claim.term)


def is_live(task: Task, claim: Claim) -> bool:
    """Whether the claim is the one that holds the task now: nobody else gets its secrets."""
    return is_held(task) and claim.state == "active" and claim.generation == task.generation


def granted_outcome(
    work: UnitOfWork, task: Task, generation: int, attempt: int, receipt: str, agent: str, model: str | None = None
) -> Outcome:
    """The answer that the holder of that generation gets, whether or not it still holds the task."""
    brief = brief_of(work, task)
    handed = task_view.inputs_of(work, task, brief)
    until = task.lease_until if task.generation == generation else None
    return granted_as(
        task_view.task_view(work, task, brief),
        generation,
        attempt,
        receipt,
        until,
        work.now,
        models=models.models_for(task, attempt) or None,
        **recommended(work, task, brief, attempt, agent, model),
        inputs=handed.outputs or None,
        missing=handed.missing or None,
        artifacts=task_view.earlier_artifacts(work, task),
        checkpoint=task_view.checkpoint_for_holder(work, task),
    )


def granted_as(
    view: TaskView, generation: int, attempt: int, receipt: str, until: int | None, now: int, **handed: Any
) -> Outcome:
    return Outcome(
        outcome="GRANTED",
        message=f"{view['key']}: generation {generation} is yours",
        task=view,
        generation=generation,
        receipt=receipt,
        lease_until=until,
        lease=None if until is None else max(0.0, (until - now) / inputs.SECOND),
        attempt=attempt,
        **handed,
    )


def several(granted: list[Outcome], n: int) -> Outcome:
    if n == 1:
        return granted[0]
    first = granted[0]
    return Outcome(outcome="GRANTED", claims=tuple(granted), unfinished=first.unfinished, again=first.again)

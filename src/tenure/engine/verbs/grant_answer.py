"""The answer to a granted claim: the task, its receipt and lease, and everything that the holder starts with.

A request that is sent again gets the same answer, with the receipts that it was granted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import commands, inputs, models
from tenure.core.claims import is_held
from tenure.core.commands.command import digest_of
from tenure.core.ids import receipt_of
from tenure.core.outcomes import Outcome
from tenure.core.processes import check_process, text_of
from tenure.core.records import Claim, Task, replace
from tenure.engine.models.model_choice import recommended
from tenure.engine.reads import task_view
from tenure.engine.runtime.decision import check_same
from tenure.engine.runtime.rows import brief_of
from tenure.engine.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views import TaskView


def outcome_of(work: UnitOfWork, task: Task, claim: Claim) -> Outcome:
    receipt = receipt_of(task, claim)
    granted = granted_outcome(work, task, claim.generation, claim.attempt, receipt, claim.agent, claim.model)
    if task.sealed and is_live(task, claim):
        from tenure.engine.secrets.open_secrets import given  # most tasks have none; keeps startup fast

        granted = replace(granted, secrets=given(work, task))
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


# --- repeats ------------------------------------------------------------------------------------------------


class Sent(msgspec.Struct, frozen=True):
    """The request, which identifies a repeat, and the process whose end proves that the holder is gone."""

    id: str | None = None
    digest: str | None = None
    process: str | None = None


def sending(work: UnitOfWork, cmd: commands.ClaimTask | commands.ClaimNext) -> tuple[Sent, list[Claim]]:
    """The request, and the claims that it was granted when it was first sent, from any process."""
    sent = sent_of(cmd, work.principal)
    if cmd.request_id is None or work.has_none(Claim, cmd.project, "request_id", cmd.request_id):
        return sent, []
    found = work.find(Claim, {"project": cmd.project, "request_id": cmd.request_id}, order="acquired_at")
    if found:
        check_same(found[0].request_hash, _without_process(cmd), work.principal.owner, "claim")
    return sent, found


def sent_of(cmd: commands.ClaimTask | commands.ClaimNext, principal: commands.Principal) -> Sent:
    process = None if cmd.process is None else text_of(check_process(cmd.process))
    if cmd.request_id is None:
        return Sent(process=process)
    return Sent(cmd.request_id, digest_of(_without_process(cmd), principal.owner), process)


def _without_process(cmd: commands.ClaimTask | commands.ClaimNext) -> commands.ClaimTask | commands.ClaimNext:
    """The stored request without its process: a repeat may come from another one."""
    return cmd if cmd.process is None else replace(cmd, process=None)


def granted_again(work: UnitOfWork, claim: Claim, process: str | None) -> Outcome:
    """Return the same receipt again; the claim now belongs to the repeating process."""
    task = work.require(Task, claim.project, claim.task)
    if claim.state == "active" and claim.process != process:
        claim = work.put(replace(claim, process=process))
    return replace(outcome_of(work, task, claim), again=True)

"""Verdicts on submitted results: who takes a validation, what follows from the verdict; and approve and reject.

A taker is fenced as a holder is: `_held` judges its receipt by rows read in the transaction that applies the verdict.
It never moves the task's generation.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from tenure.core import commands, inputs, keys, lifecycle, limits, roles, validation
from tenure.core.commands.command import bound
from tenure.core.errors import InvalidInput, NotAllowed
from tenure.core.ids import NONCE_BYTES, Receipt, parse_receipt
from tenure.core.lifecycle import PAUSED, VALIDATING
from tenure.core.outcomes import CODES, Outcome
from tenure.core.records import ApiKey, Claim, Project, Result, Task, Validation, replace
from tenure.core.validation import MOST_REASONS, PASSED, REFUSED, REVIEW
from tenure.engine.checks.submission_checks import text_of
from tenure.engine.checks.validation_reads import open_rows, row_of_task, view
from tenure.engine.reads import task_view
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import brief_of, current, current_claim, project_of, task_named
from tenure.engine.runtime.unit_of_work import Handlers, Refused, UnitOfWork
from tenure.engine.verbs.operator_verbs import denied
from tenure.engine.verbs.submit import accept

MOST_EXAMINED = limits.CHECKS_RANKED


class Held(NamedTuple):
    """A taker's receipt and the rows it was judged by; `code` is None where its verdict counts."""

    row: Validation
    task: Task
    receipt: Receipt
    code: str | None


# --- taking -------------------------------------------------------------------------------------------------


def take(work: UnitOfWork, cmd: commands.TakeValidation) -> Outcome:
    project = project_of(work, cmd.project)
    inputs.check_text(cmd.checker, "checker", inputs.LONGEST_NAME, required=True)
    lease = inputs.lease_of(cmd.lease, work.limits_of(project), validation.LEASE)
    if cmd.task is not None:
        task = task_named(work, cmd.project, cmd.task)
        row = row_of_task(work, task)
        if row is None or task.state != VALIDATING:
            return denied(task, "taking its validation")
        return _taken_again(work, cmd, task, row) or _named(work, cmd, task, row, lease)
    for task, row in _best(work, cmd.project):
        again = _taken_again(work, cmd, task, row)
        if again is not None:
            return again
    for task, row in _best(work, cmd.project):
        if not validation.is_waiting(row, work.epoch, work.now) or not _is_requested(cmd, row):
            continue
        if roles.is_author(work.principal, current_claim(work, task)):
            continue
        if validation.is_given_up(row):
            _give_up(work, task, row)
            continue
        return _granted(work, cmd, task, row, lease)
    return Outcome(outcome="NO_TASK", message="no result waits for a validator that runs here")


def _best(work: UnitOfWork, project: str) -> list[tuple[Task, Validation]]:
    found = islice(open_rows(work, project), MOST_EXAMINED)
    return sorted(found, key=lambda pair: (pair[0].priority, pair[1].created_at, pair[1].id))


def _is_requested(cmd: commands.TakeValidation, row: Validation) -> bool:
    return not cmd.validators or row.validator in cmd.validators


def _taken_again(work: UnitOfWork, cmd: commands.TakeValidation, task: Task, row: Validation) -> Outcome | None:
    """The same request again, by its taker: the same receipt."""
    if cmd.request_id is None or _request(work, cmd) != row.request_id or row.holder != cmd.checker:
        return None
    return _receipt(work, task, row, again=True) if validation.is_running(row, work.epoch, work.now) else None


def _request(work: UnitOfWork, cmd: commands.TakeValidation) -> str | None:
    return None if cmd.request_id is None else bound(cmd.request_id, work.principal.owner)


def _named(work: UnitOfWork, cmd: commands.TakeValidation, task: Task, row: Validation, lease: int) -> Outcome:
    roles.check_verdict(work.principal, current_claim(work, task), f"the result of {task.key}")
    if row.validator == REVIEW or not _is_requested(cmd, row):
        hint = "approve or reject it" if row.validator == REVIEW else None
        return Outcome(
            outcome="DENIED_STATE", state=task.state, message=f"{task.key} waits for {row.validator}", hint=hint
        )
    if validation.is_running(row, work.epoch, work.now):
        return Outcome(
            outcome="DENIED_ACTIVE_CLAIM",
            holder=row.holder,
            **work.leased_until(row.until),
            message=f"{task.key}: {row.holder} is validating it",
            state=task.state,
        )
    if validation.is_given_up(row):
        kept = _give_up(work, task, row)
        return Outcome(outcome="DENIED_PAUSED", state=kept.state, message=f"{task.key} is paused: {kept.reason}")
    return _granted(work, cmd, task, row, lease)


def _granted(work: UnitOfWork, cmd: commands.TakeValidation, task: Task, row: Validation, lease: int) -> Outcome:
    held = validation.taken(
        row,
        holder=cmd.checker,
        agent=work.principal.agent,
        lease=lease,
        now=work.now,
        nonce=work.random.token(NONCE_BYTES),
        epoch=work.epoch,
        request_id=_request(work, cmd),
    )
    details = {"validator": row.validator, "holder": cmd.checker, "try": held.tries}
    kept = work.record("task.validation_taken", held, task=task, details=details)
    return _receipt(work, kept, held)


def _receipt(work: UnitOfWork, task: Task, row: Validation, **more: Any) -> Outcome:
    result = work.require(Result, row.project, row.result)
    brief = brief_of(work, task)
    handed: dict[str, Any] = {
        **view(work, row, task),
        "settings": brief.output.get("settings") or {},
        "summary": result.summary,
        "data": task_view.unpacked(work, row.project, result.data),
    }
    return Outcome(
        outcome="GRANTED",
        receipt=str(Receipt(validation.receipt_name(row), row.generation, row.epoch, row.nonce)),
        generation=row.generation,
        **work.leased_until(row.until),
        validation=handed,
        task=task_view.task_view(work, task, brief),
        state=task.state,
        **more,
    )


def _give_up(work: UnitOfWork, task: Task, row: Validation) -> Task:
    """Undecided after the last try: the task waits for a person."""
    held_back = validation.paused(task, row, work.now)
    free = replace(row, holder=None, retry_at=None)
    fields = {"message": held_back.reason or "", "details": {"validator": row.validator, "tries": row.tries}}
    kept = work.record("task.paused", free, task=held_back, level="warning", **fields)
    spread(work)
    return kept


# --- while it is taken --------------------------------------------------------------------------------------


def _judged(work: UnitOfWork, project: str, text: str) -> Held:
    receipt = parse_receipt(text)
    row = work.get(Validation, project, validation.row_of(receipt))
    task = work.get(Task, project, row.task) if row is not None else None
    if row is None or task is None:
        raise Refused(Outcome(outcome="NOT_FOUND", message=f"no validation {receipt.name} in project {project}"))
    roles.check_mine(work.principal, row.agent or "nobody", f"the validation of {task.key}")
    return Held(row, task, receipt, validation.judge(receipt, row, task, work.epoch))


def _held(work: UnitOfWork, project: str, text: str) -> Held:
    """The guard of every write of a taker: returns the rows it may write to, or raises Refused."""
    held = _judged(work, project, text)
    if held.code is not None:
        raise Refused(_refusal(held))
    return held


def _refusal(held: Held) -> Outcome:
    row, task, code = held.row, held.task, held.code or ""
    why = CODES[code].meaning
    if code == "STALE_GENERATION":
        why = f"{row.holder or 'somebody'} has taken it since"
    elif code == "NO_CLAIM":
        why = f"it is {row.state}" if row.state != validation.OPEN else f"the task is {lifecycle.spoken(task.state)}"
    return Outcome(
        outcome=code,
        message=f"the validation of {task.key} at generation {row.claimed}: {why}",
        state=task.state,
        directive="pause" if code == "DENIED_PAUSED" else "cancel" if code == "TASK_CANCELLED" else "abort",
        current_generation=row.generation,
    )


def renew(work: UnitOfWork, cmd: commands.RenewValidation) -> Outcome:
    held = _held(work, cmd.project, cmd.receipt)
    project = work.require(Project, cmd.project, cmd.project)
    lease = None if cmd.lease is None else inputs.lease_of(cmd.lease, work.limits_of(project))
    row = work.put(validation.renewed(held.row, lease, work.now))
    leased, state = work.leased_until(row.until), held.task.state
    return Outcome(outcome="RENEWED", **leased, generation=row.generation, directive="continue", state=state)


def undecide(work: UnitOfWork, cmd: commands.Undecide) -> Outcome:
    inputs.check_text(cmd.reason, "reason", required=True)
    after = None if cmd.retry_after is None else inputs.micros(cmd.retry_after, "retry_after")
    held = _held(work, cmd.project, cmd.receipt)
    if held.row.holder is None:
        return _undecided(work, held.task, held.row, again=True)
    row = validation.undecided(held.row, cmd.reason[:1000], after, work.now)
    if validation.is_given_up(row):
        return _undecided(work, _give_up(work, held.task, row), row)
    details = {"validator": row.validator, "try": row.tries, "retry_at": row.retry_at}
    fields = {"level": "warning", "message": cmd.reason, "details": details}
    kept = work.record("task.validation_undecided", row, task=held.task, **fields)
    return _undecided(work, kept, row)


def _undecided(work: UnitOfWork, task: Task, row: Validation, **more: Any) -> Outcome:
    why = f"{row.validator} could not decide: {row.note}"
    if task.state == VALIDATING:
        later = f"try {row.tries + 1} of {validation.MOST_TRIES} is made by `run`, `daemon` or `serve`"
        message = f"{task.key} still waits: {why}; {later}"
    else:
        message = f"{task.key} is {lifecycle.spoken(task.state)}: {why}; approve or reject it, or resume to try again"
    more |= {"generation": row.generation, "message": message}
    return Outcome(outcome="OK", state=task.state, **work.retry_at(row.retry_at), **more)


# --- verdicts -----------------------------------------------------------------------------------------------


def judge(work: UnitOfWork, cmd: commands.Judge) -> Outcome:
    inputs.check_size(cmd.details, "details", validation.LARGEST_DETAILS)
    reasons = _reasons(cmd.reasons)
    if not cmd.ok and not reasons:
        raise InvalidInput("a refusal needs a reason", "say what to fix")
    held = _judged(work, cmd.project, cmd.receipt)
    if held.code == "NO_CLAIM" and held.row.state == (PASSED if cmd.ok else REFUSED):
        claim = work.get(Claim, cmd.project, held.row.id)
        return _repeated(held, claim)
    if held.code is not None:
        return _refusal(held)
    roles.check_verdict(work.principal, current_claim(work, held.task), f"judge: {held.task.key}")
    by = _decider(work)
    if cmd.ok:
        return _pass(work, held.task, held.row, by, cmd.details, reasons)
    return _refuse(work, held.task, held.row, by, reasons, cmd.details)


def _decider(work: UnitOfWork) -> str:
    """Who decides, as far as proven: the name that a checker or a header gives itself does not count."""
    return work.principal.owner or work.principal.name


def _reasons(given: Iterable[str]) -> tuple[str, ...]:
    return tuple(reason[: validation.LONGEST_REASON] for reason in given if reason.strip())[:MOST_REASONS]


def _repeated(held: Held, claim: Claim | None) -> Outcome:
    """This taker's verdict, repeated."""
    row, product = held.row, claim.work_product if claim else None
    return Outcome(
        outcome="ACCEPTED" if row.state == PASSED else "OK",
        again=True,
        state=held.task.state,
        result=row.result,
        work_product=product if row.state == PASSED else None,
        reasons=row.reasons or None,
        generation=row.claimed,
        message=f"{held.task.key}: the output was {row.state} before",
    )


def _pass(
    work: UnitOfWork, task: Task, row: Validation, by: str, details: dict[str, Any], reasons: tuple[str, ...]
) -> Outcome:
    """Complete the task, as a submit that is accepted at once does."""
    packed = task_view.packed(work, row.project, details)
    done = validation.decided(row, PASSED, reasons, packed, by=by, now=work.now)
    result = work.require(Result, row.project, row.result)
    return accept(work, task, current_claim(work, task), result, done, validator=row.validator, by=by)


def _refuse(
    work: UnitOfWork, task: Task, row: Validation, by: str, reasons: tuple[str, ...], details: dict[str, Any]
) -> Outcome:
    """A failed attempt of class invalid_output; the reasons go to the next holder."""
    text, claim = text_of(reasons), current_claim(work, task)
    packed = task_view.packed(work, row.project, details)
    done = validation.decided(row, REFUSED, reasons, packed, by=by, now=work.now)
    policy = brief_of(work, task).retry
    free, over = validation.refused(task, claim, row, text, policy, work.now, work.random.fraction())
    result = work.require(Result, row.project, row.result)
    event_details = {
        "attempt": claim.attempt,
        "error_class": validation.INVALID_OUTPUT,
        "reasons": list(reasons),
        "validator": row.validator,
        "by": by,
    }
    refused = replace(result, reason="INVALID_OUTPUT")
    kept = work.record(
        "task.failed",
        over,
        done,
        refused,
        task=free,
        level="warning",
        message=text,
        holder=claim,
        details=event_details,
    )
    spread(work)
    now_is = current(work, kept)
    return Outcome(
        outcome="OK",
        state=now_is.state,
        reasons=reasons,
        **work.retry_at(now_is.retry_at),
        generation=claim.generation,
        result=row.result,
        message=f"{task.key}: the output was refused; it is {lifecycle.spoken(now_is.state)}",
    )


# --- approve, reject ----------------------------------------------------------------------------------------


def approve(work: UnitOfWork, cmd: commands.Approve) -> Outcome:
    inputs.check_text(cmd.note, "note")
    task, row, by = _reviewed(work, cmd.project, cmd.task, "approve")
    return _pass(work, task, row, by, {}, _reasons((cmd.note,)))


def reject(work: UnitOfWork, cmd: commands.Reject) -> Outcome:
    inputs.check_text(cmd.reason, "reason", required=True)
    task, row, by = _reviewed(work, cmd.project, cmd.task, "reject")
    return _refuse(work, task, row, by, _reasons((cmd.reason,)), {})


def _reviewed(work: UnitOfWork, project_name: str, name: str, verb: str) -> tuple[Task, Validation, str]:
    """The task and its open validation, for a caller who may decide it.

    A person may decide for any validator. An agent may only decide a review, and never of work it submitted.
    """
    project = project_of(work, project_name)
    task = task_named(work, project_name, name)
    row = row_of_task(work, task)
    if row is None or not _may_be_judged(task):
        raise Refused(denied(task, verb))
    who = work.principal
    if who.role == "agent" and not project.agents_may_operate:
        if row.validator != REVIEW:
            raise NotAllowed(f"{verb}: {task.key} waits for {row.validator}, not for a review", "a person may decide")
        if who.agent is None:
            raise NotAllowed(f"{verb}: a review needs its reviewer", "join first, or name the agent")
    check_reviewer(work, project, current_claim(work, task), f"{verb}: {task.key}")
    return task, row, _decider(work)


def check_reviewer(work: UnitOfWork, project: Project, claim: Claim, what: str) -> None:
    """The guard of a person's verdict on the work of this claim."""
    roles.check_verdict(work.principal, claim, what)
    if project.review_other_person:
        key = None if claim.key is None else work.get(ApiKey, "", claim.key)
        people = {claim.user} if claim.user else set()
        roles.check_other_person(work.principal, people | (keys.people_of(key) if key else set()), what)


def _may_be_judged(task: Task) -> bool:
    """Whether it waits for a verdict, or is paused because none was reached: a verdict lifts that cause."""
    is_undecided = task.state == PAUSED and {pause.cause for pause in task.pauses} == {lifecycle.REVIEW}
    return task.state == VALIDATING or is_undecided


# --- withdrawing --------------------------------------------------------------------------------------------


def withdraw(work: UnitOfWork, task: Task) -> tuple[Task, list[Any]]:
    """The task as if nothing had been submitted, with its rows; the caller appends the event."""
    row = row_of_task(work, task)
    assert row is not None, task.key
    free, over = validation.withdrawn(task, current_claim(work, task), work.now)
    return free, [over, *closed(work, row)]


def closed(work: UnitOfWork, row: Validation) -> list[Any]:
    """The validation and its result, as withdrawn."""
    result = work.get(Result, row.project, row.result)
    done = replace(row, state=validation.WITHDRAWN, decided_at=work.now, decided_by=_decider(work), retry_at=None)
    return [done, *([replace(result, reason="SUPERSEDED")] if result is not None else [])]


HANDLERS: Handlers = {
    commands.TakeValidation: take,
    commands.RenewValidation: renew,
    commands.Judge: judge,
    commands.Undecide: undecide,
    commands.Approve: approve,
    commands.Reject: reject,
}

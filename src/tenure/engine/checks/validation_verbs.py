"""Verdicts on submitted results: who takes a validation, what follows from the verdict; and approve and reject.

A taker is fenced as a holder is: `_held` judges its receipt by rows read in the transaction that applies the verdict.
It never moves the task's generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, NamedTuple

from tenure.core import commands, inputs, keys, lifecycle, limits, moves, roles, validation
from tenure.core.commands.command import bound
from tenure.core.errors import InvalidInput, NotAllowed
from tenure.core.ids import NONCE_BYTES, Receipt, parse_receipt
from tenure.core.land_request import JUDGE, LAND, LANDING, PHASES, is_of_landing, lander
from tenure.core.lifecycle import PAUSED, VALIDATING
from tenure.core.outcomes import CODES, Outcome
from tenure.core.records import ApiKey, Claim, Project, Result, RetryPolicy, Task, Validation, replace
from tenure.core.safe_text import shell_word
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
Ends = Callable[[Task, Claim, Validation, str, RetryPolicy, int, float], tuple[Task, Claim]]


class Held(NamedTuple):
    """A taker's receipt and the rows it was judged by; `code` is None where its verdict counts."""

    row: Validation
    task: Task
    receipt: Receipt
    code: str | None


# --- taking -------------------------------------------------------------------------------------------------


def take(work: UnitOfWork, cmd: commands.TakeValidation) -> Outcome:
    inputs.check_choice(cmd.phase, PHASES, "phase")
    project = project_of(work, cmd.project)
    inputs.check_text(cmd.checker, "checker", inputs.LONGEST_NAME, required=True)
    lease = inputs.lease_of(cmd.lease, work.limits_of(project), validation.LEASE)
    if cmd.task is not None:
        task = task_named(work, cmd.project, cmd.task)
        row = row_of_task(work, task)
        if row is None or task.state != VALIDATING:
            return denied(task, "taking its validation")
        if validation.phase_of(row) != cmd.phase:
            what = "waits for its verdict" if row.phase == JUDGE else "has passed, and waits to be landed"
            return Outcome(outcome="DENIED_STATE", state=task.state, message=f"the result of {task.key} {what}")
        return _taken_again(work, cmd, task, row) or _named(work, cmd, task, row, lease)
    for task, row in _best(work, cmd.project):
        again = _taken_again(work, cmd, task, row)
        if again is not None:
            return again
    for task, row in _best(work, cmd.project):
        if not validation.is_waiting(row, work.epoch, work.now) or not _is_requested(cmd, row):
            continue
        if not _may_take(work, current_claim(work, task), cmd.phase):
            continue
        if validation.is_given_up(row):
            _give_up(work, task, row)
            continue
        return _granted(work, cmd, task, row, lease)
    nothing = "no result waits for a validator that runs here" if cmd.phase == JUDGE else "no result waits to be landed"
    return Outcome(outcome="NO_TASK", message=nothing)


def _may_take(work: UnitOfWork, claim: Claim, phase: str) -> bool:
    who = work.principal
    return not roles.is_author(who, claim) if phase == JUDGE else roles.may_land(who, claim)


def _best(work: UnitOfWork, project: str) -> list[tuple[Task, Validation]]:
    found = islice(open_rows(work, project), MOST_EXAMINED)
    return sorted(found, key=lambda pair: (pair[0].priority, pair[1].created_at, pair[1].id))


def _is_requested(cmd: commands.TakeValidation, row: Validation) -> bool:
    wanted = not cmd.validators or row.validator in cmd.validators
    return wanted and validation.phase_of(row) == cmd.phase


def _taken_again(work: UnitOfWork, cmd: commands.TakeValidation, task: Task, row: Validation) -> Outcome | None:
    """The same request again, by its taker: the same receipt."""
    if cmd.request_id is None or _request(work, cmd) != row.request_id or row.holder != cmd.checker:
        return None
    return _receipt(work, task, row, again=True) if validation.is_running(row, work.epoch, work.now) else None


def _request(work: UnitOfWork, cmd: commands.TakeValidation) -> str | None:
    return None if cmd.request_id is None else bound(cmd.request_id, work.principal.owner)


def _named(work: UnitOfWork, cmd: commands.TakeValidation, task: Task, row: Validation, lease: int) -> Outcome:
    check = roles.check_verdict if row.phase == JUDGE else roles.check_lander
    check(work.principal, current_claim(work, task), f"the result of {task.key}")
    is_reviewed = row.validator == REVIEW and row.phase == JUDGE
    if is_reviewed or not _is_requested(cmd, row):
        hint = "approve or reject it" if is_reviewed else None
        return Outcome(
            outcome="DENIED_STATE", state=task.state, message=f"{task.key} waits for {row.validator}", hint=hint
        )
    if validation.is_running(row, work.epoch, work.now):
        return Outcome(
            outcome="DENIED_ACTIVE_CLAIM",
            holder=row.holder,
            **work.leased_until(row.until),
            message=f"{task.key}: {row.holder} is {'validating' if row.phase == JUDGE else 'landing'} it",
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
    if row.phase != JUDGE:
        roles.check_lander(work.principal, current_claim(work, task), f"the landing of {task.key}")
    roles.check_mine(work.principal, row.agent or "nobody", f"the validation of {task.key}")
    return Held(row, task, receipt, validation.judge(receipt, row, task, work.epoch))


def held_by_taker(work: UnitOfWork, project: str, text: str) -> Held:
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
    held = held_by_taker(work, cmd.project, cmd.receipt)
    project = work.require(Project, cmd.project, cmd.project)
    lease = None if cmd.lease is None else inputs.lease_of(cmd.lease, work.limits_of(project))
    row = work.put(validation.renewed(held.row, lease, work.now))
    leased, state = work.leased_until(row.until), held.task.state
    return Outcome(outcome="RENEWED", **leased, generation=row.generation, directive="continue", state=state)


def undecide(work: UnitOfWork, cmd: commands.Undecide) -> Outcome:
    inputs.check_text(cmd.reason, "reason", required=True)
    after = None if cmd.retry_after is None else inputs.micros(cmd.retry_after, "retry_after")
    held = held_by_taker(work, cmd.project, cmd.receipt)
    if held.row.holder is None:
        return _undecided(work, held.task, held.row, again=True)
    if cmd.blocked and held.row.phase == JUDGE:
        raise InvalidInput(
            "blocked: only a landing can be blocked", "leave it out; a check that cannot decide is a try"
        )
    row = validation.undecided(held.row, cmd.reason[:1000], after, work.now, blocked=cmd.blocked)
    if validation.is_given_up(row):
        return _undecided(work, _give_up(work, held.task, row), row)
    details = {"validator": row.validator, "try": row.tries, "retry_at": row.retry_at}
    fields = {"level": "warning", "message": cmd.reason, "details": details}
    kept = work.record("task.validation_undecided", row, task=held.task, **fields)
    return _undecided(work, kept, row)


def _undecided(work: UnitOfWork, task: Task, row: Validation, **more: Any) -> Outcome:
    is_judged = row.phase == JUDGE
    why = f"{row.validator} could not decide: {row.note}" if is_judged else f"it is not landed: {row.note}"
    if task.state == VALIDATING:
        later = f"try {row.tries + 1} of {validation.MOST_TRIES} is made by `run`, `daemon` or `serve`"
        later = later if is_judged else lander(task.ref)
        message = f"{task.key} still waits: {why}; {later}"
    else:
        ways = "approve or reject it, or resume to try again" if is_judged else "resume it to try again, or reject it"
        message = f"{task.key} is {lifecycle.spoken(task.state)}: {why}; {ways}"
    more |= {"generation": row.generation, "message": message}
    return Outcome(outcome="OK", state=task.state, **work.retry_at(row.retry_at), **more)


# --- verdicts -----------------------------------------------------------------------------------------------


def judge(work: UnitOfWork, cmd: commands.Judge) -> Outcome:
    inputs.check_size(cmd.details, "details", validation.LARGEST_DETAILS)
    reasons = _reasons(cmd.reasons)
    if not cmd.ok and not reasons:
        raise InvalidInput("a refusal needs a reason", "say what to fix")
    held = _judged(work, cmd.project, cmd.receipt)
    if cmd.conflict and (cmd.ok or not is_of_landing(cmd.receipt)):
        raise InvalidInput(
            "conflict: only a landing that is refused can be one", "leave it out, or judge with ok false"
        )
    is_passed = held.row.state == validation.OPEN and held.row.phase != JUDGE and not is_of_landing(cmd.receipt)
    if held.code == "NO_CLAIM" and cmd.ok and is_passed:
        return _waits_to_land(work, held.task, held.row, again=True)
    if held.code == "NO_CLAIM" and held.row.state == (PASSED if cmd.ok else REFUSED):
        claim = work.get(Claim, cmd.project, held.row.id)
        return _repeated(held, claim)
    if held.code is not None:
        return _refusal(held)
    by = _decider(work)
    if held.row.phase != JUDGE:
        return _landed(work, held, by, cmd.details) if cmd.ok else _unfit(work, held, by, reasons, cmd)
    roles.check_verdict(work.principal, current_claim(work, held.task), f"judge: {held.task.key}")
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
    """Complete the task, as a submit that is accepted at once does; or let its commit wait to be landed."""
    packed = task_view.packed(work, row.project, details)
    if row.land is not None:
        waiting = validation.to_land(row, reasons, packed, by=by, now=work.now)
        lifted = moves.validating(task, work.now) if task.state == PAUSED else task  # no verdict had been reached
        what = {"validator": row.validator, "by": by, "commit": row.land.commit, "onto": row.land.onto}
        kept = work.record("task.validated", waiting, task=lifted, holder=current_claim(work, task), details=what)
        spread(work)
        return _waits_to_land(work, kept, waiting)
    done = validation.decided(row, PASSED, reasons, packed, by=by, now=work.now)
    result = work.require(Result, row.project, row.result)
    return accept(work, task, current_claim(work, task), result, done, validator=row.validator, by=by)


def _waits_to_land(work: UnitOfWork, task: Task, row: Validation, **more: Any) -> Outcome:
    message = f"{task.key}: the output passed; it is completed once it is landed on {validation.onto(row)}"
    hint = lander(task.ref)
    return Outcome(
        outcome="OK", state=task.state, result=row.result, generation=row.claimed, message=message, hint=hint,
        reasons=row.reasons or None, **more,
    )  # fmt: skip


def _landed(work: UnitOfWork, held: Held, by: str, details: dict[str, Any]) -> Outcome:
    """The commit is on the branch: the result is accepted."""
    row, task = held.row, held.task
    packed = task_view.packed(work, row.project, {**task_view.unpacked(work, row.project, row.details), **details})
    done = validation.landed(row, packed, by=by, now=work.now)
    result = work.require(Result, row.project, row.result)
    fields = {"validator": row.validator, "by": by, "judged_by": done.decided_by, "onto": validation.onto(row)}
    return accept(work, task, current_claim(work, task), result, done, **fields)


def _unfit(work: UnitOfWork, held: Held, by: str, reasons: tuple[str, ...], cmd: commands.Judge) -> Outcome:
    """The commit does not fit to the branch any more, or its checks fail there. Nothing was moved."""
    row = replace(held.row, phase=LAND)
    if not cmd.conflict:
        return _refuse(work, held.task, row, by, reasons, cmd.details)
    return _refuse(work, held.task, row, by, reasons, cmd.details, validation.conflicted, validation.MERGE_CONFLICT)


def _refuse(
    work: UnitOfWork,
    task: Task,
    row: Validation,
    by: str,
    reasons: tuple[str, ...],
    details: dict[str, Any],
    ends: Ends = validation.refused,
    error_class: str = validation.INVALID_OUTPUT,
) -> Outcome:
    """A failed attempt of class invalid_output, or a merge conflict; the reasons go to the next holder."""
    text, claim = text_of(reasons), current_claim(work, task)
    packed = task_view.packed(work, row.project, details)
    done = validation.decided(row, REFUSED, reasons, packed, by=by, now=work.now)
    policy = brief_of(work, task).retry
    free, over = ends(task, claim, row, text, policy, work.now, work.random.fraction())
    result = work.require(Result, row.project, row.result)
    event_details = {
        "attempt": claim.attempt,
        "error_class": error_class,
        "reasons": list(reasons),
        "validator": row.validator,
        "by": by,
    }
    refused = replace(result, reason=error_class.upper())
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
    check_not_landing(task, row, verb)
    if row.phase == LAND and verb == "approve":
        raise Refused(Outcome(outcome="DENIED_STATE", state=task.state, message=f"{task.key} has passed; {WAITS}"))
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


def check_adopter(work: UnitOfWork, task: Task, claim: Claim) -> None:
    """The guard of a person's word that takes the place of a verdict."""
    if validation.validator_of(brief_of(work, task).output) != validation.NONE:
        check_reviewer(work, project_of(work, task.project), claim, f"adopt: {task.key}")


def _may_be_judged(task: Task) -> bool:
    """Whether it waits for a verdict, or is paused because none was reached: a verdict lifts that cause."""
    is_undecided = task.state == PAUSED and {pause.cause for pause in task.pauses} == {lifecycle.REVIEW}
    return task.state == VALIDATING or is_undecided


# --- withdrawing --------------------------------------------------------------------------------------------


WAITS = "its commit waits to be landed"


def check_not_landing(task: Task, row: Validation | None, verb: str) -> None:
    """Once a taker may have moved the branch, nothing but the landing itself says what becomes of the task."""
    if row is not None and row.phase == LANDING:
        message = f"{verb}: {task.key} is being landed on {validation.onto(row)}, and may be there already"
        hint = (
            f"wait until it has landed; after a crash `tenure land {shell_word(task.ref)}` in a checkout of "
            "it settles that"
        )
        raise Refused(Outcome(outcome="DENIED_STATE", state=task.state, message=message, hint=hint))


def withdraw(work: UnitOfWork, task: Task) -> tuple[Task, list[Any]]:
    """The task as if nothing had been submitted, with its rows; the caller appends the event."""
    row = row_of_task(work, task)
    assert row is not None, task.key
    check_not_landing(task, row, "supersede")
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

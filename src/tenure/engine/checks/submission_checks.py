"""A submit for a task whose contract names a validator: a quick one judges at once, others give their verdict later.

The third output that a quick check refuses under one claim ends the attempt. Where a quick check cannot decide, the
submit is not lost: it waits for a verdict like the others.
"""

from __future__ import annotations

from typing import Any

from tenure.core import claims, commands, lifecycle, limits, moves, validation
from tenure.core.errors import RequestIdReused
from tenure.core.land_request import JUDGE, LAND, LandRequest, lander
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Result, Row, Task, Validation, replace
from tenure.core.validation import BEFORE, INVALID_OUTPUT, MOST_INVALID
from tenure.engine.checks import evidence
from tenure.engine.checks.validation_reads import view
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import brief_of
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs import holder_verbs, submit

WAITING = "VALIDATING"  # the reason of a result that waits for its verdict, or to be landed
LONGEST_ERROR = limits.REASONS_TEXT


def checked_submit(
    work: UnitOfWork, hold: holder_verbs.Hold, cmd: commands.Submit, encoded: bytes, digest: str
) -> Outcome | None:
    """The answer; None where no validator decides: the submit is accepted, or refused for its receipt."""
    answer = _repeated(work, hold, cmd, digest)
    if answer is not None or hold.refusal is not None:
        return answer
    contract = brief_of(work, hold.task).output
    name = validation.validator_of(contract)
    note = None
    unread = validation.unread(contract, cmd.data)
    if unread is not None:
        return _invalid(work, hold, cmd, encoded, digest, (unread,))
    phase = JUDGE
    if name == validation.NONE:
        if cmd.land is None:
            return None
        phase = LAND
    elif name in BEFORE:
        found = evidence.of_output(work, contract, cmd.data, cmd.summary)
        if found.ok and cmd.land is None:
            return None
        phase = LAND if found.ok else phase
        if found.ok is False:
            return _invalid(work, hold, cmd, encoded, digest, found.reasons)
        note = None if found.ok else "; ".join(found.reasons)[:1000]
    result = submit.new_result(work, hold, cmd, encoded, digest, accepted=False, reason=WAITING, late=hold.is_late)
    return _waits(work, hold, result, name, note, phase, cmd.land)


def text_of(reasons: tuple[str, ...]) -> str:
    return "; ".join(reasons)[:LONGEST_ERROR]


# --- a verdict to come --------------------------------------------------------------------------------------


def _waits(
    work: UnitOfWork,
    hold: holder_verbs.Hold,
    result: Result,
    name: str,
    note: str | None,
    phase: str,
    land: LandRequest | None,
) -> Outcome:
    if hold.is_late:
        free, over = hold.task, hold.claim  # it keeps the reason for which it ended
    else:
        free, over = claims.ended(hold.task, hold.claim, lifecycle.SUBMITTED_BY, work.now)
    row = Validation(
        project=free.project,
        id=over.id,
        task=free.id,
        claimed=over.generation,
        run=over.run,
        result=result.id,
        validator=name,
        note=note,
        phase=phase,
        land=land,
        created_at=work.now,
    )
    details: dict[str, Any] = {"validator": name, "result": result.id, "late": result.late}
    if land is not None:
        details |= {"phase": phase, "commit": land.commit, "onto": land.onto}
    waiting = replace(moves.validating(free, work.now), checked=True)
    kept = work.record(
        "task.validating", result, over, row, *submit.signatures(work, hold, result), task=waiting, holder=over,
        message=note or "", details=details,
    )  # fmt: skip
    spread(work)
    return _is_waiting(work, kept, over, row)


def _is_waiting(work: UnitOfWork, task: Task, claim: Claim, row: Validation, **more: Any) -> Outcome:
    what = f"submitted; waiting for {row.validator}"
    if row.phase != JUDGE:
        what = f"submitted; waiting to be landed on {validation.onto(row)}"
        hint = f"{lander(task.ref)}; then it is completed"
    elif row.validator == validation.REVIEW:
        hint = "a person or another agent must approve or reject it"
    elif validation.is_running(row, work.epoch, work.now):
        hint = f"{row.holder} checks it; if it is refused, the task is retried"
    else:
        hint = "`run`, `daemon` or `serve` checks it; you no longer hold it, and if it is refused, the task is retried"
    more |= {"hint": hint, "result": row.result, "version": task.version, "validation": view(work, row, task)}
    return submit.submitted("VALIDATING", task, claim, what, **more)


def _repeated(work: UnitOfWork, hold: holder_verbs.Hold, cmd: commands.Submit, digest: str) -> Outcome | None:
    """The same result again, under the receipt that submitted it: the same answer, no effect."""
    claim, task = hold.claim, hold.task
    if not hold.verdict.genuine or (hold.refusal is None and not claim.invalid):
        return None
    where = {"project": claim.project, "task": claim.task, "generation": claim.generation, "accepted": False}
    for result in work.find(Result, where):
        is_again = cmd.request_id is not None and result.request_id == cmd.request_id
        if is_again and result.digest != digest:
            raise RequestIdReused(f"request id {cmd.request_id!r:.80} was used for another result")
        if result.digest != digest:
            continue
        if result.reason == WAITING:
            row = work.get(Validation, claim.project, claim.id)
            if validation.is_open(row, task):
                assert row is not None
                return _is_waiting(work, task, claim, row, again=True)
        if result.reason == "INVALID_OUTPUT" and (is_again or hold.refusal is not None):
            return _refusal(task, claim, _reasons(work, claim), again=True)
    return None


def _reasons(work: UnitOfWork, claim: Claim) -> tuple[str, ...]:
    row = work.get(Validation, claim.project, claim.id)
    if row is not None and row.reasons:
        return row.reasons
    return (claim.error,) if claim.error else ()


# --- refused at once ----------------------------------------------------------------------------------------


def _invalid(
    work: UnitOfWork,
    hold: holder_verbs.Hold,
    cmd: commands.Submit,
    encoded: bytes,
    digest: str,
    reasons: tuple[str, ...],
) -> Outcome:
    from tenure.core.redaction import without_secrets  # few outputs are refused; keeps startup fast

    rows: list[Row] = []
    reasons = tuple(map(without_secrets, reasons))
    marked = replace(hold.claim, invalid=hold.claim.invalid + 1, error=text_of(reasons))
    if marked.refused < submit.MOST_REFUSED:
        rows.append(
            submit.new_result(
                work, hold, cmd, encoded, digest, accepted=False, reason="INVALID_OUTPUT", late=hold.is_late
            )
        )
        rows += submit.signatures(work, hold, rows[0])  # type: ignore[arg-type]  # the result
        marked = replace(marked, refused=marked.refused + 1)
    is_last = marked.invalid >= MOST_INVALID
    if is_last and not hold.is_late:
        task = _ended(work, hold.task, marked, rows, reasons)
    else:
        task = _fixable(work, hold, marked, rows, reasons, is_last)
    return _refusal(task, marked, reasons, result=rows[0].id if rows else None)


def _fixable(
    work: UnitOfWork, hold: holder_verbs.Hold, claim: Claim, rows: list[Row], reasons: tuple[str, ...], is_last: bool
) -> Task:
    if hold.is_late:  # no attempt to end; the late submit closes with the last try
        task = claims.worked(replace(hold.task, late_submit_open=not is_last))
    else:
        task = holder_verbs.keep_worked(work, hold)
    fields = {"message": text_of(reasons), "details": {"reasons": list(reasons), "count": claim.invalid}}
    kept = work.record("task.output_refused", *rows, claim, task=task, level="warning", holder=claim, **fields)
    spread(work)
    return kept


def _ended(work: UnitOfWork, task: Task, claim: Claim, rows: list[Row], reasons: tuple[str, ...]) -> Task:
    text, policy = text_of(reasons), brief_of(work, task).retry
    error = {"error_class": INVALID_OUTPUT, "error": text}
    free, over = claims.ended(task, claim, lifecycle.FAILED_COUNTING, work.now, retry=policy, **error)
    free = claims.tried_again(free, policy, work.now, work.random.fraction())
    details = {"attempt": over.attempt, "error_class": INVALID_OUTPUT, "reasons": list(reasons)}
    fields = {"level": "warning", "message": text, "details": details}
    kept = work.record("task.failed", *rows, over, task=free, holder=claim, **fields)
    spread(work)
    return kept


def _refusal(task: Task, claim: Claim, reasons: tuple[str, ...], **more: Any) -> Outcome:
    left = MOST_INVALID - claim.invalid if claim.reason != "SUBMITTED" else 0
    is_held = claims.is_held(task) and task.generation == claim.generation
    if is_held or claims.is_late_submit_open(task, claim):
        hint = f"fix it and submit again; {left} more {'try' if left == 1 else 'tries'}"
        directive = "continue"
    else:
        hint, directive = "the attempt has failed; the task is retried, or waits for a person", "abort"
    more |= {"reasons": reasons, "hint": hint, "directive": directive, "retry_at": task.retry_at}
    return submit.submitted("INVALID_OUTPUT", task, claim, text_of(reasons) or "the output was refused", **more)

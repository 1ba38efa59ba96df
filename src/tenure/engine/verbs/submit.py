"""Submit: a result is accepted once, under the current claim or as a late submit; a refused one is kept.

Usage that a genuine receipt reports is booked in both cases, since it was spent.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tenure.core import claims, commands, inputs, lifecycle, limits, moves, retry
from tenure.core.errors import RequestIdReused, TooLarge
from tenure.core.landings import check_branch, check_commit
from tenure.core.outcomes import CODES, Outcome
from tenure.core.records import Agent, Claim, Project, Result, Row, Task, replace
from tenure.core.safe_text import shell_word
from tenure.engine.reads import task_view
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import current
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.verbs.holder_verbs import Hold, judged, released, up_to_date

MOST_REFUSED = limits.REFUSED_RESULTS
UNFINISHED = "its holder was asked to stop before it was done"


def submit(work: UnitOfWork, cmd: commands.Submit) -> Outcome:
    encoded = inputs.check_size(cmd.data, "result", inputs.LARGEST_RESULT)
    inputs.check_text(cmd.summary, "summary")
    hold = judged(work, cmd.project, cmd.receipt, late=True)
    most = work.limits_of(hold.project).get("max_result_size")
    if most is not None and len(encoded) > most:
        raise TooLarge(f"result has {len(encoded)} bytes; max_result_size is {most}", "an admin can raise the limit")
    if hold.verdict.genuine and (hold.project.signs or cmd.signature is not None):
        from tenure.engine.checks.signatures import check_signature  # few sessions sign; keeps startup fast

        hold = check_signature(work, hold, cmd, _passed_on(work, hold, cmd.artifacts))
    digest = hashlib.sha256(encoded).hexdigest()[:32]
    answer = _accepted_before(work, hold, cmd, digest)
    if answer is None and cmd.stopped:
        hold, answer = _unfinished(work, hold, cmd, encoded, digest)
    if cmd.land is not None:
        check_commit(cmd.land.commit, "land.commit")
        check_branch(cmd.land.onto)
        is_paused = hold.is_late and hold.task.state == lifecycle.PAUSED
        if is_paused and not claims.is_late_landing_open(hold.task, hold.claim):
            hold = judged(work, cmd.project, cmd.receipt)
    elif answer is None and hold.refusal is None and hold.claim.metadata:
        from tenure.core import runners  # few claims have metadata; keeps startup fast

        answer = runners.denied_result(hold.task, hold.claim, cmd.request_id)
    if answer is None and hold.refusal is None:
        hold, answer = up_to_date(work, hold, cmd.seen)
    if answer is None and "tokens_per_line" in hold.project.limits:
        from tenure.engine.budgets.efficiency import reviewed  # as below

        answer = reviewed(work, hold, cmd, encoded, digest)
    if answer is None and (hold.task.checked or cmd.land is not None):
        from tenure.engine.checks.submission_checks import checked_submit  # as below

        answer = checked_submit(work, hold, cmd, encoded, digest)
    if answer is None and hold.refusal is not None:
        answer = refused(work, hold, cmd, encoded, digest)
    elif answer is None:
        answer = accepted(work, hold, cmd, encoded, digest)
    if not cmd.usage:
        return answer
    from tenure.engine.verbs.usage import with_usage  # most submits report none; keeps startup fast

    return with_usage(work, hold, cmd.usage, answer)


def new_result(work: UnitOfWork, hold: Hold, cmd: commands.Submit, encoded: bytes, digest: str, **more: Any) -> Result:
    claim = hold.claim
    return Result(
        project=claim.project, id=work.new_id("result"), task=claim.task, run=claim.run, generation=claim.generation,
        session=claim.session, agent=claim.agent, user=claim.user, submitted_at=work.now,
        data=task_view.packed(work, claim.project, cmd.data, encoded), summary=cmd.summary, size=len(encoded),
        digest=digest, processing=work.now - claim.acquired_at, request_id=cmd.request_id,
        artifacts=_passed_on(work, hold, cmd.artifacts), **more,
    )  # fmt: skip


def _passed_on(work: UnitOfWork, hold: Hold, names: tuple[str, ...] | None) -> tuple[str, ...]:
    if names is None and not hold.task.artifacts:
        return ()
    from tenure.core.artifacts import passed_on  # most tasks have none; keeps startup fast
    from tenure.engine.artifacts.artifact_verbs import of_task

    return passed_on(of_task(work, hold.task), hold.claim, names)


def accepted(work: UnitOfWork, hold: Hold, cmd: commands.Submit, encoded: bytes, digest: str) -> Outcome:
    result = new_result(work, hold, cmd, encoded, digest, accepted=False, reason="", late=hold.is_late)
    signed = signatures(work, hold, result)
    if hold.is_late:  # the claim keeps the reason for which it ended
        return accept(work, hold.task, hold.claim, result, *signed)
    return accept(work, *claims.ended(hold.task, hold.claim, lifecycle.COMPLETED_BY, work.now), result, *signed)


def signatures(work: UnitOfWork, hold: Hold, result: Result) -> list[Row]:
    """The row of the result's signature, if it has one."""
    if hold.signed is None:
        return []
    from tenure.engine.checks.signatures import signature_rows

    return signature_rows(work, hold, result)


def accept(work: UnitOfWork, free: Task, over: Claim, result: Result, *rows: Row, **details: Any) -> Outcome:
    """Accept the result, at once or pending a verdict. Task and claim come as the end of the claim leaves them."""
    product = claims.work_product(free, over.generation, result.id)
    result = replace(result, accepted=True, reason="ACCEPTED", work_product=product)
    agent = work.get(Agent, free.project, over.agent)
    if agent is not None and agent.troubles:
        work.put(retry.agent_succeeded(agent))
    _model_works(work, over)
    done = moves.completed(free, work.now, product)
    details |= {"result": result.id, "work_product": product, "late": result.late}
    details["duration_ms"] = (result.submitted_at - over.acquired_at) // 1000
    marked = replace(over, result_accepted=True, work_product=product)
    kept = work.record("task.completed", result, marked, *rows, task=done, holder=over, details=details)
    spread(work)
    fields = {"work_product": product, "result": result.id, "version": kept.version}
    return submitted("ACCEPTED", done, over, f"accepted as {product}", **fields)


def submitted(code: str, task: Task, claim: Claim, message: str, **more: Any) -> Outcome:
    """The answer to a submit whose work is not lost."""
    return Outcome(
        outcome=code,
        message=f"{task.key}: {message}",
        state=task.state,
        generation=claim.generation,
        current_generation=task.generation,
        work_lost=False,
        **more,
    )


def _model_works(work: UnitOfWork, claim: Claim) -> None:
    project = work.get(Project, claim.project, claim.project)
    if project is not None and project.limited:
        from tenure.engine.models.model_choice import works  # usually no model is in trouble

        works(work, project, claim)


def _accepted_before(work: UnitOfWork, hold: Hold, cmd: commands.Submit, digest: str) -> Outcome | None:
    """Return the same answer for the same data to the receipt whose result was accepted, whatever happened since."""
    claim = hold.claim
    if not hold.verdict.genuine or not claim.result_accepted:
        return None
    where = {"project": claim.project, "task": claim.task, "generation": claim.generation, "accepted": True}
    accepted = work.find(Result, where)
    result = next((r for r in accepted if r.digest == digest), None)
    if result is None:
        if cmd.request_id is not None and any(r.request_id == cmd.request_id for r in accepted):
            raise RequestIdReused(f"request id {cmd.request_id[:80]!r} was used for another result")
        return None
    fields = {"again": True, "work_product": result.work_product, "result": result.id}
    return submitted("ACCEPTED", hold.task, claim, f"already accepted as {result.work_product}", **fields)


def _unfinished(
    work: UnitOfWork, hold: Hold, cmd: commands.Submit, encoded: bytes, digest: str
) -> tuple[Hold, Outcome]:
    """What a holder had when it was asked to stop: kept, and never accepted, even where a late submit would be."""
    if hold.refusal is None and not hold.is_late:
        free, over = released(work, hold, lifecycle.STOPPED_BY, UNFINISHED)
        kept = work.record("task.released", over, task=free, message=UNFINISHED, holder=hold.claim,
                           details={"attempt": over.attempt})  # fmt: skip
        spread(work)
        hold = replace(hold, task=current(work, kept), claim=over)
    if hold.refusal is None or hold.claim.reason == lifecycle.STOPPED_BY.reason:
        message = f"{hold.task.key}: {CODES['STOPPED'].meaning}"
        refusal = Outcome(outcome="STOPPED", message=message, state=hold.task.state,
                          current_generation=hold.task.generation)  # fmt: skip
        hold = replace(hold, refusal=refusal)
    return hold, refused(work, hold, cmd, encoded, digest)


def refused(work: UnitOfWork, hold: Hold, cmd: commands.Submit, encoded: bytes, digest: str) -> Outcome:
    refusal = hold.refusal
    assert refusal is not None
    if not hold.verdict.genuine:
        return replace(refusal, work_lost=False)
    claim, task = hold.claim, hold.task
    if claim.refused >= MOST_REFUSED or _is_kept(work, claim, digest):
        return replace(refusal, work_lost=True)
    result = new_result(
        work, hold, cmd, encoded, digest, accepted=False, reason=refusal.outcome, work_lost=True, late=True
    )
    marked = replace(claim, refused=claim.refused + 1, result_accepted=bool(claim.result_accepted))
    details = {
        "submitted_generation": claim.generation,
        "current_generation": task.generation,
        "reason": refusal.outcome,
        "work_lost": True,
        "result_size": len(encoded),
        "result": result.id,
        "processing_ms": (result.processing or 0) // 1000,
    }
    fields = {"level": "warning", "message": refusal.message, "details": details}
    work.record(
        "task.result_refused", result, marked, *signatures(work, hold, result), task=task, holder=claim, **fields
    )
    spread(work)
    hint = f"your result was kept as refused; `tenure results {shell_word(task.ref)}` shows it"
    if task.state == lifecycle.DEAD_LETTERED:
        hint = "the result was kept; the task is a dead letter, and a person can adopt the result"
    return replace(refusal, work_lost=True, result=result.id, hint=hint)


def _is_kept(work: UnitOfWork, claim: Claim, digest: str) -> bool:
    if not claim.refused:
        return False
    where = {"project": claim.project, "task": claim.task, "generation": claim.generation, "accepted": False}
    return any(r.digest == digest for r in work.find(Result, where))


HANDLERS: Handlers = {commands.Submit: submit}

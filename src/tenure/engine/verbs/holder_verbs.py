"""The verbs that take a receipt: renew, start, progress, checkpoint, fail, release, ask; and their guard.

Every function here begins with `held`, which judges the receipt by rows read in the same transaction. Nothing is
written for a receipt that is not the current claim's (or, for checkpoint, one whose late submit is open). `submit`,
`usage`, `land`, `graph` and `reserve` have the other verbs that take a receipt, behind the same guard.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core import claims, commands, inputs, lifecycle, moves, retry, roles
from tenure.core.claims import Verdict
from tenure.core.errors import InvalidInput
from tenure.core.ids import Receipt, parse_receipt
from tenure.core.outcomes import CODES, Outcome
from tenure.core.records import Agent, Checkpoint, Claim, Project, Session, Task, replace
from tenure.engine.reads import task_view
from tenure.engine.runtime.effects import spread
from tenure.engine.runtime.rows import brief_of, current, fields_of, project_of, task_by_ref
from tenure.engine.runtime.unit_of_work import Handlers, Refused, UnitOfWork
from tenure.engine.verbs import agents, brief

_STANDING = "state generation lease_until version"  # of a task, in the answers to its holder
QUESTION = "question"  # the release reason of a claim whose holder asked a person


class Hold(msgspec.Struct, frozen=True):
    """A receipt and the rows it was judged by. `refusal` is None when the holder may continue."""

    project: Project
    receipt: Receipt
    task: Task
    claim: Claim
    refusal: Outcome | None
    verdict: Verdict
    signed: tuple[str, str] | None = None  # public key and signature of the result, once they are checked

    @property
    def is_late(self) -> bool:
        return not claims.is_held(self.task)


def held(work: UnitOfWork, project: str, receipt: str, *, late: bool = False) -> Hold:
    """The guard of every write by a holder: returns the rows it may write to, or raises Refused."""
    hold = judged(work, project, receipt, late=late)
    if hold.refusal is not None:
        raise Refused(hold.refusal)
    return hold


def judged(work: UnitOfWork, project_name: str, receipt_text: str, *, late: bool = False) -> Hold:
    """The verdict on a receipt, for verbs that keep data of a refused one. Raises Refused where there is no task."""
    receipt = parse_receipt(receipt_text)
    project = project_of(work, project_name)
    task = task_by_ref(work, project_name, receipt.name)
    if task is None:
        message = f"no task {receipt.name!r} in project {project_name}"
        raise Refused(Outcome(outcome="NOT_FOUND", message=message, work_lost=False))
    claim = work.get(Claim, project_name, claims.claim_id(task.id, receipt.generation))
    if claim is not None:
        roles.check_mine(work.principal, claim.agent, f"{task.key} at generation {claim.generation}")
    verdict = claims.judge(receipt, task, claim, work.epoch, late=late)
    work.presented = claim if verdict.genuine else None
    refusal = None
    if verdict.code is not None:
        refusal = _refusal(task, receipt, verdict, claim)
    elif claim is not None:
        _sign_of_life(work, project, claim)
    return Hold(project, receipt, task, claim, refusal, verdict)  # type: ignore[arg-type]  # judged: refused without it


def _sign_of_life(work: UnitOfWork, project: Project, claim: Claim) -> None:
    agent = work.get(Agent, project.id, claim.agent)
    if agent is not None:
        agents.seen(work, agent)
    session = work.get(Session, project.id, claim.session)
    if session is not None:
        agents.active(work, session)


def _refusal(task: Task, receipt: Receipt, verdict: Verdict, claim: Claim | None) -> Outcome:
    code = verdict.code or ""
    fact = f"{task.key}: you hold generation {receipt.generation}; "
    if code == "STALE_GENERATION":
        fact += f"generation {task.generation} " + (
            f"is held by agent {task.agent}" if task.agent else f"is {lifecycle.spoken(task.state)}"
        )
    elif code == "ALREADY_EXPIRED":
        fact += claim.error if claim and claim.error else "its lease ran out"
    elif code in ("TASK_CANCELLED", "TASK_ALREADY_COMPLETED"):  # the code names the state
        fact += CODES[code].meaning
    else:
        fact += f"{CODES[code].meaning} (the task is {lifecycle.spoken(task.state)})"
    return Outcome(
        outcome=code,
        message=fact,
        directive=verdict.directive,
        current_generation=task.generation,
        state=task.state,
        hint="claim the task again and continue" if code == "ALREADY_EXPIRED" else None,
    )


def done_before(hold: Hold, reason: str, error_class: str | None = None) -> Outcome | None:
    """The same verb repeated with the receipt that did it: the same answer, no effect.

    A person may have paused the task too: `error_class` marks the holder's own pauses.
    """
    if (
        hold.verdict.code in ("NO_CLAIM", "TASK_ALREADY_COMPLETED", "TASK_CANCELLED")
        and hold.claim.reason == reason
        and error_class in (None, hold.claim.error_class)
    ):
        fields = fields_of(hold.task, "state retry_at")
        return Outcome(outcome="OK", again=True, generation=hold.claim.generation, **fields)
    return None


# --- while held ---------------------------------------------------------------------------------------------


def renew(work: UnitOfWork, cmd: commands.Renew) -> Outcome:
    hold = held(work, cmd.project, cmd.receipt)
    lease = None if cmd.lease is None else inputs.lease_of(cmd.lease, work.limits_of(hold.project))
    before = brief.acknowledged(work, hold.task, cmd.seen)
    if cmd.worked:
        before = claims.worked(before)
    task = _started(work, claims.renewed(before, lease, work.now, background=cmd.background))
    answer = Outcome(
        outcome="RENEWED",
        **fields_of(task, "lease_until generation state"),
        lease=((task.lease_until or 0) - work.now) / inputs.SECOND,
        mail=agents.unread(work, cmd.project, hold.claim.agent),
        **brief.directive(work, task),
    )
    return _by_budget(work, hold, answer)


def _by_budget(work: UnitOfWork, hold: Hold, answer: Outcome) -> Outcome:
    """The answer with budget warnings for a holder that gives a sign of life."""
    if not (hold.project.funded or hold.task.capped):
        return answer
    from tenure.engine.budgets.budget_guard import checked  # most projects have none; keeps startup fast

    return checked(work, hold, answer)


def _started(work: UnitOfWork, task: Task) -> Task:
    """Store the task; a holder's first write starts its work and appends an event."""
    begun = moves.started(task, work.now)
    if begun is task:
        return work.put(task)
    kept = work.record("task.started", task=begun, holder=begun)
    spread(work)
    return kept


def keep_started(work: UnitOfWork, task: Task) -> Task:
    """Store a task whose holder has just presented its receipt."""
    return _started(work, claims.lengthened(task, work.now))


def keep_worked(work: UnitOfWork, hold: Hold) -> Task:
    """Store a task whose holder has shown work, also while its late submit is open."""
    after = claims.worked(current(work, hold.task))
    if not hold.is_late:
        return keep_started(work, after)
    return work.put(after) if after.losses != hold.task.losses else hold.task


def up_to_date(work: UnitOfWork, hold: Hold, seen: int | None) -> tuple[Hold, Outcome | None]:
    """Before an effect of the work: refuse one for a description that the holder has not seen. The claim stays."""
    if hold.task.unseen_since is None and seen is None:
        return hold, None
    hold = replace(hold, task=brief.acknowledged(work, hold.task, seen))
    refusal = brief.unseen(work, hold.task)
    if refusal is None:
        return hold, None
    kept = keep_started(work, hold.task)
    return replace(hold, task=kept), replace(refusal, state=kept.state, lease_until=kept.lease_until)


def start(work: UnitOfWork, cmd: commands.Start) -> Outcome:
    hold = held(work, cmd.project, cmd.receipt)
    task = keep_started(work, hold.task)
    mail = agents.unread(work, cmd.project, hold.claim.agent)
    return Outcome(outcome="OK", mail=mail, **fields_of(task, _STANDING), **brief.directive(work, task))


def progress(work: UnitOfWork, cmd: commands.Progress) -> Outcome:
    if cmd.percent is not None and not 0 <= cmd.percent <= 100:
        raise InvalidInput(f"percent must be from 0 to 100 (got {cmd.percent})")
    inputs.check_text(cmd.step or "", "step", 1000)
    if cmd.checkpoint is not None:
        inputs.check_size(cmd.checkpoint, "checkpoint", inputs.LARGEST_CHECKPOINT)
    hold = held(work, cmd.project, cmd.receipt)
    task = claims.presented(brief.acknowledged(work, hold.task, cmd.seen), work.now)
    done_by = task.done_by
    if cmd.done_in is not None:
        done_by = work.now + inputs.micros(cmd.done_in, "done_in")
    after = replace(
        task,
        percent=task.percent if cmd.percent is None else cmd.percent,
        step=cmd.step or task.step,
        progress_at=work.now,
        done_by=done_by,
        warned_at=None,
        wanted=None if task.wanted == "warn" else task.wanted,
    )
    details = {"percent": cmd.percent, "step": cmd.step}
    kept = work.record("task.progress", message=cmd.step or "", task=after, holder=hold.claim, details=details)
    if cmd.checkpoint is not None:
        kept = work.record("task.checkpoint", _checkpoint(work, hold, cmd.checkpoint), task=kept, holder=hold.claim)
    spread(work)
    mail = agents.unread(work, cmd.project, hold.claim.agent)
    answer = Outcome(outcome="OK", mail=mail, **fields_of(kept, _STANDING), **brief.directive(work, kept))
    return _by_budget(work, hold, answer)


def checkpoint(work: UnitOfWork, cmd: commands.SaveCheckpoint) -> Outcome:
    inputs.check_size(cmd.data, "checkpoint", inputs.LARGEST_CHECKPOINT)
    hold = held(work, cmd.project, cmd.receipt, late=True)
    kept = _checkpoint(work, hold, cmd.data)
    task = claims.worked(hold.task) if hold.is_late else claims.presented(hold.task, work.now)
    after = work.record("task.checkpoint", kept, task=task, holder=hold.claim)
    spread(work)
    standing = fields_of(after, _STANDING) | {"generation": hold.claim.generation}
    mail = agents.unread(work, cmd.project, hold.claim.agent)
    asked = {} if hold.is_late else brief.directive(work, after)
    return Outcome(outcome="OK", mail=mail, **standing, **asked)


def _checkpoint(work: UnitOfWork, hold: Hold, data: dict[str, Any]) -> Checkpoint:
    project = hold.task.project
    work.get(Checkpoint, project, hold.task.id)  # the checkpoint that it replaces
    return Checkpoint(
        project=project,
        id=hold.task.id,
        data=task_view.packed(work, project, data),
        **fields_of(hold.claim, "generation agent session"),
        at=work.now,
    )


# --- giving up ----------------------------------------------------------------------------------------------


def fail(work: UnitOfWork, cmd: commands.Fail) -> Outcome:
    inputs.check_choice(cmd.error_class, retry.CLASSES, "class")
    inputs.check_text(cmd.message, "message")
    after = None if cmd.retry_after is None else inputs.micros(cmd.retry_after, "retry_after")
    hold = judged(work, cmd.project, cmd.receipt)
    if cmd.error_class == retry.BUDGET:
        if hold.refusal is not None:
            return done_before(hold, "PAUSED", retry.BUDGET) or hold.refusal
        policy = brief_of(work, hold.task).retry
        if retry.BUDGET in policy.no_retry_on:
            error = {"error_class": retry.BUDGET, "error": cmd.message}
            ending = lifecycle.FAILED_GIVEN_BACK
            free, over = claims.ended(hold.task, hold.claim, ending, work.now, retry=policy, **error)
            return _gave_up(work, hold, "task.failed", free, over, cmd.message, error_class=retry.BUDGET)
        return _pause_held(work, hold, lifecycle.BUDGET, "budget exceeded", cmd.message, "task.paused", retry.BUDGET)
    if hold.refusal is not None:
        return done_before(hold, "FAILED") or hold.refusal
    task, claim = hold.task, hold.claim
    policy, chance = brief_of(work, task).retry, work.random.fraction()
    free, over = claims.failed(task, claim, policy, cmd.error_class, cmd.message, work.now, chance, after)
    if cmd.trace:
        from tenure.core.redaction import TRACE, kept_trace  # few attempts fail with one; keeps startup fast

        over = replace(over, metadata={**over.metadata, TRACE: kept_trace(cmd.trace)})
    if cmd.error_class not in retry.COUNTING:
        _cool_down(work, hold, cmd, after)
    return _gave_up(work, hold, "task.failed", free, over, cmd.message, error_class=cmd.error_class)


def _cool_down(work: UnitOfWork, hold: Hold, cmd: commands.Fail, after: int | None) -> None:
    """An agent cools off after three failures in a row; a rate limit makes the model cool off for all agents."""
    claim = hold.claim
    if cmd.error_class == retry.RATE_LIMIT:
        from tenure.engine.models import model_choice  # rarely needed; keeps startup fast

        name = cmd.model or claim.model or model_choice.recommended_model(work, hold.project, hold.task, claim)
        if name is not None:
            model_choice.limited(work, claim.project, name, after)
        return
    agent = work.get(Agent, claim.project, claim.agent)
    if agent is not None:
        work.put(retry.agent_troubled(agent, work.now))


def release(work: UnitOfWork, cmd: commands.Release) -> Outcome:
    inputs.check_text(cmd.reason, "reason")
    hold = judged(work, cmd.project, cmd.receipt)
    ending = lifecycle.STOPPED_BY if cmd.stopped else lifecycle.RELEASED_BY
    if hold.refusal is not None:
        return done_before(hold, ending.reason) or hold.refusal
    free, over = released(work, hold, ending, cmd.reason)
    if not cmd.stopped:
        free = replace(free, cool_offs=retry.cooled(hold.task, hold.claim.agent, work.now, retry.RELEASE_COOL_OFF))
    return _gave_up(work, hold, "task.released", free, over, cmd.reason)


def released(work: UnitOfWork, hold: Hold, ending: lifecycle.Ending, reason: str) -> tuple[Task, Claim]:
    """The held task and its claim after its holder let go."""
    # The brief would cost another round trip.
    policy = None if claims.is_given_back(hold.task, ending) else brief_of(work, hold.task).retry
    return claims.ended(hold.task, hold.claim, ending, work.now, retry=policy, error=reason or None)


def _gave_up(work: UnitOfWork, hold: Hold, kind: str, free: Task, over: Claim, message: str, **details: Any) -> Outcome:
    level = "warning" if kind == "task.failed" else "info"
    details = {"attempt": over.attempt, **details}
    if kind == "task.failed" and not over.counted:
        details["given_back"] = True
    kept = work.record(kind, over, task=free, message=message, holder=hold.claim, level=level, details=details)
    spread(work)
    kept = current(work, kept)  # its own end may cancel it, through others
    message, again = f"{kept.key} is {lifecycle.spoken(kept.state)}", work.retry_at(kept.retry_at)
    return Outcome(outcome="OK", state=kept.state, **again, generation=over.generation, message=message)


def ask(work: UnitOfWork, cmd: commands.Ask) -> Outcome:
    inputs.check_text(cmd.question, "question", required=True)
    hold = judged(work, cmd.project, cmd.receipt)
    if hold.refusal is not None:
        return done_before(hold, "PAUSED", QUESTION) or hold.refusal
    reason = f"question: {cmd.question[:200]}"
    return _pause_held(work, hold, lifecycle.QUESTION, reason, cmd.question, "task.question", QUESTION)


def _pause_held(
    work: UnitOfWork, hold: Hold, cause: str, reason: str, message: str, kind: str, error_class: str
) -> Outcome:
    free, over = claims.ended(hold.task, hold.claim, lifecycle.PAUSED_BY, work.now)
    over = replace(over, error_class=error_class, error=message)
    pause = lifecycle.PauseCause(cause=cause, reason=reason, at=work.now, by=f"agent:{hold.claim.agent}")
    free = moves.paused(free, pause)
    return _gave_up(work, hold, kind, free, over, message)


HANDLERS: Handlers = {
    commands.Renew: renew,
    commands.Start: start,
    commands.Progress: progress,
    commands.SaveCheckpoint: checkpoint,
    commands.Fail: fail,
    commands.Release: release,
    commands.Ask: ask,
}

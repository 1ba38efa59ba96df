"""Claims: granting, judging a receipt, ending. The fence.

A task's generation grows by one with each grant and in no other way. Every write of a holder is judged here, by the
rows read in the transaction that applies it: epoch, generation, nonce, then the state.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core import lifecycle, limits, moves
from tenure.core.ids import Receipt, is_genuine
from tenure.core.lifecycle import (
    CANCELLED,
    COMPLETED,
    DEAD_LETTERED,
    EXPIRED_BY,
    FREE,
    GIVEN_BACK,
    HELD,
    LATE_SUBMIT_STATES,
    MOST_GIVEN_BACK,
    PAUSED,
    READY,
    WITH_RESULT,
    Ending,
)
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, LastError, RetryPolicy, Task, replace
from tenure.core.retry import (
    AGENT_TASK_COOL_OFF,
    COUNTING,
    LEASE_EXPIRED,
    MOST_FAILURES,
    RATE_LIMIT,
    RATE_LIMIT_DELAY,
    cooled,
    counts_after_all,
    delay,
    is_poison,
    is_retried,
)

MOST_NAMED = limits.UNFINISHED_NAMED
UNWORKED_LOSSES = limits.UNWORKED_LOSSES
PROCESS_GONE = "its process is gone"  # the error of a claim that ended for it


def claim_id(task: str, generation: int) -> str:
    return f"{task}@{generation}"


def work_product(task: Task, generation: int, result: str) -> str:
    """The reference of an accepted result; its last six digits come from the result's id."""
    import hashlib  # as in ids.is_genuine

    return f"wp-{task.key}-gen{generation}-{hashlib.sha256(result.encode()).hexdigest()[:6]}"


def is_held(task: Task) -> bool:
    return task.state in HELD


# The reasons by which a holder itself ends its claim; a pause is one only where the holder asked a question.
_OWN_WORDS = frozenset({"COMPLETED", "SUBMITTED", "FAILED", "VOLUNTARY", "STOPPED", "WAITING"})


def is_ended_by_holder(claim: Claim) -> bool:
    """Whether the holder itself ended this claim: it knows, so nothing that it sends later is a zombie's."""
    return is_own_ending(claim.reason, claim.error_class)


def is_own_ending(reason: str | None, error_class: str | None) -> bool:
    """The same, by the reason and the error class in the lineage."""
    return reason in _OWN_WORDS or (reason == "PAUSED" and error_class == "question")


def is_late_submit_open(task: Task, claim: Claim) -> bool:
    """Whether the claim expired or was paused while held, and its late submit is still open."""
    return task.late_submit_open and task.generation == claim.generation and task.state in LATE_SUBMIT_STATES


def is_late_landing_open(task: Task, claim: Claim) -> bool:
    """Whether a late submit may land: only a budget has paused the task. A person's pause also holds the branch."""
    is_paused = is_late_submit_open(task, claim) and task.state == PAUSED
    return is_paused and all(pause.cause == lifecycle.BUDGET for pause in task.pauses)


# --- granting -----------------------------------------------------------------------------------------------

DENIALS = {
    COMPLETED: "DENIED_COMPLETED",
    CANCELLED: "DENIED_CANCELLED",
    DEAD_LETTERED: "DENIED_DEAD_LETTERED",
    PAUSED: "DENIED_PAUSED",
    lifecycle.CLAIMED: "DENIED_ACTIVE_CLAIM",
    lifecycle.RUNNING: "DENIED_ACTIVE_CLAIM",
}


# Denials that end by themselves, or by what others do: a claim by name may wait for that.
_MAY_END = frozenset({
    "DENIED_ACTIVE_CLAIM", "DENIED_NOT_READY", "DENIED_OFFERED", "DENIED_CONFLICT", "DENIED_TRACK", "DENIED_LIMIT",
    "DENIED_BUDGET", "DENIED_PAUSED",
})  # fmt: skip


def may_end(denial: Outcome) -> bool:
    """Whether it is worthwhile to wait for the end of what denied a claim by name."""
    return denial.outcome in _MAY_END and not denial.yours and denial.state != DEAD_LETTERED


def denial_by_state(task: Task) -> str | None:
    """Why a task in this state cannot be claimed, or None when it is ready."""
    return None if task.state == READY else DENIALS.get(task.state, "DENIED_NOT_READY")


def granted(
    task: Task,
    last: Claim | None,
    *,
    agent: str,
    session: str,
    user: str | None,
    lease: int,
    now: int,
    nonce: bytes,
    epoch: str,
    process: str | None = None,
    request_id: str | None = None,
    request_hash: str | None = None,
    metadata: dict[str, Any] | None = None,
    key: str | None = None,
) -> tuple[Task, Claim]:
    """The held task and the new claim. The attempt counts here, so that a crash counts."""
    is_again = _is_claimed_again(task, last, agent, session)
    continues = is_continued(task, last, agent, session)
    held = moves.granted(
        task, agent=agent, session=session, lease=lease, at=now, epoch=epoch, counts=not continues,
        losses=task.losses if is_again else 0,
    )  # fmt: skip
    claim = Claim(
        project=task.project,
        id=claim_id(task.id, held.generation),
        task=task.id,
        generation=held.generation,
        run=task.run,
        attempt=held.attempts,
        nonce=nonce,
        epoch=epoch,
        agent=agent,
        session=session,
        user=user,
        acquired_at=now,
        lease=lease,
        continues=continues,
        process=process,
        request_id=request_id,
        request_hash=request_hash,
        metadata=metadata or {},
        key=key,
    )
    return held, claim


def is_continued(task: Task, last: Claim | None, agent: str, session: str) -> bool:
    """Whether a claim by these is the same attempt again: they lost the last claim, and the loss does not count."""
    return last is not None and _is_claimed_again(task, last, agent, session) and not is_loss_counted(task, last)


def _is_claimed_again(task: Task, last: Claim | None, agent: str, session: str) -> bool:
    """Whether this session and agent lost the task, and nobody has had it since."""
    return (
        last is not None
        and last.generation == task.generation
        and last.reason == EXPIRED_BY.reason
        and (last.agent, last.session) == (agent, session)
        and last.run == task.run
    )


def is_loss_counted(task: Task, lost: Claim) -> bool:
    """Whether a lost claim was a whole attempt, also for the session that had it.

    An interruption is not: the session continues. A proven death is, and so is the third loss in a row without a sign
    of work, and each later one: a process that its task kills comes back with its configured name for ever.
    """
    return lost.error == PROCESS_GONE or task.losses >= UNWORKED_LOSSES


# The attempts of a task in these states include the last one that it may get.
_UNDER_WAY = (*HELD, lifecycle.VALIDATING, COMPLETED, DEAD_LETTERED)


def fewest_attempts(task: Task) -> int:
    """The lowest `max_attempts` that it may be given: the attempts used, and the next one where it waits for that."""
    under_way = task.state in _UNDER_WAY or task.state_before in _UNDER_WAY
    return max(1, task.attempts + (not under_way))


# --- judging ------------------------------------------------------------------------------------------------


class Verdict(msgspec.Struct, frozen=True):
    """`code` is None when the holder may continue; otherwise the refusal and the directive."""

    code: str | None
    directive: str | None = None
    genuine: bool = False  # the receipt was issued for its generation: a refused result is kept


def judge(receipt: Receipt, task: Task, claim: Claim | None, epoch: str, *, late: bool = False) -> Verdict:
    """Whether the bearer of this receipt may write. `claim` is the row of the receipt's own generation.

    `late`: the verb is submit, checkpoint or usage, which are allowed while a late submit is open.
    """
    genuine = is_genuine(receipt, claim)
    if receipt.epoch != epoch:
        return Verdict("STALE_EPOCH", "abort", genuine)
    if receipt.generation < task.generation:
        return Verdict("STALE_GENERATION", "abort", genuine)
    if receipt.generation > task.generation:
        return Verdict("FUTURE_GENERATION", "abort")
    if claim is None or not genuine:
        return Verdict("SESSION_MISMATCH", "abort")
    if is_held(task):
        return Verdict(None, genuine=True)
    if task.state == COMPLETED:
        return Verdict("TASK_ALREADY_COMPLETED", "cancel", genuine)
    if task.state == CANCELLED:
        return Verdict("TASK_CANCELLED", "cancel", genuine)
    if late:
        if is_late_submit_open(task, claim):
            return Verdict(None, genuine=True)
        return Verdict("NO_CLAIM", _directive(task), genuine)
    if claim.reason == "EXPIRED":
        return Verdict("ALREADY_EXPIRED", "warn" if task.state == READY else _directive(task), genuine)
    return Verdict("NO_CLAIM", _directive(task), genuine)


def _directive(task: Task) -> str:
    return "pause" if task.state == PAUSED else "abort"


# --- while held ---------------------------------------------------------------------------------------------


def renewed(task: Task, lease: int | None, now: int, *, background: bool = False) -> Task:
    """A renewal sets a new end, and may shorten the lease; only the store's clock counts.

    A background renewal (a hook acts for an agent that may have stopped long ago) extends at most two hours beyond the
    last command that presented the receipt, and never shortens.
    """
    length = lease or task.lease or 0
    until = now + length
    if background:
        until = max(task.lease_until or 0, min(until, (task.presented_at or now) + limits.UNATTENDED))
    return replace(
        task,
        lease=length,
        lease_until=until,
        renewals=task.renewals + 1,
        presented_at=task.presented_at if background else now,
    )


def lengthened(task: Task, now: int) -> Task:
    """Any other command that presents the receipt extends the lease, and never shortens it."""
    return replace(task, lease_until=max(task.lease_until or 0, now + (task.lease or 0)), presented_at=now)


def presented(task: Task, now: int) -> Task:
    """It also starts the work, and shows it."""
    return worked(moves.started(lengthened(task, now), now))


def worked(task: Task) -> Task:
    """Its holder has shown work: losses before this are no longer in a row. A renewal shows none: a thread sends it."""
    return replace(task, losses=0) if task.losses else task


# --- ending -------------------------------------------------------------------------------------------------


def is_given_back(task: Task, ending: Ending) -> bool:
    """Whether the attempt does not count after this ending. Then, without an error, `ended` needs no retry policy."""
    return ending.attempt == FREE or (ending.attempt == GIVEN_BACK and task.given_back < MOST_GIVEN_BACK)


def ended(
    task: Task,
    claim: Claim,
    ending: Ending,
    at: int,
    *,
    retry: RetryPolicy | None = None,
    error_class: str | None = None,
    error: str | None = None,
) -> tuple[Task, Claim]:
    """Task and claim after the end of the claim at instant `at`; `retry` is needed where the attempt may count.

    The task then waits for any agent, and the caller moves it on where the ending calls for another state; or, decided
    here for every verb, it is a dead letter, since this attempt was its last. A task with a requested drain is paused,
    unless a person ended the claim.
    """
    back = is_given_back(task, ending)
    free = moves.freed(
        task, at, attempts=task.attempts - back, given_back=task.given_back + (back and ending.attempt == GIVEN_BACK),
        late_submit_open=ending.late_submit, drains=ending is not lifecycle.SUPERSEDED_BY,
        rests=ending not in lifecycle.MOVED_ON,
    )  # fmt: skip
    if ending is EXPIRED_BY:
        free = replace(free, losses=task.losses + 1)
    if error_class is not None:
        failure = LastError(error_class=error_class, message=error or "", generation=claim.generation, at=at)
        free = replace(free, failed_at=at, last_error=failure)
    over = replace(
        claim,
        state=ending.state,
        reason=ending.reason,
        released_at=at,
        renewals=task.renewals,
        process=None,
        counted=not back,
        error_class=error_class,
        error=error,
    )
    if back:
        if claim.continues:  # the whole attempt is given back, with its earlier failure
            free = replace(free, failures=free.failures[:-1])
        if error_class is not None and retry is not None and not is_retried(retry, error_class):
            free = moves.dead_lettered(free, at)
    elif ending not in WITH_RESULT:
        assert retry is not None, ending.reason
        is_failure = ending not in lifecycle.NO_FAILURES
        free = counted(free, claim, retry, at, error_class, is_failure=is_failure, is_lost=ending is EXPIRED_BY)
    return free, over


def counted(
    task: Task,
    claim: Claim,
    policy: RetryPolicy,
    at: int,
    error_class: str | None,
    *,
    is_failure: bool = True,
    is_lost: bool = False,
) -> Task:
    """A free task whose attempt counts and failed: as it is, or a dead letter if it was the last.

    The one place that decides it: attempts used up, a class that is not retried, or a poison pill.
    """
    if is_failure and not claim.continues:  # a claim that continues a lost one is the same attempt
        task = replace(task, failures=(*task.failures, claim.agent)[-MOST_FAILURES:])
    is_last = task.attempts >= task.max_attempts or is_poison(policy, task.failures)
    if error_class is not None:
        is_last = is_last or not is_retried(policy, error_class)
    elif is_lost:  # no failure was reported: `retry_on` lists those that are
        is_last = is_last or LEASE_EXPIRED in policy.no_retry_on
    return moves.dead_lettered(task, at) if is_last else task


def tried_again(task: Task, policy: RetryPolicy, at: int, fraction: float, retry_after: int | None = None) -> Task:
    """A task whose attempt failed, after the delay of its policy; a dead letter stays one."""
    if task.state == DEAD_LETTERED:
        return task
    return moves.retrying(task, at + (delay(policy, task.attempts, fraction) if retry_after is None else retry_after))


def failed(
    task: Task,
    claim: Claim,
    policy: RetryPolicy,
    error_class: str,
    error: str,
    at: int,
    fraction: float,
    retry_after: int | None = None,
) -> tuple[Task, Claim]:
    """Task and claim after the holder reported a failure of this class, other than an exceeded budget.

    The task's own failures are retried by its policy. After an agent's own failure the task is free for others at once,
    after a rate limit for all in a while; the attempt is given back until enough different agents had trouble with it,
    or where the policy names the class in `retry_on`: then it is retried as the policy says.
    """
    trouble = error_class not in COUNTING
    counts = not trouble or error_class in policy.retry_on or counts_after_all(task, claim.agent)
    ending = lifecycle.FAILED_COUNTING if counts else lifecycle.FAILED_GIVEN_BACK
    free, over = ended(task, claim, ending, at, retry=policy, error_class=error_class, error=error)
    if trouble:
        free = replace(free, troubled=tuple(dict.fromkeys((*task.troubled, claim.agent))))
    if over.counted:
        return tried_again(free, policy, at, fraction, retry_after), over
    if free.state == DEAD_LETTERED:
        return free, over
    if error_class == RATE_LIMIT:
        return moves.retrying(free, at + (RATE_LIMIT_DELAY if retry_after is None else retry_after)), over
    return replace(free, cool_offs=cooled(task, claim.agent, at, AGENT_TASK_COOL_OFF)), over

"""Claims: granting, judging a receipt, ending. The fence.

A task's generation grows by one with each grant and by nothing else. Every write of a holder is judged here, by the
rows read in the transaction that applies it: epoch, generation, nonce, then the state.
"""

from __future__ import annotations

from typing import NamedTuple

from tenure.core import lifecycle
from tenure.core.lifecycle import (
    ANSWERABLE,
    CANCELLED,
    COMPLETED,
    DEAD_LETTERED,
    HELD,
    MOST_GIVEN_BACK,
    PAUSED,
    PENDING,
    READY,
    RETRYING,
    Ending,
)  # fmt: skip
from tenure.core.receipts import Receipt, is_genuine
from tenure.core.records import Claim, LastError, RetryPolicy, Task, replace
from tenure.core.retry import delay, is_retried

MOST_NAMED = 3  # unfinished tasks that a session is reminded of with a claim
LONGEST_UNATTENDED = 2 * 3600 * 1_000_000


def claim_id(task: str, generation: int) -> str:
    return f"{task}@{generation}"


def work_product(task: Task, generation: int, digest: str) -> str:
    """How an accepted result is referred to."""
    return f"wp-{task.key}-gen{generation}-{digest[:6]}"


def is_held(task: Task) -> bool:
    return task.state in HELD


def is_answerable(task: Task, claim: Claim) -> bool:
    """The claim ended without its holder's word and nothing has closed the window since."""
    return task.answerable and task.generation == claim.generation and task.state in ANSWERABLE


# --- granting -----------------------------------------------------------------------------------------------

DENIALS = {
    COMPLETED: "DENIED_COMPLETED",
    CANCELLED: "DENIED_CANCELLED",
    DEAD_LETTERED: "DENIED_DEAD_LETTERED",
    PAUSED: "DENIED_PAUSED",
    lifecycle.CLAIMED: "DENIED_ACTIVE_CLAIM",
    lifecycle.RUNNING: "DENIED_ACTIVE_CLAIM",
}


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
    key: str | None = None,
) -> tuple[Task, Claim]:
    """The task held, and the new claim. The attempt counts here, so that a crash counts.

    A session that takes up its own expired claim goes on with the same attempt.
    """
    continues = (
        last is not None
        and last.generation == task.generation
        and last.reason == "EXPIRED"
        and last.session == session
        and last.run == task.run
    )
    attempts = task.attempts + (0 if continues else 1)
    generation = task.generation + 1
    held = replace(
        task,
        state=lifecycle.CLAIMED,
        generation=generation,
        attempts=attempts,
        agent=agent,
        session=session,
        claimed_at=now,
        lease=lease,
        lease_until=now + lease,
        presented_at=now,
        claim_epoch=epoch,
        answerable=False,
        renewals=0,
        retry_at=None,
        offer_to=None,
        offer_until=None,
        percent=None,
        step=None,
        progress_at=None,
        done_by=None,
        warned_at=None,
        reason=None,
        state_before=None,
        parked=None,
        price=None,
        resume_at=None,
    )
    claim = Claim(
        project=task.project,
        id=claim_id(task.id, generation),
        task=task.id,
        generation=generation,
        run=task.run,
        attempt=attempts,
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
        key=key,
    )
    return held, claim


# --- judging ------------------------------------------------------------------------------------------------


class Verdict(NamedTuple):
    """`code` is None when the holder may go on; otherwise the refusal and what it should do."""

    code: str | None
    directive: str | None = None
    genuine: bool = False  # the receipt was handed out for its generation: a refused result is kept


def judge(receipt: Receipt, task: Task, claim: Claim | None, epoch: str, *, late: bool = False) -> Verdict:
    """May the bearer of this receipt write? `claim` is the row of the receipt's own generation.

    `late`: the verb is one of submit, checkpoint and usage, which an answerable claim may still do.
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
        if is_answerable(task, claim):
            return Verdict(None, genuine=True)
        return Verdict("NO_CLAIM", _directive(task), genuine)
    if claim.reason == "EXPIRED":
        return Verdict("ALREADY_EXPIRED", "warn" if task.state == READY else _directive(task), genuine)
    return Verdict("NO_CLAIM", _directive(task), genuine)


def _directive(task: Task) -> str:
    return "pause" if task.state == PAUSED else "abort"


# --- while held ---------------------------------------------------------------------------------------------


def renewed(task: Task, lease: int | None, now: int, *, background: bool = False) -> Task:
    """A renewal sets the end anew, and may shorten it; nobody's word is taken for the time but the store's.

    In the background (a hook speaks for an agent that may long have stopped) it reaches at most two hours beyond the
    last command that presented the receipt, and shortens nothing.
    """
    length = lease or task.lease or 0
    until = now + length
    if background:
        until = max(task.lease_until or 0, min(until, (task.presented_at or now) + LONGEST_UNATTENDED))
    return replace(
        task,
        lease=length,
        lease_until=until,
        renewals=task.renewals + 1,
        presented_at=task.presented_at if background else now,
    )


def presented(task: Task, now: int) -> Task:
    """Any other command that presents the receipt lengthens the lease, never shortens it, and starts the work."""
    return replace(
        task, lease_until=max(task.lease_until or 0, now + (task.lease or 0)), presented_at=now, **started(task, now)
    )


def started(task: Task, now: int) -> dict[str, object]:
    if task.state != lifecycle.CLAIMED:
        return {}
    return {"state": lifecycle.RUNNING, "started_at": now}


# --- ending -------------------------------------------------------------------------------------------------


def waiting_state(task: Task, now: int) -> str:
    """Where a task goes that nobody holds and nothing delays."""
    if task.unmet > 0 or (task.not_before is not None and task.not_before > now):
        return PENDING
    return READY


def ended(
    task: Task,
    claim: Claim,
    ending: Ending,
    at: int,
    *,
    error_class: str | None = None,
    error: str | None = None,
) -> tuple[Task, Claim]:
    """Task and claim after the hold is over, at instant `at`; the task is where it waits for anybody.

    An attempt that does not count is given back, at most ten times a run. The caller moves the task on from there
    where the ending asks for another state. A task that was to be drained is paused, unless a person took it away.
    """
    back = not ending.counts and task.given_back < MOST_GIVEN_BACK
    free = replace(
        task,
        attempts=task.attempts - back,
        given_back=task.given_back + back,
        agent=None,
        session=None,
        claimed_at=None,
        lease=None,
        lease_until=None,
        claim_epoch=None,
        presented_at=None,
        renewals=0,
        wanted=None,
        done_by=None,
        warned_at=None,
        funded=False,
        answerable=ending.answerable,
    )
    if task.wanted == "pause" and ending is not lifecycle.SUPERSEDED_BY:
        free = replace(free, state=PAUSED, state_before=READY, reason="drained: paused when its holder let go")
    else:
        free = replace(free, state=waiting_state(free, at))
    if error_class is not None:
        free = replace(
            free,
            failed_at=at,
            last_error=LastError(error_class=error_class, message=error or "", generation=claim.generation, at=at),
        )
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
    return free, over


def after_failure(
    task: Task, policy: RetryPolicy, error_class: str, at: int, fraction: float, retry_after: int | None = None
) -> Task:
    """A task whose counted attempt failed at `at`: on its way to another attempt, or a dead letter."""
    if task.attempts >= task.max_attempts or not is_retried(policy, error_class):
        return dead_lettered(task, at)
    wait = delay(policy, task.attempts, fraction) if retry_after is None else retry_after
    return retried_later(task, at + wait)


def retried_later(task: Task, at: int) -> Task:
    """A free task that waits until `at`; one that was drained stays paused and waits from there."""
    if task.state == PAUSED:
        return replace(task, state_before=RETRYING, retry_at=at)
    return replace(task, state=RETRYING, retry_at=at)


def dead_lettered(task: Task, at: int) -> Task:
    return replace(task, state=DEAD_LETTERED, dead_lettered_at=at, retry_at=None)


def new_run(task: Task, now: int) -> Task:
    """Started over by a person: attempts begin at 0, the generation goes on, older receipts are not answerable."""
    fresh = replace(
        task,
        run=task.run + 1,
        attempts=0,
        given_back=0,
        troubled=(),
        cool_offs={},
        retry_at=None,
        answerable=False,
        work_product=None,
        completed_at=None,
        dead_lettered_at=None,
        percent=None,
        step=None,
        archived_at=None,
    )
    return replace(fresh, state=waiting_state(fresh, now))

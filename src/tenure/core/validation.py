"""Validation of outputs: what a contract requires, whose verdict counts, and what follows from it.

A result that asks to be landed has a second phase: once it has passed, its commit waits to be put on a branch, and only
then the task is completed. To land it a process takes the row as any taker does, and that receipt fences the landing.

A contract's `validation` names a validator, its `settings` configure it. Quick ones (`BEFORE`) run before the submit's
transaction, so that the holder gets the verdict at once and can fix its output. All others run afterwards: the claim
has ended, the task is `validating`, and a `Validation` row waits for a taker. A taker has its own lease and receipt;
its verdict counts if nobody took over, whatever the clock shows, and only one ever counts.

Readers use the row and `now` alone: an expired lease frees the validation without a sweep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.core import claims, lifecycle, limits, moves
from tenure.core.errors import InvalidInput
from tenure.core.ids import Receipt
from tenure.core.land_request import JUDGE, LAND, LANDING, name_in_phase
from tenure.core.lifecycle import VALIDATING
from tenure.core.patterns import pattern
from tenure.core.records import Claim, LastError, RetryPolicy, Task, Validation, replace
from tenure.core.retry import delay

NONE = "none"
REVIEW = "review"  # decided by a person or another agent: nothing to take or run
BEFORE = ("json-schema", "regex")
# Every other name is a plug-in's. Plug-ins always run afterwards: what cannot be killed from outside must not stand
# between a holder and its answer.
KNOWN = (NONE, *BEFORE, "test-pass", "llm-judge", REVIEW)
READ_IT = (*BEFORE, "llm-judge")  # these judge the submitted data itself
INVALID_OUTPUT = "invalid_output"  # the class of an attempt whose output was refused

OPEN, PASSED, REFUSED, WITHDRAWN = "open", "passed", "refused", "withdrawn"
MERGE_CONFLICT = "merge_conflict"  # the class of an attempt whose work does not fit to its branch any more

MOST_INVALID = limits.INVALID_OUTPUTS
MOST_TRIES = limits.VALIDATION_TRIES
LEASE = limits.VALIDATION_LEASE
FIRST_WAIT, LONGEST_WAIT = 10_000_000, 300_000_000  # between two takers that could not decide
MOST_REASONS = limits.REASONS
LONGEST_REASON = limits.REASON
LARGEST_DETAILS = limits.DETAILS_BYTES

_NAME = pattern(r"[a-z0-9][a-z0-9_.-]{0,63}")
_OF_VALIDATION = pattern(r"(task_[0-9A-Z]{26})-([0-9]{1,18})(-land)?")


# --- contracts ----------------------------------------------------------------------------------------------


def validator_of(output: Mapping[str, Any]) -> str:
    return str(output.get("validation", NONE))


def check_contract(output: Mapping[str, Any]) -> None:
    """Check a contract's shape; only its validator knows whether its settings are valid."""
    name = validator_of(output)
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"output.validation {name[:60]!r} must be one of {', '.join(KNOWN)}, or a plug-in's name")
    if name in (NONE, REVIEW) and output.get("settings"):
        raise InvalidInput(
            f"output.settings: {name} takes no settings", f"name the validator in output.validation: {', '.join(KNOWN)}"
        )


def unread(output: Mapping[str, Any], data: Any) -> str | None:
    """Why the contract's validator would not judge the whole output; None where it does."""
    name = validator_of(output)
    is_elsewhere = isinstance(data, dict) and "$artifact" in data
    if not is_elsewhere or name not in READ_IT or (output.get("settings") or {}).get("of") == "summary":
        return None
    return f"{name} judges the submitted data itself, and this is an artifact: submit at most 1 MiB"


# --- takers -------------------------------------------------------------------------------------------------


def receipt_name(row: Validation) -> str:
    """The name of a validation in its takers' receipts; no task has such a name."""
    return name_in_phase(f"{row.task}-{row.claimed}", row.phase)


def row_of(receipt: Receipt) -> str:
    """The id of the row that a taker's receipt is for."""
    match = _OF_VALIDATION.fullmatch(receipt.name)
    if match is None:
        raise InvalidInput(
            "this is a claim's receipt; a validation's begins with its task's id", "pass the receipt of the validation"
        )
    return claims.claim_id(match.group(1), int(match.group(2)))


def is_open(row: Validation | None, task: Task) -> bool:
    """Whether the task waits for this verdict, or would if it were not paused or cancelled."""
    return row is not None and row.state == OPEN and row.claimed == task.generation


def is_submitted(task: Task) -> bool:
    """Whether a result of it waits: for its verdict, or to be landed."""
    return VALIDATING in (task.state, task.state_before)


def is_reserving(row: Validation | None, task: Task) -> bool:
    """Whether what the task touches stays reserved after its claim: until its result is landed or refused."""
    is_waiting = is_submitted(task) and task.state not in lifecycle.FINISHED
    return is_waiting and row is not None and is_open(row, task) and row.land is not None


def is_running(row: Validation, epoch: str, now: int) -> bool:
    return row.state == OPEN and row.holder is not None and row.until > now and row.epoch == epoch


def is_waiting(row: Validation, epoch: str, now: int) -> bool:
    """Whether it could be taken now as the next best of its phase."""
    is_taken_by_name = row.validator == REVIEW and row.phase == JUDGE
    return not is_taken_by_name and not is_running(row, epoch, now) and (row.retry_at or 0) <= now


def phase_of(row: Validation) -> str:
    """The phase of its takers."""
    return JUDGE if row.phase == JUDGE else LAND


def taken(
    row: Validation,
    *,
    holder: str,
    agent: str | None,
    lease: int,
    now: int,
    nonce: bytes,
    epoch: str,
    request_id: str | None,
) -> Validation:
    """The try counts here, so that a taker that dies counts."""
    return replace(
        row, generation=row.generation + 1, nonce=nonce, epoch=epoch, holder=holder, agent=agent, taken_at=now,
        lease=lease, until=now + lease, tries=row.tries + 1, retry_at=None, request_id=request_id,
    )  # fmt: skip


def renewed(row: Validation, lease: int | None, now: int) -> Validation:
    return replace(row, lease=lease or row.lease, until=now + (lease or row.lease))


def judge(receipt: Receipt, row: Validation | None, task: Task, epoch: str) -> str | None:
    """Why the bearer of this receipt may no longer decide; None where its verdict counts.

    An expired lease takes nothing away as long as nobody else has taken the validation. The name proves nothing: the
    taker that gave the verdict has the nonce of the row until another takes it to land.
    """
    import hmac

    if row is None or row.generation == 0:
        return "NOT_FOUND"
    if receipt.epoch != epoch or row.epoch != epoch:
        return "STALE_EPOCH"
    if receipt.generation != row.generation:
        return "STALE_GENERATION" if receipt.generation < row.generation else "FUTURE_GENERATION"
    if not hmac.compare_digest(receipt.nonce, row.nonce):
        return "SESSION_MISMATCH"
    if task.state == lifecycle.CANCELLED:
        return "TASK_CANCELLED"
    if not is_open(row, task) or receipt.name != receipt_name(row):
        return "NO_CLAIM"
    if row.phase != JUDGE and row.holder is None:  # the last taker gave the verdict, or gave the landing up
        return "NO_CLAIM"
    return None if task.state == VALIDATING else "DENIED_PAUSED"


# --- results ----------------------------------------------------------------------------------------------


def decided(row: Validation, state: str, reasons: tuple[str, ...], details: Any, *, by: str, now: int) -> Validation:
    return replace(row, state=state, reasons=reasons, details=details, decided_by=by, decided_at=now, retry_at=None)


def to_land(row: Validation, reasons: tuple[str, ...], details: Any, *, by: str, now: int) -> Validation:
    """The verdict is good; what it is about waits to be landed. The verdict stands, whatever landing it takes."""
    return replace(
        row, phase=LAND, holder=None, agent=None, until=now, tries=0, retry_at=None, note=None, request_id=None,
        reasons=reasons, details=details, decided_by=by, decided_at=now,
    )  # fmt: skip


def landed(row: Validation, details: Any, *, by: str, now: int) -> Validation:
    return replace(row, state=PASSED, details=details, decided_by=row.decided_by or by, decided_at=now, retry_at=None)


def undecided(row: Validation, why: str, retry_after: int | None, now: int, *, blocked: bool = False) -> Validation:
    """Free for the next taker after a delay: 10 s, then twice as long each time. Where the way was `blocked` it was no
    try. A taker that gives up a landing has not moved the branch."""
    wait = min(LONGEST_WAIT, FIRST_WAIT << max(0, row.tries - 1)) if retry_after is None else retry_after
    tries, phase = row.tries - blocked, LAND if row.phase == LANDING else row.phase
    return replace(row, holder=None, until=now, retry_at=now + wait, note=why, tries=tries, phase=phase)


def is_given_up(row: Validation) -> bool:
    """Of a landing that may have happened nobody gives up: somebody must look at the branch."""
    return row.tries >= MOST_TRIES and row.phase != LANDING


def paused(task: Task, row: Validation, at: int) -> Task:
    """No verdict was reached: a person must see why. No attempt is used up."""
    what = (
        f"{row.validator} could not be decided"
        if row.phase == JUDGE
        else f"the result could not be landed on {onto(row)}"
    )
    why = f"{what}, {row.tries} times: {row.note or 'no reason was given'}"
    return moves.paused(task, lifecycle.PauseCause(cause=lifecycle.REVIEW, reason=why[:1000], at=at))


def onto(row: Validation) -> str:
    return row.land.onto if row.land is not None else ""


def gone_on(row: Validation) -> Validation:
    """A person restarts it: it may be tried as often again."""
    return replace(row, tries=0, retry_at=None)


def refused(
    task: Task, claim: Claim, row: Validation, text: str, policy: RetryPolicy, at: int, fraction: float
) -> tuple[Task, Claim]:
    """Task and claim after a verdict against the output: a failed attempt, which was counted with the claim."""
    error = LastError(error_class=INVALID_OUTPUT, message=text, generation=claim.generation, at=at)
    if row.held_back is not None and not task.pauses:
        from tenure.core import former_names  # here: few results are held back

        task = replace(task, pauses=former_names.pauses_of(row.held_back))
    task = replace(task, pauses=tuple(pause for pause in task.pauses if pause.cause != lifecycle.REVIEW))
    free = moves.refused(task, at, error)
    free = claims.counted(free, claim, policy, at, INVALID_OUTPUT)
    free = claims.tried_again(free, policy, at, fraction)
    return free, replace(claim, result_accepted=False, error_class=INVALID_OUTPUT, error=text)


def conflicted(
    task: Task, claim: Claim, row: Validation, text: str, policy: RetryPolicy, at: int, fraction: float
) -> tuple[Task, Claim]:
    """Task and claim after a landing that does not fit: tried again on the new state of the branch.

    The attempt is given back, as often as a run gives any back; later ones count.
    """
    error = LastError(error_class=MERGE_CONFLICT, message=text, generation=claim.generation, at=at)
    free = moves.refused(task, at, error)
    back = claim.counted and claims.is_given_back(task, lifecycle.FAILED_GIVEN_BACK)
    if back:
        free = replace(free, attempts=task.attempts - 1, given_back=task.given_back + 1)
    else:
        free = claims.counted(free, claim, policy, at, None, is_failure=False)
    free = claims.tried_again(free, policy, at, fraction, delay(policy, claim.attempt, fraction))
    over = replace(
        claim, result_accepted=False, error_class=MERGE_CONFLICT, error=text, counted=claim.counted and not back
    )
    return free, over


def withdrawn(task: Task, claim: Claim, at: int) -> tuple[Task, Claim]:
    """A person edited the task: it waits for any agent, and the attempt never counts."""
    free = moves.withdrawn(task, at, attempts=task.attempts - claim.counted)
    return free, replace(claim, counted=False, result_accepted=False)

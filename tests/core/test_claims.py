"""The fence, as a law: a receipt writes if and only if it is the current one, or the answerable one for late verbs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import claims
from tenure.core.lifecycle import ENDINGS, HELD, STATES
from tenure.core.receipts import Receipt
from tenure.core.records import Claim, RetryPolicy, Task, replace
from tenure.testing.samples import row_of

CLAIM = row_of(Claim)
TASK = row_of(Task)
EPOCH, NONCE = "00000001", b"n" * 16


def task_in(state: str, **fields: object) -> Task:
    return replace(TASK, **{"project": "p", "id": "t", "ref": "A-001", "state": state, "generation": 3, **fields})


def claim_of(**fields: object) -> Claim:
    values = {"project": "p", "id": "t@3", "task": "t", "generation": 3, "epoch": EPOCH, "nonce": NONCE, **fields}
    return replace(CLAIM, **values)


@given(
    state=st.sampled_from(STATES),
    generation=st.integers(0, 5),
    epoch=st.sampled_from([EPOCH, "00000002"]),
    nonce=st.sampled_from([NONCE, b"m" * 16]),
    answerable=st.booleans(),
    late=st.booleans(),
    reason=st.sampled_from([None, "EXPIRED", "PAUSED", "VOLUNTARY"]),
)
def test_a_receipt_writes_only_where_it_is_the_current_one(
    state: str, generation: int, epoch: str, nonce: bytes, answerable: bool, late: bool, reason: str | None
) -> None:
    task = task_in(state, answerable=answerable)
    own = claim_of(generation=generation, reason=reason) if 1 <= generation <= 3 else None
    verdict = claims.judge(Receipt("A-001", generation, epoch, nonce), task, own, EPOCH, late=late)
    current = generation == 3 and epoch == EPOCH and nonce == NONCE
    still_open = late and answerable and state in ("ready", "retrying", "paused")
    assert (verdict.code is None) == (current and (state in HELD or still_open))
    assert verdict.genuine == (own is not None and epoch == EPOCH and nonce == NONCE)
    if verdict.code is not None:
        assert verdict.directive in ("abort", "pause", "cancel", "warn")
    order = [
        ("STALE_EPOCH", epoch != EPOCH),
        ("STALE_GENERATION", generation < 3),
        ("FUTURE_GENERATION", generation > 3),
        ("SESSION_MISMATCH", nonce != NONCE),
    ]
    first = next((code for code, applies in order if applies), None)
    assert first is None or verdict.code == first


@given(
    attempts=st.integers(0, 5), given_back=st.integers(0, 10), ending=st.sampled_from(ENDINGS), unmet=st.integers(0, 2)
)
def test_ending_a_claim_frees_the_task_and_gives_back_once(
    attempts: int, given_back: int, ending: object, unmet: int
) -> None:
    task = task_in(
        "running", attempts=attempts + 1, given_back=given_back, unmet=unmet, agent="ann", session="s", lease_until=9
    )
    free, over = claims.ended(task, claim_of(), ending, 5)  # type: ignore[arg-type]
    back = not ending.counts and given_back < 10  # type: ignore[attr-defined]
    assert (free.attempts, free.given_back) == (attempts + 1 - back, given_back + back)
    assert over.counted == (not back)
    assert (free.agent, free.session, free.lease_until, free.claim_epoch) == (None, None, None, None)
    assert free.state == ("pending" if unmet else "ready")
    assert free.generation == task.generation
    assert (over.state != "active", over.released_at) == (True, 5)


@given(
    reason=st.sampled_from(["EXPIRED", "VOLUNTARY", "PAUSED", "FAILED"]),
    session=st.sampled_from(["s", "other"]),
    run=st.integers(1, 2),
)
def test_a_grant_counts_unless_it_takes_up_its_own_expired_claim(reason: str, session: str, run: int) -> None:
    task = task_in("ready", attempts=1, run=1, answerable=True, percent=50, offer_to="ann")
    last = claim_of(reason=reason, session="s", run=run)
    held, claim = claims.granted(
        task, last, agent="ann", session=session, user=None, lease=60, now=100, nonce=NONCE, epoch=EPOCH
    )
    same = reason == "EXPIRED" and session == "s" and run == 1
    assert (held.attempts, claim.attempt, claim.continues) == (1 if same else 2, 1 if same else 2, same)
    assert (held.generation, claim.generation, claim.id) == (4, 4, "t@4")
    assert (held.state, held.lease_until, held.answerable, held.percent, held.offer_to) == (
        "claimed", 160, False, None, None,
    )  # fmt: skip


@given(lease=st.integers(1, 1000), until=st.integers(0, 3000), now=st.integers(0, 1000))
def test_presenting_never_shortens_and_renewing_sets_anew(lease: int, until: int, now: int) -> None:
    task = task_in("running", lease=lease, lease_until=until)
    assert claims.presented(task, now).lease_until == max(until, now + lease)
    assert claims.renewed(task, None, now).lease_until == now + lease
    assert claims.renewed(task, 7, now).lease_until == now + 7


def test_a_background_renewal_is_no_presentation() -> None:
    task = task_in("running", lease=10, lease_until=10, presented_at=1)
    assert claims.renewed(task, None, 5, background=True).presented_at == 1
    assert claims.renewed(task, None, 5).presented_at == 5


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_denial(state: str) -> None:
    expected = {
        "ready": None, "completed": "DENIED_COMPLETED", "cancelled": "DENIED_CANCELLED", "paused": "DENIED_PAUSED",
        "dead_lettered": "DENIED_DEAD_LETTERED", "claimed": "DENIED_ACTIVE_CLAIM", "running": "DENIED_ACTIVE_CLAIM",
    }  # fmt: skip
    assert claims.denial_by_state(task_in(state)) == expected.get(state, "DENIED_NOT_READY")


def test_a_new_run_starts_over_and_the_generation_goes_on() -> None:
    task = task_in(
        "dead_lettered", run=2, attempts=3, given_back=4, troubled=("ann",), cool_offs={"ann": 9}, answerable=True,
        work_product="wp", completed_at=5, dead_lettered_at=6, percent=90, step="x", retry_at=7,
    )  # fmt: skip
    fresh = claims.new_run(task, 100)
    kept = replace(
        task, run=3, attempts=0, given_back=0, troubled=(), cool_offs={}, answerable=False, work_product=None,
        completed_at=None, dead_lettered_at=None, percent=None, step=None, retry_at=None, state="ready",
    )  # fmt: skip
    assert fresh == kept


def test_after_the_last_attempt_there_is_a_dead_letter() -> None:
    policy = RetryPolicy(jitter=0.0)
    again = claims.after_failure(task_in("ready", attempts=2, max_attempts=3), policy, "task", 50, 0.5)
    assert (again.state, again.retry_at) == ("retrying", 50 + 20_000_000)
    dead = claims.after_failure(task_in("ready", attempts=3, max_attempts=3), policy, "task", 50, 0.5)
    assert (dead.state, dead.dead_lettered_at, dead.retry_at) == ("dead_lettered", 50, None)
    told = claims.after_failure(task_in("ready", attempts=1, max_attempts=3), policy, "task", 50, 0.5, retry_after=7)
    assert told.retry_at == 57

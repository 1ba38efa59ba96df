"""The fence, as a law: a receipt writes if and only if it is the current one, or the one whose late submit is open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import claims, moves
from tenure.core.ids import Receipt
from tenure.core.lifecycle import ENDINGS, EXPIRED_BY, HELD, RELEASED_BY, STATES, Ending
from tenure.core.outcomes import Outcome
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
    late_submit_open=st.booleans(),
    late=st.booleans(),
    reason=st.sampled_from([None, "EXPIRED", "PAUSED", "VOLUNTARY"]),
)
def test_a_receipt_writes_only_where_it_is_the_current_one(
    state: str, generation: int, epoch: str, nonce: bytes, late_submit_open: bool, late: bool, reason: str | None
) -> None:
    task = task_in(state, late_submit_open=late_submit_open)
    own = claim_of(generation=generation, reason=reason) if 1 <= generation <= 3 else None
    verdict = claims.judge(Receipt("A-001", generation, epoch, nonce), task, own, EPOCH, late=late)
    current = generation == 3 and epoch == EPOCH and nonce == NONCE
    still_open = late and late_submit_open and state in ("ready", "retrying", "paused")
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
    attempts=st.integers(1, 5),
    given_back=st.integers(0, 10),
    ending=st.sampled_from(ENDINGS),
    unmet=st.integers(0, 2),
    failures=st.lists(st.sampled_from(["ann", "bo"]), max_size=3),
)
def test_the_end_of_a_claim_frees_the_task_and_decides_on_its_attempt(
    attempts: int, given_back: int, ending: Ending, unmet: int, failures: list[str]
) -> None:
    task = task_in(
        "running", attempts=attempts, max_attempts=5, given_back=given_back, unmet=unmet, agent="ann", session="s",
        lease_until=9, failures=tuple(failures),
    )  # fmt: skip
    free, over = claims.ended(task, claim_of(agent="ann"), ending, 5, retry=RetryPolicy())
    back = ending.attempt == "free" or (ending.attempt == "given back" and given_back < 10)
    assert (free.attempts, over.counted) == (attempts - back, not back)
    assert free.given_back == given_back + (back and ending.attempt == "given back")
    assert (free.agent, free.session, free.lease_until, free.claim_epoch) == (None, None, None, None)
    assert free.losses == (1 if ending.reason == "EXPIRED" else 0)
    assert free.generation == task.generation
    assert (over.state != "active", over.released_at) == (True, 5)
    fails = over.counted and ending.reason not in ("COMPLETED", "SUBMITTED")
    is_failure = fails and ending.reason not in ("VOLUNTARY", "STOPPED", "ERROR")
    tried_by = [*failures, "ann"] if is_failure else failures
    assert list(free.failures) == tried_by
    is_last = fails and (attempts == 5 or (len(tried_by) >= 3 and len(set(tried_by)) == 2))
    assert free.state == ("dead_lettered" if is_last else "pending" if unmet else "ready")


@given(
    reason=st.sampled_from(["EXPIRED", "VOLUNTARY", "PAUSED", "FAILED"]),
    session=st.sampled_from(["s", "other"]),
    holder=st.sampled_from(["ann", "bo"]),
    run=st.integers(1, 2),
    losses=st.integers(1, 4),
    error=st.sampled_from([None, claims.PROCESS_GONE]),
)
def test_a_grant_counts_unless_it_takes_up_its_own_expired_claim(
    reason: str, session: str, holder: str, run: int, losses: int, error: str | None
) -> None:
    task = task_in("ready", attempts=1, run=1, late_submit_open=True, percent=50, offer_to="ann", losses=losses)
    last = claim_of(reason=reason, session="s", agent=holder, run=run, error=error)
    held, claim = claims.granted(
        task, last, agent="ann", session=session, user=None, lease=60, now=100, nonce=NONCE, epoch=EPOCH
    )
    again = reason == "EXPIRED" and session == "s" and holder == "ann" and run == 1
    same = again and losses < 3 and error is None
    assert held.losses == (losses if again else 0)
    assert (held.attempts, claim.attempt, claim.continues) == (1 if same else 2, 1 if same else 2, same)
    assert (held.generation, claim.generation, claim.id) == (4, 4, "t@4")
    assert (held.state, held.lease_until, held.late_submit_open, held.percent, held.offer_to) == (
        "claimed", 160, False, None, None,
    )  # fmt: skip


@given(lease=st.integers(1, 1000), until=st.integers(0, 3000), now=st.integers(0, 1000))
def test_presenting_never_shortens_and_renewing_sets_anew(lease: int, until: int, now: int) -> None:
    task = task_in("running", lease=lease, lease_until=until)
    assert claims.presented(task, now).lease_until == max(until, now + lease)
    assert claims.renewed(task, None, now).lease_until == now + lease
    assert claims.renewed(task, 7, now).lease_until == now + 7


def test_what_shows_work_ends_a_row_of_losses_and_a_renewal_shows_none() -> None:
    task = task_in("running", lease=10, lease_until=10, losses=2)
    assert claims.presented(task, 5).losses == claims.worked(task).losses == 0
    assert {claims.renewed(task, None, 5, background=background).losses for background in (True, False)} == {2}
    assert claims.lengthened(task, 5).losses == 2


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
        "dead_lettered", run=2, attempts=3, given_back=4, troubled=("ann",), cool_offs={"ann": 9},
        late_submit_open=True, work_product="wp", completed_at=5, dead_lettered_at=6, percent=90, step="x", retry_at=7,
        failures=("bo",),
    )  # fmt: skip
    fresh = moves.new_run(task, 100)
    kept = replace(
        task, run=3, attempts=0, given_back=0, troubled=(), cool_offs={}, late_submit_open=False, work_product=None,
        completed_at=None, dead_lettered_at=None, percent=None, step=None, retry_at=None, state="ready",
        failures=(), ready_at=100,
    )  # fmt: skip
    assert fresh == kept


def test_after_a_failure_it_is_tried_again_later_and_a_dead_letter_stays_one() -> None:
    policy = RetryPolicy(jitter=0.0)
    again = claims.tried_again(task_in("ready", attempts=2, max_attempts=3), policy, 50, 0.5)
    assert (again.state, again.retry_at) == ("retrying", 50 + 20_000_000)
    told = claims.tried_again(task_in("ready", attempts=1, max_attempts=3), policy, 50, 0.5, retry_after=7)
    assert told.retry_at == 57
    dead = moves.dead_lettered(task_in("ready", attempts=3, max_attempts=3), 40)
    assert claims.tried_again(dead, policy, 50, 0.5) is dead


def test_an_attempt_that_a_session_takes_up_again_and_gives_back_is_no_failure() -> None:
    held = task_in("running", attempts=1, failures=("ann",))
    free, _ = claims.ended(held, claim_of(agent="ann", continues=True), RELEASED_BY, 5, retry=RetryPolicy())
    assert (free.attempts, free.failures) == (0, ())
    lost, _ = claims.ended(held, claim_of(agent="ann", continues=True), EXPIRED_BY, 5, retry=RetryPolicy())
    assert (lost.attempts, lost.failures) == (1, ("ann",))


def test_a_denial_by_ones_own_claim_or_of_a_dead_letter_does_not_end_by_waiting() -> None:
    held = Outcome(outcome="DENIED_ACTIVE_CLAIM", yours=False)
    assert claims.may_end(held)
    assert not claims.may_end(replace(held, yours=True))
    assert not claims.may_end(Outcome(outcome="DENIED_LIMIT", state="dead_lettered"))
    assert not claims.may_end(Outcome(outcome="DENIED_COMPLETED"))

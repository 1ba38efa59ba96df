"""What time brings: settled twice is settled once, in the order in which it fell due, and nothing stays due."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import settle
from tenure.core.lifecycle import ALLOWED, STATES
from tenure.core.records import Brief, Claim, RetryPolicy, Task, replace
from tenure.testing.samples import row_of

BRIEF = row_of(Brief)
CLAIM = row_of(Claim)
TASK = row_of(Task)
NOW = 1_700_000_000_000_000
EPOCH = "00000001"
moments = st.none() | st.integers(NOW - 10**10, NOW + 10**10)


@st.composite
def rows(draw: st.DrawFn) -> tuple[Task, Claim, Brief]:
    state = draw(st.sampled_from(STATES))
    held = state in ("claimed", "running")
    at = draw(st.integers(NOW - 10**10, NOW)) if held else None
    not_before = draw(moments)
    task = replace(
        TASK,
        project="p",
        id="t",
        key="A-001-x",
        state=state,
        created_at=NOW - 10**10,
        updated_at=NOW - 10**10,
        attempts=draw(st.integers(1, 3)),
        max_attempts=3,
        priority=draw(st.integers(0, 100)),
        deadline=draw(moments),
        not_before=not_before,
        unmet=draw(st.integers(0, 1)) if not_before is not None else 1,  # pending for nothing is no state to be in
        retry_at=draw(st.integers(NOW - 10**10, NOW + 10**10)) if state == "retrying" else None,
        offer_to="bo",
        offer_until=draw(moments) if state == "ready" else None,
        missed=draw(st.booleans()),
        generation=1,
        agent="ann" if held else None,
        session="s" if held else None,
        claimed_at=at,
        lease=600 if held else None,
        lease_until=at + draw(st.integers(1, 10**10)) if at is not None else None,
        claim_epoch=EPOCH if held else None,
        done_by=draw(moments) if held else None,
        progress_at=draw(moments) if held else None,
        max_duration=draw(st.none() | st.integers(10**6, 10**10)) if held else None,
    )
    if task.offer_until is None:
        task = replace(task, offer_to=None)
    claim = replace(CLAIM, project="p", id="t@1", task="t", generation=1, epoch=EPOCH, acquired_at=at or 0, nonce=b"n")
    brief = replace(BRIEF, project="p", id="t", on_lost=draw(st.sampled_from(["retry", "back_off", "hold"])))
    return settle.stamp(task, NOW), claim, replace(brief, retry=RetryPolicy(jitter=0.0))


def settled(task: Task, claim: Claim, brief: Brief, now: int) -> tuple[Task, list[settle.Settled]]:
    """The row after everything that is due by `now`, and what that was."""
    done: list[settle.Settled] = []
    while True:
        due = settle.settle(task, claim, brief, EPOCH, now, 0.5)
        if due is None:
            return settle.stamp(task, now), done
        assert len(done) < 20
        assert task.state == due.task.state or (task.state, due.task.state) in ALLOWED
        done.append(due)
        task, claim = settle.stamp(due.task, now), due.claim or claim


@given(rows())
def test_settled_twice_is_settled_once(row: tuple[Task, Claim, Brief]) -> None:
    task, claim, brief = row
    once, _ = settled(task, claim, brief, NOW)
    twice, more = settled(once, claim, brief, NOW)
    assert (twice, more) == (once, [])


@given(rows())
def test_nothing_stays_due(row: tuple[Task, Claim, Brief]) -> None:
    task, claim, brief = row
    once, _ = settled(task, claim, brief, NOW)
    assert once.due_at is None or once.due_at > NOW


@given(rows())
def test_nothing_happens_before_it_is_due(row: tuple[Task, Claim, Brief]) -> None:
    task, claim, brief = row
    once, done = settled(task, claim, brief, NOW)
    assert done == [] or (task.due_at is not None and task.due_at <= NOW)
    if once.due_at is not None:
        early, happened = settled(once, claim, brief, once.due_at - 1)
        assert happened == []
        assert early.state == once.state


@pytest.mark.parametrize(
    "fields", [{"deadline": NOW}, {"done_by": NOW}, {"estimate": 1}, {"max_duration": 1}, {"warned_at": NOW}], ids=str
)
def test_any_time_of_a_held_task_makes_it_due_before_its_lease_ends(fields: dict[str, Any]) -> None:
    held = {"state": "running", "claimed_at": NOW, "lease_until": NOW + 10**12, "claim_epoch": EPOCH}
    task = settle.stamp(replace(TASK, **held, **fields), NOW)
    assert task.due_at is not None
    assert task.due_at < NOW + 10**12
    claim = replace(CLAIM, epoch=EPOCH, state="active")
    assert settle.settle(task, claim, replace(BRIEF, retry=RetryPolicy()), EPOCH, task.due_at, 0.5) is not None


@given(rows())
def test_things_are_told_in_the_order_in_which_they_fell_due(row: tuple[Task, Claim, Brief]) -> None:
    _, done = settled(*row, NOW)
    assert [d.at for d in done] == sorted(d.at for d in done)
    assert all(d.at <= NOW for d in done)


@given(rows(), st.lists(st.integers(NOW - 10**10, NOW), max_size=4))
def test_looking_in_between_changes_nothing(row: tuple[Task, Claim, Brief], looks: list[int]) -> None:
    task, claim, brief = row
    at_once, told = settled(task, claim, brief, NOW)
    told_in_steps: list[settle.Settled] = []
    for moment in (*sorted(looks), NOW):
        task, more = settled(task, claim, brief, moment)
        claim = next((d.claim for d in reversed(more) if d.claim), claim)
        told_in_steps += more
    derived = {"rank": 0, "band": 0, "lane": None, "due_at": None}
    assert replace(task, **derived) == replace(at_once, **derived)
    assert [(d.kind, d.at) for d in told_in_steps] == [(d.kind, d.at) for d in told]


@given(rows())
def test_only_what_can_be_claimed_stands_in_a_lane(row: tuple[Task, Claim, Brief]) -> None:
    task, _, _ = row
    assert (task.lane is not None) == (task.state == "ready" and task.offer_to is None and task.set_aside_for is None)


@given(rows())
def test_every_held_task_has_a_time_at_which_it_is_looked_at(row: tuple[Task, Claim, Brief]) -> None:
    task, _, _ = row
    if task.state in ("claimed", "running"):
        assert task.due_at is not None
        assert task.due_at <= (task.lease_until or 0)


def test_another_epoch_ends_a_claim() -> None:
    task = replace(TASK, state="claimed", claim_epoch="other", lease_until=NOW + 1, attempts=1, generation=1)
    due = settle.settle(task, replace(CLAIM, generation=1), BRIEF, EPOCH, NOW, 0.5)
    assert due is not None
    assert due.claim is not None
    assert (due.kind, due.claim.reason, due.task.attempts) == ("task.epoch_ended", "ERROR", 0)

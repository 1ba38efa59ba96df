"""The order of the claim: the static rank agrees with the effective priority at any moment."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure.core import limits, priority
from tenure.core.errors import InvalidInput
from tenure.core.priority import HOUR
from tenure.core.records import Task, replace
from tenure.core.settle import stamp
from tenure.testing.samples import row_of

TASK = row_of(Task)
START = 1_700_000_000_000_000
moments = st.integers(START, START + 400 * 24 * HOUR)
boosts = st.sampled_from(sorted(priority.BOOSTS.values()))
tasks = st.builds(
    lambda **fields: replace(TASK, state="ready", updated_at=START, track="A", **fields),
    priority=st.integers(0, 100),
    boost=boosts,
    created_at=moments,
    deadline=st.none() | moments,
    height=st.integers(0, 10),
    sequence=st.integers(1, 5),
    id=st.sampled_from(["x", "y", "z"]),
)


def effective(task: Task, now: int) -> Fraction:
    """As the spec has it, in points."""
    left = None if task.deadline is None else task.deadline - now
    urgency = 0
    for hours, points in ((24, 5), (12, 10), (6, 20), (3, 40)):
        if left is not None and left <= hours * HOUR:
            urgency = points
    age = Fraction(now - task.created_at, 60_000_000)
    return task.priority - age * Fraction(task.boost, 100) - urgency - min(20, 2 * task.height)


@given(tasks, tasks, moments)
def test_the_place_orders_as_the_effective_priority_does(one: Task, other: Task, now: int) -> None:
    places = [priority.place(stamp(t, now), now) for t in (one, other)]
    wanted = [(t.priority >= 10, effective(t, now), t.sequence, t.id) for t in (one, other)]
    assert (places[0] < places[1]) == (wanted[0] < wanted[1])


@given(tasks, tasks, moments, st.integers(0, 10 * 24 * HOUR))
def test_in_one_lane_the_order_does_not_change_with_time(one: Task, other: Task, now: int, later: int) -> None:
    a, b = stamp(replace(one, boost=10, deadline=None), now), stamp(replace(other, boost=10, deadline=None), now)
    at_once = (effective(a, now) < effective(b, now)) == (a.rank < b.rank)
    in_time = (effective(a, now + later) < effective(b, now + later)) == (a.rank < b.rank)
    assert at_once
    assert in_time


@given(tasks, moments)
def test_the_rank_stays_right_until_it_is_due(task: Task, now: int) -> None:
    task = stamp(replace(task, missed=True), now)
    if task.due_at is None:
        later = now + 100 * 24 * HOUR
    else:
        assert task.due_at > now
        later = task.due_at - 1
    assert priority.rank(task, later) == task.rank


@given(tasks, moments)
def test_why_says_what_the_order_goes_by(task: Task, now: int) -> None:
    assume(now >= task.created_at)
    parts = priority.explain(task, now)
    assert parts["effective"] == pytest.approx(float(effective(task, now)), abs=0.005)
    assert parts["tier"] == priority.tier_of(task.priority)


by_length = st.builds(
    lambda task, length: replace(task, length=length), tasks, st.integers(1_000_000, limits.ORDER_LONGEST)
)


@given(by_length, by_length, moments)
def test_by_length_the_place_orders_by_tier_and_then_by_creation_and_length(one: Task, other: Task, now: int) -> None:
    places = [priority.place(stamp(t, now), now) for t in (one, other)]
    tiers = list(priority.TIERS)
    wanted = [
        (tiers.index(priority.tier_of(t.priority)), t.created_at + (t.length or 0), t.sequence, t.id)
        for t in (one, other)
    ]
    assert (places[0] < places[1]) == (wanted[0] < wanted[1])


@given(by_length, by_length, st.integers(1, 90 * 24 * HOUR), moments)
def test_by_length_no_task_of_a_tier_overtakes_one_that_is_four_hours_older(
    one: Task, other: Task, more: int, now: int
) -> None:
    other = replace(other, priority=one.priority, created_at=one.created_at + limits.ORDER_LONGEST + more)
    assert priority.place(stamp(one, now), now) < priority.place(stamp(other, now), now)


@given(by_length, moments, st.integers(0, 400 * 24 * HOUR))
def test_by_length_band_and_rank_never_change(task: Task, now: int, later: int) -> None:
    ready = stamp(task, now)
    again = stamp(replace(ready, deadline=START, height=10, boost=1000), now + later)
    assert (again.band, again.rank) == (ready.band, ready.rank)


@given(tasks | by_length, tasks | by_length, st.integers(0, 5), st.integers(1, 5), moments)
def test_tasks_of_an_earlier_turn_go_first_unless_the_other_is_critical(
    one: Task, other: Task, turn: int, more: int, now: int
) -> None:
    assume(other.priority >= 10)
    earlier, later = replace(one, order_turn=turn), replace(other, order_turn=turn + more)
    assert priority.place(stamp(earlier, now), now) < priority.place(stamp(later, now), now)


@given(tasks | by_length)
def test_a_rank_fits_a_column_of_eight_bytes(task: Task) -> None:
    assert abs(priority.rank(task, START)) < 2**63


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, 0), (100, 100), ("0", 0), ("7", 7), ("100", 100), ("critical", 0), ("high", 20), ("normal", 50), ("low", 70),
     ("background", 90)],
)  # fmt: skip
def test_priorities_are_numbers_or_tiers(value: int | str, number: int) -> None:
    assert priority.parse_priority(value) == number


@pytest.mark.parametrize(
    "value",
    [-1, 101, 10**30, True, "", "-1", "101", "1.5", "5 ", "soon", "00050", "000100", "00999", "١", "9" * 5000],
)
def test_other_priorities_are_refused(value: int | str) -> None:
    with pytest.raises(InvalidInput, match="priority"):
        priority.parse_priority(value)


@pytest.mark.parametrize("number", range(101))
def test_each_number_is_of_one_tier(number: int) -> None:
    bounds = {"critical": (0, 9), "high": (10, 29), "normal": (30, 59), "low": (60, 79), "background": (80, 100)}
    assert [name for name, (low, high) in bounds.items() if low <= number <= high] == [priority.tier_of(number)]
    assert priority.band_of(replace(TASK, priority=number)) == (0 if number <= 9 else 1)


@pytest.mark.parametrize(("value", "boost"), [(0, 0), (0.01, 1), (0.1, 10), (1, 100), (10.0, 1000)])
def test_boosts_are_one_of_five(value: float, boost: int) -> None:
    assert priority.parse_boost(value) == boost
    for wrong in (value + 0.001, -value - 1, float("nan"), float("inf")):
        with pytest.raises(InvalidInput, match="boost"):
            priority.parse_boost(wrong)


@given(tasks)
def test_a_lane_is_taken_apart_as_it_was_put_together(task: Task) -> None:
    task = replace(task, type="code", region="eu", requires=("a", "b"))
    assert priority.parse_lane(priority.lane_of(task)) == priority.Lane("A", "code", "eu", task.boost, ("a", "b"))
    assert priority.parse_lane(priority.lane_of(replace(task, agent_type="coder"))).agent_type == "coder"
    bare = replace(task, region=None, requires=())
    assert priority.parse_lane(priority.lane_of(bare)) == priority.Lane("A", "code", "", task.boost, ())

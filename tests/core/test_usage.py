"""The law of running totals: whatever order, however often, in time or late, what was said highest is what is kept."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import usage
from tenure.core.commands import Totals
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.records import Claim, Usage
from tenure.core.usage import Spent, booked
from tenure.testing.samples import row_of

CLAIM = row_of(Claim, id="task_1@3", task="task_1", generation=3)
COUNTS = st.integers(0, 50)
REPORTS = st.builds(
    Spent, st.just("opus"), COUNTS, COUNTS, COUNTS, COUNTS, st.none() | COUNTS, st.integers(0, 5),
    st.just(""),
)  # fmt: skip


def both(reports: list[tuple[Spent, bool]]) -> tuple[list[dict[bool, Usage]], dict[bool, Usage]]:
    rows: dict[bool, Usage] = {}
    steps = []
    for now, (spent, late) in enumerate(reports):
        others = usage.included(spent, late, rows.values())
        rows[late] = booked(CLAIM, spent, rows.get(late), others, late=late, now=now)
        steps.append(dict(rows))
    return steps, rows


@given(st.lists(st.tuples(REPORTS, st.booleans()), min_size=1, max_size=8))
def test_both_rows_together_are_the_highest_that_was_said(reports: list[tuple[Spent, bool]]) -> None:
    _, rows = both(reports)
    for name in (*usage.TOKENS, "duration"):
        said = max(getattr(spent, name) for spent, _ in reports)
        assert sum(getattr(row, name) for row in rows.values()) == said
    costs = [spent.cost for spent, _ in reports if spent.cost is not None]
    kept = [row.cost for row in rows.values() if row.cost is not None]
    assert (sum(kept), bool(kept)) == (max(costs, default=0), bool(costs))


@given(st.lists(st.tuples(REPORTS, st.booleans()), min_size=2, max_size=8))
def test_no_row_ever_falls(reports: list[tuple[Spent, bool]]) -> None:
    steps, _ = both(reports)
    for before, after in pairwise(steps):
        for late, row in before.items():
            for name in usage.TOKENS:
                assert getattr(after[late], name) >= getattr(row, name)
            assert (after[late].cost or 0) >= (row.cost or 0)


@given(st.lists(REPORTS, min_size=1, max_size=6), st.randoms())
def test_the_order_does_not_matter(reports: list[Spent], dice: object) -> None:
    shuffled = list(reports)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis's own Random
    one, other = (both([(spent, False) for spent in some])[1][False] for some in (reports, shuffled))
    assert [getattr(one, n) for n in (*usage.TOKENS, "duration", "cost")] == [
        getattr(other, n) for n in (*usage.TOKENS, "duration", "cost")
    ]


PARTS = st.builds(
    Spent, st.just("opus"), COUNTS, COUNTS, COUNTS, COUNTS, st.none() | COUNTS, st.integers(0, 5),
    st.sampled_from(["", "review", "tests"]),
)  # fmt: skip


def kept_of(reports: Iterable[Spent], timely: int = 100) -> list[Usage]:
    """The rows after these reports; the first `timely` of them came while the receipt was valid."""
    rows: dict[str, Usage] = {}
    for number, spent in enumerate(reports):
        rows |= usage.changed(CLAIM, spent, rows, late=number >= timely, now=1)
    return list(rows.values())


def parts(reports: Iterable[Spent]) -> dict[str, Usage]:
    """The rows by operation."""
    return {row.operation: row for row in kept_of(reports)}


@given(st.lists(PARTS, min_size=1, max_size=8), st.integers(0, 8), st.randoms())
def test_operations_are_parts_of_the_total_in_whatever_order_they_are_told(
    reports: list[Spent], timely: int, dice: object
) -> None:
    shuffled = list(reports)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]  # Hypothesis's own Random
    for name in (*usage.TOKENS, "duration"):
        highest = dict.fromkeys(("", "review", "tests"), 0)
        for spent in reports:
            highest[spent.operation] = max(highest[spent.operation], getattr(spent, name))
        named = highest["review"] + highest["tests"]
        for rows in (kept_of(reports), kept_of(shuffled), kept_of(reports, timely), kept_of(shuffled, timely)):
            sums = dict.fromkeys(highest, 0)
            for row in rows:
                sums[row.operation] += getattr(row, name)
            assert sum(sums.values()) == max(highest[""], named)
            assert all(sums[what] == highest[what] for what in ("review", "tests"))


@given(st.lists(PARTS, min_size=1, max_size=8), st.integers(1, 8))
def test_what_was_reported_in_time_stays_in_time(reports: list[Spent], timely: int) -> None:
    before, after = kept_of(reports[:timely]), kept_of(reports, timely)
    for name in usage.TOKENS:
        assert sum(getattr(row, name) for row in before) == sum(getattr(row, name) for row in after if not row.late)


@pytest.mark.parametrize("cost", [30, None])
def test_an_operation_that_is_named_late_is_a_part_of_what_was_reported_in_time(cost: int | None) -> None:
    total, part = Spent("opus", 300, 0, 0, 0, 90, 0), Spent("opus", 100, 0, 0, 0, cost, 0, "review")
    rows = kept_of((total, part, part), timely=1)
    assert sum(row.cost or 0 for row in rows) == 90
    assert {(row.operation, row.late): row.fresh for row in rows} == {("", False): 200, ("review", False): 100}


def test_the_cost_of_an_operation_is_a_part_of_the_cost() -> None:
    total, part = Spent("opus", 300, 0, 0, 0, 90, 0), Spent("opus", 100, 0, 0, 0, 30, 0, "review")
    for reports in ((total, part), (part, total), (part, total, part)):
        rows = parts(reports)
        assert {what: (row.fresh, row.cost) for what, row in rows.items()} == {"": (200, 60), "review": (100, 30)}


def test_a_computed_cost_of_the_rest_is_computed_again() -> None:
    rest = row_of(Usage, fresh=300, cost=300, computed=True, output=0, cached=0, written=0, duration=0)
    part = row_of(Usage, fresh=100, cost=100, computed=True, output=0, cached=0, written=0, duration=0)
    assert usage.without(rest, None, part, lambda row: row.fresh).cost == 200


def test_a_row_keeps_the_time_when_it_last_grew() -> None:
    spent = Spent("opus", 5, 0, 0, 0, None, 0)
    first = booked(CLAIM, spent, None, late=False, now=1)
    again = booked(CLAIM, spent, first, late=False, now=2)
    assert (first.at, again.at) == (1, 1)
    assert booked(CLAIM, spent._replace(fresh=6), again, late=False, now=3).at == 3


def test_a_model_whose_name_ends_like_a_late_row_has_rows_of_its_own() -> None:
    ids = [
        usage.usage_id("t@1", model, late, operation)
        for model in ("m", "m:late", "m@2:x", "2:m")
        for operation in ("", "late", "operation")
        for late in (False, True)
    ]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("field", usage.TOKENS)
@pytest.mark.parametrize("value", [-1, usage.MOST_TOKENS + 1])
def test_a_count_that_cannot_be_is_refused(field: str, value: int) -> None:
    with pytest.raises(InvalidInput, match=rf"{field} must be from 0 to .* \(got {value}\)"):
        usage.check_totals(Totals(model="m", **{field: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["", "a,b", "a|b", "x" * 201])
def test_a_model_that_cannot_be_kept_is_refused(model: str) -> None:
    with pytest.raises(InvalidInput, match="model"):
        usage.check_totals(Totals(model=model))


@pytest.mark.parametrize("operation", ["a,b", "a|b", "x" * 201])
def test_an_operation_that_cannot_be_kept_is_refused(operation: str) -> None:
    with pytest.raises(InvalidInput, match="operation"):
        usage.check_totals(Totals(model="m", operation=operation))


@pytest.mark.parametrize("duration", [-1, float("nan"), float("inf"), 1e12])
def test_a_duration_that_cannot_be_is_refused(duration: float) -> None:
    with pytest.raises(InvalidInput, match="duration"):
        usage.check_totals(Totals(model="m", duration=duration))


def test_more_than_a_hundred_models_are_refused() -> None:
    assert len(usage.check_all(Totals(model=f"m{n}") for n in range(100))) == 100
    with pytest.raises(TooLarge, match="got 101"):
        usage.check_all(Totals(model=f"m{n}") for n in range(101))

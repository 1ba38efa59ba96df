"""The rules of budgets, as laws over any row."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure.core import budgets
from tenure.core.budgets import DAY, HOUR, WEEK
from tenure.core.errors import Bug, InvalidInput
from tenure.core.records import Budget, replace
from tenure.core.usage import is_thin

NOW = 1_700_000_000_000_000
AMOUNTS = st.integers(0, 10**12)


def budget(**fields: object) -> Budget:
    made = {
        "currency": "usd",
        "allocated": 10**10,
        "default_estimate": 10**9,
        "created_at": NOW,
        "created_by": "human:",
    }
    return Budget(**{"project": "p", "id": "project", "scope": "project", **made, **fields})  # type: ignore[arg-type]


@given(allocated=AMOUNTS, consumed=AMOUNTS, reserved=AMOUNTS, amount=st.integers(-5, 10**12), throttle=st.booleans())
def test_no_reservation_lifts_what_is_spent_and_reserved_above_what_is_allocated(
    allocated: int, consumed: int, reserved: int, amount: int, throttle: bool
) -> None:
    row = budget(allocated=allocated, consumed=consumed, reserved=reserved, throttle=throttle)
    try:
        after = budgets.reserved(row, amount, NOW)
    except Bug:
        assert amount < 0 or consumed + reserved + amount > allocated
        return
    assert amount == 0 or after.consumed + after.reserved <= after.allocated
    assert after.reserved == reserved + amount


@given(st.lists(st.integers(0, 1000), max_size=20), st.integers(0, 5000))
def test_what_a_claim_spends_is_taken_from_its_own_reservation_first(costs: list[int], taken: int) -> None:
    row, funds = budget(reserved=taken), taken
    for cost in costs:
        row, funds = budgets.spent(row, cost, funds, NOW)
    row = budgets.returned(row, funds)
    assert (row.consumed, row.reserved) == (sum(costs), 0)


@given(consumed=AMOUNTS, earlier=AMOUNTS, amount=st.integers(-(10**12), 10**12))
def test_what_was_spent_in_all_grows_by_what_is_booked_whatever_period_it_was_of(
    consumed: int, earlier: int, amount: int
) -> None:
    assume(earlier + consumed + amount >= 0)
    after, _ = budgets.spent(budget(consumed=consumed, earlier=earlier), amount, 0, NOW)
    assert after.earlier + after.consumed == earlier + consumed + amount
    assert after.consumed >= 0


@given(
    period=st.sampled_from(sorted(budgets.PERIODS)), zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kolkata"]),
    later=st.integers(0, 400 * DAY), consumed=AMOUNTS, reserved=AMOUNTS,
)  # fmt: skip
def test_a_new_period_forgets_what_was_spent_and_keeps_what_is_reserved(
    period: str, zone: str, later: int, consumed: int, reserved: int
) -> None:
    row = budgets.begun(budget(period=period, zone=zone, consumed=consumed, reserved=reserved), NOW)
    after = budgets.settled(row, NOW + later)
    assert after.until is not None
    assert after.since <= NOW + later < after.until
    assert (after.reserved, after.earlier + after.consumed) == (reserved, consumed)
    assert after.consumed == (consumed if after.since == NOW else 0)
    assert budgets.settled(after, NOW + later) is after


def test_a_new_period_begins_without_the_throttle_and_the_alerts_of_the_last() -> None:
    row = budgets.begun(budget(period="day", throttle=True), NOW)
    assert row.until is not None
    row = replace(row, next_claim_at=row.until + DAY, alerts={"50": NOW})
    after = budgets.settled(row, row.until)
    assert (after.next_claim_at, after.alerts) == (None, {})


@given(later=st.lists(st.integers(0, 40 * DAY), min_size=2, max_size=2))
def test_it_does_not_matter_who_looks_in_between(later: list[int]) -> None:
    row = budgets.begun(budget(period="week", consumed=5), NOW)
    first, last = sorted(later)
    assert budgets.settled(budgets.settled(row, NOW + first), NOW + last) == budgets.settled(row, NOW + last)


@given(costs=st.lists(st.integers(0, 10**10), min_size=1, max_size=30))
def test_each_threshold_is_told_once(costs: list[int]) -> None:
    row, told = budget(), []
    for cost in costs:
        known = budgets.alerted(budgets.spent(row, cost, 0, NOW)[0], NOW)
        row = known.budget
        told += known.passed
        assert not known.ended
    assert len(told) == len(set(told))
    assert sorted(told) == [at for at in budgets.THRESHOLDS if budgets.percent(row) >= at]


@given(spent=st.lists(st.tuples(st.integers(0, 20 * 24), st.integers(0, 1000)), max_size=40))
def test_the_burn_rate_is_of_the_last_hours_and_the_row_stays_small(spent: list[tuple[int, int]]) -> None:
    burn: budgets.Burn = ()
    hours = sorted(spent)
    for hour, amount in hours:
        burn = budgets.burnt(burn, amount, NOW + hour * HOUR)
    now = NOW + (hours[-1][0] if hours else 0) * HOUR
    assert len(burn) <= WEEK // HOUR
    for span in (DAY, WEEK):
        recent = sum(amount for hour, amount in hours if now // HOUR - (NOW + hour * HOUR) // HOUR < span // HOUR)
        assert budgets.burned(burn, span, now) == recent


def test_it_is_throttled_only_where_it_would_be_used_up_within_a_week_and_before_it_begins_anew() -> None:
    row = budget(created_at=NOW - 30 * DAY, burn=((NOW // HOUR, 10**9),), consumed=10**9)  # 1 of 10 a day
    assert budgets.projected(row, NOW).advice == "CONTINUE"
    assert budgets.spacing(row, 10**9, NOW) == 0
    tight = replace(row, allocated=4 * 10**9)
    said = budgets.projected(tight, NOW)
    assert (said.days_left, said.exhausted_at, said.advice) == (3.0, NOW + 3 * DAY, "THROTTLE")
    assert 0 < budgets.spacing(tight, 10**6, NOW) < budgets.spacing(tight, 10**9, NOW) <= budgets.LONGEST_SPACING
    assert budgets.projected(replace(tight, until=NOW + 2 * DAY), NOW).advice == "CONTINUE"
    assert budgets.projected(replace(tight, burn=()), NOW).days_left is None


@pytest.mark.parametrize("text", ["", "nobody", "project:x", "tenant:y", "dag:", "task", "agent:"])
def test_a_scope_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="budget scope"):
        budgets.split_scope(text)


@given(tokens=st.integers(0, 10**7), lines=st.integers(0, 10**5), tests=st.integers(0, 20))
def test_more_changes_never_make_a_result_thinner(tokens: int, lines: int, tests: int) -> None:
    if not is_thin(tokens, lines, tests):
        assert not is_thin(tokens, lines + 1, tests)
        assert not is_thin(tokens, lines, tests + 1)
    assert not is_thin(2 * 150 * lines, lines, 0)

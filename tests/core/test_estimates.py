"""What a task will probably take, and how that is learnt."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import models
from tenure.core.models import (
    COMPLEXITY,
    ENOUGH,
    GIVEN,
    KEPT,
    LIKE,
    NOTHING,
    Expected,
    Goodness,
    by_complexity,
    expected,
    goodness,
    learnt,
    median,
    size_of,
    split,
    typical_of,
)
from tenure.core.records import Finished, LikeTasks

NONE = LikeTasks(project="p", id="code|3", type="code", size="3")


def finished(task: str, tokens: int, estimate: int | None = None, cost: int | None = None) -> Finished:
    return Finished(task=task, estimate=estimate, tokens=tokens, cost=cost)


def test_the_formula_is_complexity_with_tests_buffer_and_phase_on_top() -> None:
    assert [by_complexity(points) for points in (1, 5, 6, 8, 0.5)] == [1794, 8970, 10764, 14352, 897]


def test_what_a_task_says_goes_before_like_tasks_and_those_before_the_formula() -> None:
    typical = {"code|3": (5000, 70)}
    sized = {"complexity": 3}
    assert expected("code", {**sized, "estimated_tokens": 9}, typical) == Expected(9, None, GIVEN)
    assert expected("code", sized, typical) == Expected(5000, 70, LIKE)
    assert expected("test", sized, typical) == Expected(5382, None, COMPLEXITY)
    assert expected("code", {}, typical) == Expected(None, None, NOTHING)
    assert expected("code", {}, {"code|?": (4000, None)}) == Expected(4000, None, LIKE)


@pytest.mark.parametrize(
    ("constraints", "size"),
    [
        ({}, "?"),
        ({"complexity": 0.2}, "1"),
        ({"complexity": 1}, "1"),
        ({"complexity": 1.1}, "2"),
        ({"complexity": 10}, "10"),
        ({"complexity": 10.5}, "10+"),
        ({"estimated_tokens": 1794}, "1"),
        ({"estimated_tokens": 1795}, "2"),
        ({"estimated_tokens": 10**12}, "10+"),
        ({"complexity": 2, "estimated_tokens": 10**6}, "2"),
    ],
)
def test_sizes_are_points_of_complexity(constraints: dict[str, float], size: str) -> None:
    assert size_of(constraints) == size


def test_a_task_is_learnt_from_once_and_stays_what_it_was_expected_to_be() -> None:
    row = learnt(NONE, finished("a", 100, estimate=90))
    row = learnt(row, finished("b", 200))
    row = learnt(row, finished("a", 150, estimate=140))
    assert [(f.task, f.tokens, f.estimate) for f in row.finished] == [("b", 200, None), ("a", 150, 90)]


def test_medians_count_from_the_fifth_task_on() -> None:
    row = NONE
    for n in range(ENOUGH):
        assert typical_of(row) is None
        row = learnt(row, finished(str(n), 100 * (n + 1), cost=n))
    assert typical_of(row) == (300, 2)
    assert typical_of(learnt(row, finished("x", 400))) == (350, 2)


def test_a_cost_is_typical_only_where_enough_have_told_it() -> None:
    row = NONE
    for n in range(ENOUGH):
        row = learnt(row, finished(str(n), 100, cost=7 if n else None))
    assert typical_of(row) == (100, None)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10**6)), max_size=120))
def test_what_is_kept_is_bounded_and_the_last_of_each_task(told: list[tuple[int, int]]) -> None:
    row = NONE
    for task, tokens in told:
        row = learnt(row, finished(str(task), tokens))
    last = {str(task): tokens for task, tokens in told}
    kept = {f.task: f.tokens for f in row.finished}
    assert len(row.finished) == len(kept) == min(len(last), KEPT)
    assert kept.items() <= last.items()


@given(st.lists(st.integers(0, 10**9), min_size=1))
def test_a_median_has_as_many_below_as_above(values: list[int]) -> None:
    middle = median(values)
    assert sum(v < middle for v in values) <= len(values) / 2
    assert sum(v > middle for v in values) <= len(values) / 2


@given(st.integers(0, 10**12))
def test_no_token_is_lost_where_they_are_split(tokens: int) -> None:
    parts = split(tokens, {"fresh": 80, "cached": 7, "output": 13})
    assert sum(parts.values()) == tokens
    assert min(parts.values()) >= 0


def test_how_good_estimates_were() -> None:
    told = [finished("a", 100, 100), finished("b", 100, 120), finished("c", 100, 60), finished("d", 100, None)]
    assert goodness(told) == Goodness(3, 0.2, 2 / 3)
    assert goodness([finished("a", 100)]) == Goodness(0, None, None)


@given(st.integers(0, 2**32), st.integers(500, 500_000), st.floats(0.0, 0.5))
def test_estimates_converge_to_what_tasks_take(seed: int, usual: int, spread: float) -> None:
    """Whatever tasks of a kind usually take, and however that scatters: the aim is a median within 20 % of it."""
    dice = Random(seed)
    row, errors = NONE, []
    for n in range(120):
        tokens = max(1, round(usual * dice.lognormvariate(0, spread)))
        typical = typical_of(row)
        if typical is not None:
            errors.append(abs(typical[0] - usual) / usual)
        row = learnt(row, finished(str(n), tokens))
    late = [round(error * 10**6) for error in errors[-90:]]
    assert models.median(late) <= models.NEAR * 10**6

"""The engine and the naive model, side by side, through random histories; and one history played in several ways."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.sampling import few
from tests.stateful.actors import History
from tests.stateful.histories import Dice, Maker
from tests.stateful.playing import Bench, Divergence, new_bench, parting_of, play, shortened, told

JITTERS = (0.5, 0.0, 0.25, 0.75)
# One store serves all examples of a test: each history has its own project in it. A history that fails is made short
# by our own rules, which know what a turn is and are done in a second.
alike = settings(
    max_examples=few(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


@cache
def below(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)


@st.composite
def histories(draw: st.DrawFn) -> History:
    return Maker(Dice(lambda n: draw(below(n)))).make()


@pytest.fixture
def sqlite() -> Iterator[Bench]:
    with new_bench("sqlite") as bench:
        yield bench


@pytest.fixture
def memory() -> Iterator[Bench]:
    with new_bench("memory") as bench:
        yield bench


def expect_agreement(history: History, bench: Bench, jitter: float) -> None:
    first = play(history, bench, jitter=jitter).divergence
    if first is not None:
        short = shortened(history, lambda h: play(h, bench, jitter=jitter).divergence is not None)
        pytest.fail(told(short, play(short, bench, jitter=jitter).divergence or first))


def expect_the_same(history: History, bench: Bench, *ways: dict[str, Any]) -> None:
    """However the history is played, the answers and the rows at its end are equal."""

    def parting(tried: History) -> Divergence | None:
        return parting_of(*(play(tried, bench, **way) for way in ways))

    first = parting(history)
    if first is not None:
        short = shortened(history, lambda h: parting(h) is not None)
        pytest.fail(told(short, parting(short) or first))


@pytest.mark.sampled
@pytest.mark.parametrize("part", range(2))
def test_the_engine_on_sqlite_answers_as_the_model_does(part: int, sqlite: Bench) -> None:
    @seed(part)
    @settings(alike, derandomize=False, database=None)
    @given(history=histories(), jitter=st.sampled_from(JITTERS))
    def check(history: History, jitter: float) -> None:
        expect_agreement(history, sqlite, jitter)

    check()
    assert sqlite.engine.verify() == []


# Hypothesis prefers small choices; these come as the long runs draw them, and reach deeper.
@pytest.mark.sampled
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_the_engine_on_sqlite_answers_as_the_model_does_in_long_histories(first: int, sqlite: Bench) -> None:
    for number in range(first, first + 50):
        source = random.Random(number)
        expect_agreement(Maker(Dice(source.randrange)).make(), sqlite, source.choice(JITTERS))
    assert sqlite.engine.verify() == []


@alike
@given(history=histories(), jitter=st.sampled_from(JITTERS))
def test_the_engine_in_memory_answers_as_the_model_does(history: History, jitter: float, memory: Bench) -> None:
    expect_agreement(history, memory, jitter)


@alike
@given(history=histories())
def test_no_answer_depends_on_whether_a_sweep_ran(history: History, memory: Bench) -> None:
    expect_the_same(history, memory, {}, {"sweeps": "never"}, {"sweeps": "always"})


@alike
@given(history=histories())
def test_a_batch_answers_as_its_commands_one_by_one(history: History, memory: Bench) -> None:
    expect_the_same(history, memory, {}, {"batches": False})

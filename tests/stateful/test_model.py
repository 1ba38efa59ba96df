"""The engine and the naive model, side by side, through random histories; and one history played in several ways."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.stateful.actors import History
from tests.stateful.histories import Dice, Maker
from tests.stateful.playing import Bench, new_bench, play, told

JITTERS = (0.5, 0.0, 0.25, 0.75)
# One store serves all examples of a test: each history has its own project in it.
shared_store = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


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


def agree(history: History, bench: Bench, jitter: float) -> None:
    divergence = play(history, bench, jitter=jitter).divergence
    assert divergence is None, told(history, divergence)


# Five parts, since one failing history should not hide the others.
@pytest.mark.parametrize("part", range(5))
def test_the_engine_on_sqlite_answers_as_the_model_does(part: int, sqlite: Bench) -> None:
    @settings(shared_store, max_examples=100)
    @given(histories(), st.sampled_from(JITTERS[part % 4 :] or JITTERS))
    def check(history: History, jitter: float) -> None:
        agree(history, sqlite, jitter)

    check()


@settings(shared_store, max_examples=100)
@given(history=histories(), jitter=st.sampled_from(JITTERS))
def test_the_engine_in_memory_answers_as_the_model_does(history: History, jitter: float, memory: Bench) -> None:
    agree(history, memory, jitter)


@settings(shared_store, max_examples=60)
@given(history=histories())
def test_no_answer_depends_on_whether_a_sweep_ran(history: History, memory: Bench) -> None:
    told_when = play(history, memory)
    for sweeps in ("never", "always"):
        played = play(history, memory, sweeps=sweeps)
        assert played.answers == told_when.answers
        assert played.rows == told_when.rows


@settings(shared_store, max_examples=60)
@given(history=histories())
def test_a_batch_answers_as_its_commands_one_by_one(history: History, memory: Bench) -> None:
    together = play(history, memory)
    apart = play(history, memory, batches=False)
    assert apart.answers == together.answers
    assert apart.rows == together.rows

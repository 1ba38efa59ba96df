"""A slice of the random histories on PostgreSQL, beside the naive model."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.postgres import PostgresServer, open_store
from tests.stateful.histories import Dice, Maker
from tests.stateful.playing import Bench, play, shortened, told

JITTERS = (0.5, 0.0, 0.25, 0.75)


@pytest.fixture
def bench(postgres: PostgresServer, tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(lambda clock: open_store(tmp_path, clock))
    yield bench
    bench.close()


@pytest.mark.sampled
@pytest.mark.parametrize("first", range(1000, 1080, 10))
def test_the_engine_on_postgres_answers_as_the_model_does(first: int, bench: Bench) -> None:
    for number in range(first, first + 10):
        source = random.Random(number)
        history, jitter = Maker(Dice(source.randrange)).make(), source.choice(JITTERS)
        divergence = play(history, bench, jitter=jitter).divergence
        if divergence is not None:
            short = shortened(history, lambda h, j=jitter: play(h, bench, jitter=j).divergence is not None)  # type: ignore[misc]
            pytest.fail(told(short, play(short, bench, jitter=jitter).divergence or divergence))
    assert bench.engine.verify() == []

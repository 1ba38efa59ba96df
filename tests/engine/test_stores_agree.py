"""The same history on every store we ship: the same answers, and everything in the same place at the end."""

from pathlib import Path

import pytest

from tenure.stores.memory import Memory
from tenure.stores.sqlite import Sqlite
from tenure.testing import FakeClock
from tenure.testing.engine.histories import play, play_in_batches, standing
from tenure.testing.factories import Scene


@pytest.mark.parametrize("seed", range(300, 306))
def test_memory_and_sqlite_give_the_same_answers(tmp_path: Path, seed: int) -> None:
    clocks = FakeClock(), FakeClock()
    one = Scene(Memory(clock=clocks[0]), clocks[0])
    other = Scene(Sqlite(str(tmp_path / "store.db"), clock=clocks[1]), clocks[1])
    for mine, theirs in zip(play(one, seed, 150), play(other, seed, 150), strict=True):
        assert mine == theirs
    for mine, theirs in zip(
        play_in_batches(one, seed + 50, 100, 8, one_by_one=False),
        play_in_batches(other, seed + 50, 100, 8, one_by_one=False),
        strict=True,
    ):
        assert mine == theirs
    assert standing(one) == standing(other)
    assert [(e.kind, e.key, e.version, e.time) for e in one.events()] == [
        (e.kind, e.key, e.version, e.time) for e in other.events()
    ]
    assert other.engine.verify() == []
    other.store.close()

"""A scene with two tasks, for tests of what comes in: in memory, at night on SQLite too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.stores.memory import Memory
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Scene


@pytest.fixture(params=["memory", pytest.param("sqlite", marks=pytest.mark.nightly)])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    clock = FakeClock()
    is_memory = request.param == "memory"
    scene = Scene(Memory(clock=clock) if is_memory else Sqlite(str(tmp_path / "store.db"), clock=clock), clock)
    scene.add("first")
    scene.add("second")
    yield scene
    assert scene.engine.verify() == []
    scene.store.close()

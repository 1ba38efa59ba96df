"""A scene on SQLite with two tasks, for tests of what comes in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    clock = FakeClock()
    scene = Scene(Sqlite(str(tmp_path / "store.db"), clock=clock), clock)
    scene.add("first")
    scene.add("second")
    yield scene
    assert scene.engine.verify() == []
    scene.store.close()

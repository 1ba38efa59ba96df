"""The engine keeps its promises on the store in memory, and each event of each test becomes valid messages."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.stores.memory import Memory
from tenure.stores.port import Clock, Store
from tenure.testing.engine_suite import EngineSuite
from tests.sinks.messages import faults_in


class TestOnMemory(EngineSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return Memory(clock=clock)

    @pytest.fixture(autouse=True)
    def messages(self, request: pytest.FixtureRequest) -> Iterator[None]:
        scene = request.getfixturevalue("scene") if "scene" in request.fixturenames else None
        yield
        if scene is not None and not scene.broken:
            assert faults_in(scene) == []

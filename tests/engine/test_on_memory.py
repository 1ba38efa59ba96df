"""The engine keeps its promises on the store in memory."""

from pathlib import Path

from tenure.stores.memory import Memory
from tenure.stores.port import Clock, Store
from tenure.testing.engine_suite import EngineSuite


class TestOnMemory(EngineSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return Memory(clock=clock)

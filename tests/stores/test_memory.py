"""The store in memory keeps the contract."""

from pathlib import Path

from tenure.stores.memory import Memory
from tenure.stores.port import Clock, Store
from tenure.testing.suites.store import StoreSuite


class TestMemory(StoreSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return Memory(clock=clock)

"""The store in an SQLite file keeps the contract."""

from pathlib import Path

from tenure.stores.port import Clock, Store
from tenure.stores.sqlite import Sqlite
from tenure.testing.suites.store import StoreSuite


class TestSqlite(StoreSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return Sqlite(str(tmp_path / "store.db"), clock=clock)

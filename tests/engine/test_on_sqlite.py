"""The engine keeps its promises on a store in an SQLite file."""

from pathlib import Path

import pytest

from tenure.stores.port import Clock, Store
from tenure.stores.sqlite import Sqlite
from tenure.testing.engine_suite import EngineSuite


@pytest.mark.sampled(one_in=2)
class TestOnSqlite(EngineSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return Sqlite(str(tmp_path / "store.db"), clock=clock)

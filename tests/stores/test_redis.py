"""The store for Valkey keeps the contract in a Redis server too."""

from pathlib import Path

import pytest

from tenure.stores.port import Clock, Store
from tenure.testing.suites.store import StoreSuite
from tests.servers.store_servers import SERVERS


@pytest.mark.nightly
@pytest.mark.usefixtures("redis")
class TestRedis(StoreSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return SERVERS["redis"].open_store(tmp_path, clock)

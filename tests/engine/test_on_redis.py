"""The engine keeps its promises on a store in a Redis server."""

from pathlib import Path

import pytest

from tenure.stores.port import Clock, Store
from tenure.testing.engine_suite import EngineSuite
from tests.servers.store_servers import SERVERS


@pytest.mark.nightly
@pytest.mark.usefixtures("redis")
class TestOnRedis(EngineSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return SERVERS["redis"].open_store(tmp_path, clock)

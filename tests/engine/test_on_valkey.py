"""The engine keeps its promises on a store in a Valkey server."""

from pathlib import Path

import pytest

from tenure.stores.port import Clock, Store
from tenure.testing.engine_suite import EngineSuite
from tests.servers.valkey import open_store


@pytest.mark.sampled(one_in=48)
@pytest.mark.usefixtures("valkey")
class TestOnValkey(EngineSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return open_store(tmp_path, clock)

"""The store in a MariaDB database keeps the contract."""

from pathlib import Path

import pytest

from tenure.stores.port import Clock, Store
from tenure.testing.suites.store import StoreSuite
from tests.servers.mariadb import open_store


@pytest.mark.sampled(one_in=5)
@pytest.mark.usefixtures("mariadb")
class TestMariadb(StoreSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return open_store(tmp_path, clock)

"""The store in a PostgreSQL database keeps the contract."""

from pathlib import Path

import pytest

from tenure.stores.port import Clock, Store
from tenure.testing.suites.store import StoreSuite
from tests.servers.postgres import open_store
from tests.servers.restricted import open_restricted


@pytest.mark.usefixtures("postgres")
class TestPostgres(StoreSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return open_store(tmp_path, clock)


@pytest.mark.sampled(one_in=3)
@pytest.mark.usefixtures("restricted")
class TestUnderRowSecurity(StoreSuite):
    """With a role that policies show one tenant at a time, and that may not change the log."""

    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return open_restricted(tmp_path, clock)

"""The engine keeps its promises in the store of a tenant that has its own, as the router opens it."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest

from tenure.core import commands as c
from tenure.engine import Engine
from tenure.engine.runtime.tenancy import TenantEngines
from tenure.stores.memory import Memory
from tenure.stores.port import Clock, Store
from tenure.stores.postgres import Postgres
from tenure.stores.router import Router
from tenure.testing.engine_suite import EngineSuite
from tenure.testing.factories import SECRETS, Dice
from tenure.testing.suites.store import StoreSuite
from tests.servers.postgres import WHERE, clean_schema, connections, url_of

TENANT = "acme"


def opened(home: Store, clock: Clock, **how: str) -> Store:
    """The store of a tenant, with the home store to close after it."""
    engine = Engine(home, Dice(), SECRETS)
    assert engine.do(c.AddTenant(tenant=TENANT, **how)).outcome in ("CREATED", "EXISTS")
    router = Router(lambda url: Postgres(url, clock=clock), time.monotonic)
    store = TenantEngines(engine, time.monotonic, router=router).find(TENANT).store
    close = store.close

    def close_both() -> None:
        close()
        home.close()

    store.close = close_both  # type: ignore[method-assign]  # this one alone
    return store


class Home(Postgres):
    """Its tenants get schemas that other tests have used: to make one costs a tenth of a second, or more."""

    folder: Path

    def in_schema(self, name: str) -> Postgres:
        assert re.fullmatch("t_[0-9a-f]{16}", name)
        note = self.folder / "tenant-schema"
        if not note.exists():
            note.write_text(clean_schema("tenant"))
        return super().in_schema(note.read_text())


def in_schema(tmp_path: Path, clock: Clock) -> Store:
    home = Home(url_of(tmp_path), clock=clock, connections=connections(os.environ[WHERE]))
    home.folder = tmp_path
    return opened(home, clock, isolation="schema")


def in_instance(tmp_path: Path, clock: Clock) -> Store:
    return opened(Memory(clock=clock), clock, isolation="instance", store=url_of(tmp_path))


@pytest.mark.sampled(one_in=24)
@pytest.mark.usefixtures("postgres")
class TestInASchema(EngineSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return in_schema(tmp_path, clock)


@pytest.mark.sampled(one_in=48)
@pytest.mark.usefixtures("postgres")
class TestInAnInstance(EngineSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return in_instance(tmp_path, clock)


@pytest.mark.sampled(one_in=6)
@pytest.mark.usefixtures("postgres")
class TestStoreInASchema(StoreSuite):
    def open_store(self, tmp_path: Path, clock: Clock) -> Store:
        return in_schema(tmp_path, clock)

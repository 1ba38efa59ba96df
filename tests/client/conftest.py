"""Places to work at: a store of this machine, and a server on one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tenure.client import Client
from tests.sampling import places
from tests.servers.tenure import TenureServer


class Place(NamedTuple):
    """`url` is the way that is tested, `store` the database under it, for those who look behind it."""

    url: str
    store: str
    server: TenureServer | None

    def client(self, name: str = "mia") -> Client:
        return Client(self.url, "shop", agent=name, session=f"s-{name}")


@pytest.fixture(params=places("store", "server"))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    store = str(tmp_path / "store.db")
    with Client(store, "shop", create=True) as client:
        client.init()
    if request.param == "store":
        yield Place(store, store, None)
        return
    with TenureServer(store) as server:
        yield Place(server.url, store, server)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Place]:
    store = str(tmp_path / "store.db")
    with Client(store, "shop", create=True) as client:
        client.init()
    with TenureServer(store) as server:
        yield Place(server.url, store, server)

"""A store of its own for what is checked, paid for and repeated; tests that spend make projects of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure.client import Client
from tests.server.dashboard.paid.scene import busy_week
from tests.servers.tenure import TenureServer


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("paid") / "tenure.db"
    busy_week(path).close()
    return path


@pytest.fixture(scope="session")
def server(store: Path) -> Iterator[TenureServer]:
    with TenureServer(str(store)) as running:
        yield running


@pytest.fixture
def project(store: Path) -> Iterator[Callable[[str], Client]]:
    """Makes a project, and somebody who works in it beside the server."""
    opened: list[Client] = []

    def new(name: str) -> Client:
        opened.append(Client(str(store), name, agent="ann", session="ann-beside", create=True))
        opened[-1].init()
        return opened[-1]

    yield new
    for client in opened:
        client.close()

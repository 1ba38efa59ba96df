"""A server with MCP at /mcp, in a thread of its own, and agents that connect to it over HTTP."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import Implementation

from tenure.cli.answers import kept_crash
from tenure.client import Client
from tenure.client.caller import SystemRandom
from tenure.config import read_settings
from tenure.core.commands import Principal
from tenure.engine import Engine
from tenure.mcp.http import McpApp
from tenure.mcp.remote_callers import RemoteCallers
from tenure.server import feed
from tenure.server.app import App
from tenure.server.requests import Request
from tenure.server.service import Service
from tenure.stores.sqlite import Sqlite
from tests.mcp.conftest import Agent
from tests.servers.processes import free_port

# What a key stands for here; the server's own sign-in has tests of its own.
KEYS = {
    "ann": Principal(role="agent", agent="ann", user="ann", is_proven=True, key="k1"),
    "bo": Principal(role="agent", agent="bo", user="bo", is_proven=True, key="k2"),
    "olaf": Principal(role="owner", user="olaf", key="k3"),
    "q-only": Principal(role="agent", agent="quinn", projects=("q",), is_proven=True, key="k4"),
    "vera": Principal(role="viewer", user="vera", key="k5"),
}


class Served:
    """One server process, as it were, that ends when it is told to."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        engine = Engine(Sqlite(str(store)), SystemRandom())
        self.service = Service(engine)
        callers = RemoteCallers(engine, self.service.batcher, read_settings(str(store.parent), {}, {}), "default")
        self.mcp = McpApp(callers, lambda scope: scope["state"]["principal"], kept_crash, self.service.claim_or_wait)
        app = App(self.service, _sign_in)
        app.mount("/mcp", self.mcp)
        config = uvicorn.Config(
            self.mcp.around(app), host="127.0.0.1", port=self.port, log_config=None, lifespan="on",
            timeout_graceful_shutdown=5,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def start(self) -> None:
        self._thread.start()
        until = threading.Event()
        while not self._server.started:
            assert self._thread.is_alive()
            until.wait(0.01)

    def stop(self) -> None:
        self.service.begin_close()
        self.mcp.close()
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()


async def _sign_in(request: Request) -> Principal:
    key = (request.header(b"authorization") or "Bearer olaf").removeprefix("Bearer ")
    return KEYS[key]


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Client]:
    with Client(str(tmp_path / "tenure.db"), agent="owner", create=True) as client:
        client.init()
        yield client


@pytest.fixture
def place(tmp_path: Path, owner: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(feed, "WAIT", 0.05)  # so that each test's server ends at once
    place = Served(tmp_path / "tenure.db")
    place.start()
    yield place
    place.stop()


Connect = Callable[..., Any]


@pytest.fixture
def connect(place: Served) -> Connect:
    """A connection of an agent; `key` is how it signs in, `headers` go with every request."""

    @asynccontextmanager
    async def connected(
        key: str = "ann", *, mode: str = "legacy", name: str = "test", query: str = "", **headers: str
    ) -> AsyncIterator[Agent]:
        told = {"Authorization": f"Bearer {key}"} | {k.replace("_", "-"): v for k, v in headers.items()}
        async with (
            create_mcp_http_client(headers=told) as http,
            McpClient(
                streamable_http_client(place.url + query, http_client=http), mode=mode,
                client_info=Implementation(name=name, version="1"),
            ) as client,
        ):  # fmt: skip
            yield Agent(client)

    return connected

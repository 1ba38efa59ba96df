"""A project folder, and servers to talk to: in this process, and in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client as McpClient
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, Implementation, TextContent

from tenure.agents.identity import KNOWN
from tenure.cli.answers import kept_crash
from tenure.client import Client
from tenure.mcp.callers import StartOptions
from tenure.mcp.server import McpService
from tenure.mcp.stdio_server import StdioCallers

IDENTITY = {name for agent in KNOWN.values() for name in (*agent.markers, agent.session) if name}
ERAS = ("legacy", "2026-07-28")  # by handshake, and with what a handshake would say in every request


@pytest.fixture(scope="session", autouse=True)
def with_git(git: Path) -> None:
    """A bare Debian has no git; these tests work in repositories."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment that says nothing about who runs the tests."""
    kept = {
        name: value for name, value in os.environ.items() if name not in IDENTITY and not name.startswith("TENURE_")
    }
    return kept | {"USER": "ann", "HOME": str(tmp_path_factory.mktemp("home"))}


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder without a store."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def make_store(folder: Path) -> None:
    with Client(str(folder / ".tenure" / "tenure.db"), create=True) as client:
        client.init()


@pytest.fixture
def owner(bare: Path) -> Iterator[Client]:
    """The user's own hands, on the store of the folder."""
    make_store(bare)
    with Client(str(bare / ".tenure" / "tenure.db"), agent="owner", create=True) as client:
        yield client


@pytest.fixture
def folder(bare: Path, owner: Client) -> Path:
    """A folder with a store."""
    return bare


class Reply:
    """The reply of a tool: the value for programs, the text for models."""

    def __init__(self, result: Any) -> None:
        assert isinstance(result, CallToolResult), result
        (content,) = result.content
        assert isinstance(content, TextContent)
        self.text = content.text
        self.value: dict[str, Any] = result.structured_content
        self.is_error = result.is_error

    def __getitem__(self, name: str) -> Any:
        return self.value[name]

    @property
    def outcome(self) -> str:
        return str(self.value.get("outcome") or self.value["error"]["code"])

    def __repr__(self) -> str:
        return f"{'error ' if self.is_error else ''}{json.dumps(self.value)}"


class Agent:
    """An MCP client as an agent has one: `await agent("claim", task="A-001")`."""

    def __init__(self, client: McpClient, service: McpService | None = None) -> None:
        self.client = client
        self._service = service

    @property
    def service(self) -> McpService:
        """The other side, where it is in this process."""
        assert self._service is not None
        return self._service

    async def __call__(self, tool: str, **arguments: Any) -> Reply:
        return Reply(await self.client.call_tool(tool, arguments))


Connect = Callable[..., Any]


@pytest.fixture
def here(environ: dict[str, str], bare: Path) -> Connect:
    """A connection to a server in this process."""

    @asynccontextmanager
    async def connect(session: str | None = "s1", mode: str = "legacy", **options: Any) -> AsyncIterator[Agent]:
        given = {"folder": str(bare), "environ": environ, "session": session} | options
        callers = StdioCallers(StartOptions(**given), kept_crash)
        service = McpService(callers, kept_crash)
        try:
            async with McpClient(
                service.server, mode=mode, client_info=Implementation(name="test", version="1")
            ) as client:
                yield Agent(client, service)
        finally:
            callers.callers.close()

    return connect


def command(*words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "tenure", *words]


@pytest.fixture
def process(environ: dict[str, str], bare: Path) -> Connect:
    """A connection to a server in a process of its own, over its standard input and output."""

    @asynccontextmanager
    async def connect(
        *words: str,
        mode: str = "legacy",
        cwd: Path | None = None,
        name: str = "test",
        environ: dict[str, str] = environ,
        **more: Any,
    ) -> AsyncIterator[Agent]:
        program, *rest = command(*words, "mcp")
        server = StdioServerParameters(command=program, args=rest, env=environ, cwd=cwd or bare)
        link = stdio_client(server, errlog=sys.stderr)  # its default is the stderr of the process that imported it
        async with McpClient(link, mode=mode, client_info=Implementation(name=name, version="1"), **more) as client:
            yield Agent(client)

    return connect


@pytest.fixture
def raw(environ: dict[str, str], bare: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """A server process with bare pipes."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, **environment: str) -> subprocess.Popen[bytes]:
        server = subprocess.Popen(
            command(*words, "mcp"), cwd=bare, env=environ | environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(server)
        return server

    yield start
    for server in started:
        server.kill()
        server.wait()
        for pipe in (server.stdin, server.stdout, server.stderr):
            if pipe is not None:
                pipe.close()

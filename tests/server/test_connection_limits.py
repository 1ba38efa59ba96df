"""What a stranger can make the server keep: headers, half-open connections; and that others are served meanwhile."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tenure.client import Client
from tenure.server import connection_limits
from tests.servers.tenure import TenureServer

# The full size is 300 MB of headers and 3,000 connections: TENURE_STRANGERS=3000 TENURE_HEADERS_MB=300.
STRANGERS = int(os.environ.get("TENURE_STRANGERS", "600"))
HEADERS_MB = int(os.environ.get("TENURE_HEADERS_MB", "30"))
PIECE = b"x-filler: " + b"f" * 8000 + b"\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TenureServer]:
    store = str(tmp_path_factory.mktemp("connections") / "tenure.db")
    with Client(store, "p", create=True) as client:
        client.init()
    server = TenureServer(store)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def resident(server: TenureServer) -> int:
    """Bytes of memory that the server has."""
    assert server.process is not None
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def is_served(server: TenureServer) -> bool:
    line = HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        line.request("GET", "/api/v1/projects")
        return line.getresponse().status == 200
    finally:
        line.close()


def answer_to(server: TenureServer, head: bytes) -> bytes:
    """All that comes back; b"" where the connection was cut."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        try:
            line.sendall(head)
            return b"".join(iter(lambda: line.recv(65536), b""))
        except OSError:
            return b""


def test_headers_end_at_64_kb_in_one_piece_or_in_many(server: TenureServer) -> None:
    begin = b"GET /api/v1/projects HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    small = begin + PIECE * 7 + b"\r\n"
    assert answer_to(server, small).startswith(b"HTTP/1.1 200")
    for large in (
        begin + PIECE * 9 + b"\r\n",
        begin + b"x: " + b"f" * 70_000 + b"\r\n\r\n",
        b"GET /" + b"f" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nx: " + b"f" * 400_000,
    ):
        assert answer_to(server, large)[:12] in (b"HTTP/1.1 431", b""), large[:40]


def test_endless_headers_are_not_kept_and_others_are_served(server: TenureServer) -> None:
    before = resident(server)
    with ExitStack() as stack:
        lines = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10)) for _ in range(10)
        ]
        for line in lines:
            line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nx: ")
            with suppress(OSError):  # the server has closed it
                for _ in range(HEADERS_MB * 1024 * 1024 // 10 // 65536):
                    line.sendall(b"f" * 65536)
        # The kernel may take megabytes for a server that has not read yet, so what counts is that each one is closed.
        for line in lines:
            with suppress(ConnectionError):
                while line.recv(65536):
                    pass
        assert is_served(server)
    assert resident(server) - before < 20 * 1024 * 1024


def test_half_open_connections_are_bounded_and_others_are_served(server: TenureServer) -> None:
    before = resident(server)
    with ExitStack() as stack:
        lines = []
        for number in range(STRANGERS):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            line.sendall(b"GET / HTTP/1.1\r\nHost: local")
            lines.append(line)
            if number % 100 == 99:
                assert is_served(server), number
        kept = sum(not _is_closed(line) for line in lines)
        assert kept <= connection_limits.MOST_PER_ADDRESS
        assert is_served(server)
    assert resident(server) - before < 40 * 1024 * 1024


def test_a_connection_with_somebody_on_it_is_not_closed_for_strangers(server: TenureServer) -> None:
    known = HTTPConnection("127.0.0.1", server.port, timeout=10)
    known.request("GET", "/api/v1/projects")
    known.getresponse().read()
    own = known.sock
    with ExitStack() as stack:
        for _ in range(connection_limits.MOST_PER_ADDRESS + 50):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
        assert is_served(server)
        known.request("GET", "/api/v1/projects")
        assert known.getresponse().status == 200
        assert known.sock is own
    known.close()


def test_a_request_without_a_host_is_refused(server: TenureServer) -> None:
    for path in (b"/api/v1/projects", b"/health", b"/"):
        told = answer_to(server, b"GET " + path + b" HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 400"), path
        assert json.loads(told.partition(b"\r\n\r\n")[2])["code"] == "INVALID_INPUT"


def _is_closed(line: socket.socket) -> bool:
    line.setblocking(False)
    try:
        return line.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_who_is_slow_to_send_its_headers_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the clock of the loop, which is moved by hand."""
    import asyncio

    import uvicorn

    async def app(scope: object, receive: object, send: object) -> None: ...

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        config = uvicorn.Config(app, log_config=None, lifespan="off")
        config.load()
        step = connection_limits.UnauthenticatedConnections()
        state = uvicorn.server.ServerState()
        server = await loop.create_server(
            lambda: connection_limits.LimitedConnection.at(step)(config=config, server_state=state, app_state={}),
            "127.0.0.1",
            0,
        )
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n")
        while not len(step):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        (timer,) = [one for one in loop._scheduled if not one.cancelled()]  # type: ignore[attr-defined]
        assert timer.when() - loop.time() == pytest.approx(connection_limits.HEAD_TIMEOUT, abs=5)
        timer._run()
        with suppress(ConnectionError):
            assert await reader.read() == b""
        assert len(step) == 0
        writer.close()
        server.close()

    asyncio.run(scene())

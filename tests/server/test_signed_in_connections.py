"""What somebody who has signed in can keep open: a share, and no more time than a request needs."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from http.client import HTTPConnection
from typing import Any

import pytest
import uvicorn

from tenure.client import Client
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.connection_shares import shares
from tenure.core.errors import Overloaded
from tenure.server.connection_limits import LimitedConnection, UnauthenticatedConnections
from tenure.server.signed_in_connections import SignedInConnections, Who
from tests.servers.tenure import TenureServer

ANN, BO, EVE = Who("local", "ann"), Who("local", "bo"), Who("acme", "eve")


# --- whose turn it is -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("descriptors", [16, 64, 256, 400, 1024, 4096, 65536, 2**20, 2**62])
@pytest.mark.parametrize("processes", [1, 8, 64])
def test_the_process_keeps_descriptors_for_itself_and_for_strangers(descriptors: int, processes: int) -> None:
    got = shares(descriptors, processes)
    assert got.strangers >= 2
    assert got.signed_in >= got.strangers
    assert sum(got) <= max(8, descriptors - min(descriptors // 4, limits.OWN_DESCRIPTORS))
    assert got.strangers * processes <= max(limits.CONNECTIONS, 2 * processes)


class Line:
    """A connection."""

    def __init__(self, *, is_idle: bool = True) -> None:
        self.is_idle, self.is_closed = is_idle, False

    def close_now(self) -> None:
        self.is_closed = True


def filled(known: SignedInConnections, who: Who, count: int, *, is_idle: bool = True) -> list[Line]:
    lines = [Line(is_idle=is_idle) for _ in range(count)]
    for line in lines:
        known.admit(line, who)
    return lines


def test_a_key_may_have_all_connections_until_another_comes() -> None:
    known = SignedInConnections(lambda: 4)
    mine = filled(known, ANN, 4)
    (other,) = filled(known, BO, 1)
    assert [line.is_closed for line in mine] == [True, False, False, False]
    assert not other.is_closed
    assert len(known) == 4


def test_who_has_the_most_gives_way_and_an_idle_connection_first() -> None:
    known = SignedInConnections(lambda: 5)
    few = filled(known, BO, 1)
    many = filled(known, ANN, 4, is_idle=False)
    many[1].is_idle = True
    filled(known, EVE, 1)
    assert [line.is_closed for line in many] == [False, True, False, False]
    filled(known, EVE, 1)
    assert [line.is_closed for line in many] == [True, True, False, False]
    assert not any(line.is_closed for line in few)


def test_a_key_with_the_most_that_is_busy_on_all_is_refused_and_loses_nothing() -> None:
    known = SignedInConnections(lambda: 3)
    filled(known, BO, 1)
    mine = filled(known, ANN, 2, is_idle=False)
    with pytest.raises(Overloaded):
        known.admit(Line(), ANN)
    assert not any(line.is_closed for line in mine)
    mine[0].is_idle = True
    known.admit(Line(), ANN)
    assert mine[0].is_closed


def test_many_keys_of_one_tenant_do_not_crowd_out_another_tenant() -> None:
    known = SignedInConnections(lambda: 10)
    theirs = filled(known, EVE, 2)
    for number in range(30):
        filled(known, Who("local", f"k{number}"), 1)
    assert not any(line.is_closed for line in theirs)


def test_a_connection_on_which_another_signs_in_is_counted_as_theirs() -> None:
    known = SignedInConnections(lambda: 10)
    (line,) = filled(known, ANN, 1)
    known.admit(line, BO)
    known.admit(line, BO)
    assert (len(known), set(known._of)) == (1, {BO})
    known.remove(line)
    known.remove(line)
    assert (len(known), known._of) == (0, {})


# --- a server with few descriptors ----------------------------------------------------------------------------

FEW = 200


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TenureServer, dict[str, str]]]:
    store = str(tmp_path_factory.mktemp("crowded") / "tenure.db")
    with Client(store, "p", create=True) as client:
        client.init()
        keys = {role: str(client.do(c.CreateKey(name=role, role=role)).secret) for role in ("viewer", "owner")}
    server = TenureServer(store, settings={"TENURE_SERVE_AUTH": "required"})
    try:
        server.start()
        assert server.process is not None
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (FEW, FEW))
        yield server, keys
    finally:
        server.stop()


def request(key: str, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode()


@pytest.mark.parametrize("path", ["/api/v1/me", "/api/v1/projects/p/news?mark=99999999&wait=30"], ids=["idle", "busy"])
def test_one_key_with_hundreds_of_connections_locks_nobody_out(
    crowded: tuple[TenureServer, dict[str, str]], path: str
) -> None:
    server, keys = crowded
    with ExitStack() as stack:
        for number in range(2 * FEW):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            with suppress(OSError):
                line.sendall(request(keys["viewer"], path))
                if "wait" not in path:
                    line.recv(65536)
            if number % 100 == 99:
                owner = HTTPConnection("127.0.0.1", server.port, timeout=20)
                owner.request("GET", "/api/v1/me", headers={"Authorization": f"Bearer {keys['owner']}"})
                assert owner.getresponse().status == 200, number
                owner.close()


# --- time -----------------------------------------------------------------------------------------------------


class Loop:
    """A server in this loop, whose timers are run by hand."""

    def __init__(self, port: int, known: SignedInConnections) -> None:
        self.port, self.known = port, known
        self.writers: list[asyncio.StreamWriter] = []

    async def line(self, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        self.writers.append(writer)
        return reader, writer

    async def timer(self, name: str) -> asyncio.TimerHandle:
        loop: Any = asyncio.get_running_loop()
        while True:
            for one in loop._scheduled:
                if not one.cancelled() and getattr(one._callback, "__name__", "") == name:
                    return one  # type: ignore[no-any-return]
            await asyncio.sleep(0)


@asynccontextmanager
async def serving(app: Callable[..., Awaitable[None]]) -> AsyncIterator[Loop]:
    loop = asyncio.get_running_loop()
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
    config.load()
    known = SignedInConnections(lambda: 10)
    made = LimitedConnection.at(UnauthenticatedConnections(), known)
    state = uvicorn.server.ServerState()
    server = await loop.create_server(lambda: made(config=config, server_state=state, app_state={}), "127.0.0.1", 0)
    there = Loop(server.sockets[0].getsockname()[1], known)
    try:
        yield there
    finally:
        server.close()
        for writer in there.writers:
            writer.transport.abort()
        for connection in list(state.connections):
            connection.transport.abort()
        await asyncio.sleep(0.01)  # their ends are told


async def reading(scope: Any, receive: Any, send: Any) -> None:
    """Signs in, reads the body and answers."""
    if scope["path"] != "/login":
        scope["state"]["signed_in"](ANN)
    while (message := await receive())["type"] == "http.request" and message["more_body"]:
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def post(path: str, length: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()


@pytest.mark.parametrize("path", ["/login", "/api/v1/projects/p/tasks"])
async def test_a_body_that_trickles_ends_its_connection(path: str) -> None:
    async with serving(reading) as loop:
        reader, _ = await loop.line(post(path, 1000) + b"x")
        timer = await loop.timer("_judge_body")
        assert timer.when() - asyncio.get_running_loop().time() <= limits.BODY_SECONDS
        timer._run()  # type: ignore[attr-defined]
        with suppress(ConnectionError):
            assert await reader.read() == b""


async def test_a_body_that_comes_steadily_is_read_to_its_end() -> None:
    async with serving(reading) as loop:
        size = 3 * limits.BODY_LEAST
        reader, writer = await loop.line(post("/x", size) + b"x")
        for _ in range(2):
            timer = await loop.timer("_judge_body")
            writer.write(b"x" * limits.BODY_LEAST)
            while not loop.known:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            (known,) = loop.known._who
            while known._received - known._received_before < limits.BODY_LEAST:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0)
            timer._run()  # type: ignore[attr-defined]
            timer.cancel()
        writer.write(b"x" * (size - 1 - 2 * limits.BODY_LEAST))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")


async def test_an_answer_that_nobody_reads_ends_its_connection() -> None:
    async def pouring(scope: Any, receive: Any, send: Any) -> None:
        scope["state"]["signed_in"](ANN)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        with suppress(Exception):
            while True:
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                if not len(loop.known):
                    return

    async with serving(pouring) as loop:
        reader, _ = await loop.line(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        reader._transport.pause_reading()  # type: ignore[attr-defined]
        timer = await loop.timer("_judge_unread")
        timer._run()  # type: ignore[attr-defined]
        while len(loop.known):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)


async def test_blank_lines_do_not_keep_an_idle_connection() -> None:
    async with serving(reading) as loop:
        reader, writer = await loop.line(post("/x", 1) + b"x")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        first = await loop.timer("timeout_keep_alive_handler")
        writer.write(b"\r\n\r\n")
        while not first.cancelled():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        (await loop.timer("timeout_keep_alive_handler"))._run()  # type: ignore[attr-defined]
        await reader.read()

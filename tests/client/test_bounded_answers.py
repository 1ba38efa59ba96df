"""What a hostile server may make a client keep: neither bytes without end nor time."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from tenure.artifacts.port import ArtifactCorrupt, Checking
from tenure.client import AsyncClient, Client
from tenure.client.transports import bounded
from tenure.core.errors import AnswerRefused, OutcomeUnknown
from tests.client.stub import reply, stubbed

HEAD = b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\n"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "LARGEST", 1 << 20)


def sync_tasks(url: str) -> Any:
    with Client(url, "p") as client:
        return client.tasks()


def async_tasks(url: str) -> Any:
    async def ask() -> Any:
        async with AsyncClient(url, "p") as client:
            return await client.tasks()

    return asyncio.run(ask())


def sync_add(url: str) -> Any:
    with Client(url, "p") as client:
        return client.add("x")


BOTH = pytest.mark.parametrize("ask", [sync_tasks, async_tasks])
LARGE = b'{"items": [], "next": null, "more": false, "pad": "%s"}' % (b"x" * (2 << 20))
CHUNK = b"%x\r\n%s\r\n" % (1 << 16, b" " * (1 << 16))


@BOTH
@pytest.mark.parametrize(
    "said",
    [
        reply(200, LARGE),
        HEAD + b"Content-Length: 99999999999999999\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNK * 20,
        HEAD + b"Connection: close\r\n\r\n" + LARGE,
        reply(500, LARGE),
        reply(200, gzip.compress(LARGE), "Content-Encoding: gzip"),
        reply(200, b"{}", "Content-Encoding: br"),
    ],
    ids=["large", "says it is large", "in chunks", "until the end", "an error", "packed", "another packing"],
)
def test_an_answer_has_a_size(small: None, ask: Callable[[str], Any], said: bytes) -> None:
    with stubbed(said) as stub, pytest.raises(AnswerRefused) as refused:
        ask(stub.url)
    assert refused.value.code == "ANSWER_REFUSED"
    assert len(stub.requests) == 1, "it is not asked for again"


@BOTH
def test_an_answer_below_the_limit_is_taken(small: None, ask: Callable[[str], Any]) -> None:
    fits = b'{"items": [], "next": null, "more": false, "pad": "%s"}' % (b"x" * ((1 << 20) - 200))
    with stubbed(reply(200, fits)) as stub:
        assert list(ask(stub.url)) == []


def test_whether_a_write_was_done_is_not_known_when_its_answer_is_too_large(small: None) -> None:
    with stubbed(reply(200, LARGE)) as stub, pytest.raises(OutcomeUnknown, match="has more than 1 MiB"):
        sync_add(stub.url)


@BOTH
@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"Transfer-Encoding: chunked\r\n\r\n"])
def test_an_answer_ends_in_time(monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], Any], begin: bytes) -> None:
    """A byte now and then, for ever: each is in time for itself."""
    monkeypatch.setattr(bounded, "LONGEST", 0.2)
    with trickling(begin) as url, pytest.raises(AnswerRefused, match=r"did not end within 0\.2 s"):
        ask(url)


def test_a_download_ends_with_the_size_of_its_artifact() -> None:
    checking = Checking(hashlib.sha256(b"abc").hexdigest(), 3, 0, 3)
    assert checking.take(b"abc") == b""
    with pytest.raises(ArtifactCorrupt):
        checking.take(b"d")


@contextmanager
def trickling(begin: bytes) -> Iterator[str]:
    """The URL of a server that says this, and then a little now and then."""
    piece = begin if b"100 Continue" in begin else b"1\r\n \r\n" if begin else b"H"
    ended, listener = threading.Event(), socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    def serve(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.recv(65536)
            connection.sendall(begin)
            while not ended.wait(0.01):
                connection.sendall(piece)

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        ended.set()
        listener.close()

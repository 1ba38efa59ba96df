"""The end of a key ends what it has open: long polls, streams and MCP sessions, on a real server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tenure.client import Client
from tenure.core import commands as c
from tests.servers.tenure import TenureServer

P = "/api/v1/projects/p"


class Keyed:
    """A server with keys, and a second hand on its store."""

    def __init__(self, folder: Path) -> None:
        store = str(folder / "tenure.db")
        self.client = Client(store, "p", create=True)
        self.client.init()
        self.server = TenureServer(store, settings={"TENURE_SERVE_AUTH": "required"})
        self.key = str(self.client.do(c.CreateKey(name="ann", role="agent")).secret)
        self.id = self.key.split("_")[2]

    def line(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.server.port, timeout=30)

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[Keyed]:
    keyed = Keyed(tmp_path)
    try:
        keyed.server.start()
        yield keyed
    finally:
        keyed.server.stop()
        keyed.client.close()


def end(keyed: Keyed, how: str) -> None:
    keyed.client.do(c.RevokeKey(key=keyed.id) if how == "revoked" else c.RotateKey(key=keyed.id, grace=0))


@pytest.mark.parametrize("how", ["revoked", "rotated"])
def test_a_long_poll_is_granted_nothing_once_its_key_has_ended(keyed: Keyed, how: str) -> None:
    line = keyed.line()
    line.request("POST", f"{P}/claims?wait=20", json.dumps({"agent": "ann", "session": "s"}), keyed.headers())
    _until(lambda: _waiting(keyed) > 0)
    end(keyed, how)
    keyed.client.add("for somebody else")
    answer = line.getresponse()
    told = json.loads(answer.read())
    assert (answer.status, told.get("code")) == (401, "NOT_SIGNED_IN"), told
    assert [task["state"] for task in keyed.client.tasks()] == ["ready"]
    line.close()


@pytest.mark.parametrize("how", ["revoked", "rotated"])
def test_a_stream_ends_with_its_key_and_tells_nothing_more(keyed: Keyed, how: str) -> None:
    with socket.create_connection(("127.0.0.1", keyed.server.port), timeout=20) as line:
        line.sendall(
            f"GET {P}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer {keyed.key}\r\n\r\n".encode()
        )
        heard = b""
        while b"retry:" not in heard:
            heard += line.recv(65536)
        keyed.client.add("before")
        while b"before" not in heard and b"task.created" not in heard:
            heard += line.recv(65536)
        end(keyed, how)
        rest = b""
        while not rest.endswith(b"0\r\n\r\n"):  # the end of a chunked answer, long before the next beat
            piece = line.recv(65536)
            if not piece:
                break
            rest += piece
        assert b"task.created" not in rest


def test_a_session_of_the_dashboard_and_mcp_ends_with_the_key(keyed: Keyed) -> None:
    line = keyed.line()
    origin = {"Origin": keyed.server.url, "Content-Type": "application/json"}
    line.request("POST", "/login", json.dumps({"key": keyed.key}), origin)
    answer = line.getresponse()
    answer.read()
    cookie = (answer.headers["set-cookie"] or "").partition(";")[0]
    hello: dict[str, Any] = {
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }  # fmt: skip
    mcp = {**keyed.headers(), "Accept": "application/json, text/event-stream"}
    line.request("POST", "/mcp", json.dumps(hello), mcp)
    answer = line.getresponse()
    answer.read()
    mcp["Mcp-Session-Id"] = answer.headers["mcp-session-id"] or ""
    end(keyed, "revoked")
    _until(lambda: _status(keyed, "/api/v1/me", {"Cookie": cookie}) == 401)
    line.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), mcp)
    refused = line.getresponse()
    refused.read()
    assert refused.status == 401
    line.close()


def _status(keyed: Keyed, path: str, headers: dict[str, str]) -> int:
    line = keyed.line()
    try:
        line.request("GET", path, headers=headers)
        return line.getresponse().status
    finally:
        line.close()


def _waiting(keyed: Keyed) -> int:
    """Looks for a task that found none, as the metrics say: who made them waits now."""
    admin = getattr(keyed, "admin", None)
    if admin is None:
        admin = keyed.admin = str(keyed.client.do(c.CreateKey(name="root", role="owner")).secret)  # type: ignore[attr-defined]
    line = keyed.line()
    try:
        line.request("GET", "/metrics", headers={"Authorization": f"Bearer {admin}"})
        page = line.getresponse().read().decode()
    finally:
        line.close()
    found = [text for text in page.splitlines() if text.startswith("tenure_claims_total")]
    return sum(int(float(text.rsplit(" ", 1)[1])) for text in found)


def _until(is_so: Any) -> None:
    turn = threading.Event()
    for _ in range(1000):
        if is_so():
            return
        turn.wait(0.01)
    raise AssertionError("it never came to be")

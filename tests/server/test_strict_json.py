"""Duplicate keys and endless integers are refused at every entry, and change nothing."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tenure.client import Client
from tenure.core import signatures
from tenure.core.commands import NewTask
from tests.mcp.conftest import command, make_store
from tests.servers.tenure import TenureServer, with_master_key

P = "/api/v1/projects/p"
TWICE = b'{"task": {"title": "one", "title": "two"}}'
ENDLESS = b'{"task": {"title": "one", "metadata": {"n": ' + b"7" * 400 + b"}}}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TenureServer, Client, str]]:
    store = str(tmp_path_factory.mktemp("strict") / "tenure.db")
    with Client(store, "p", create=True) as client:
        client.init()
        secret = str(client.set_trigger("hook", "webhook", NewTask(title="{body.t}")).secret)
        server = TenureServer(store, settings=with_master_key())
        try:
            server.start()
            yield server, client, secret
        finally:
            server.stop()


def post(server: TenureServer, path: str, body: bytes, **headers: str) -> tuple[int, Any]:
    line = HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        line.request("POST", path, body, {"Content-Type": "application/json", **headers})
        answer = line.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        line.close()


@pytest.mark.parametrize(("body", "why"), [(TWICE, "duplicate key"), (ENDLESS, "does not fit 64 bits")])
def test_bodies_batches_and_mcp(served: tuple[TenureServer, Client, str], body: bytes, why: str) -> None:
    server, client, _ = served
    item = body.replace(b'{"task"', b'{"command": "add", "task"', 1)
    for path, sent in ((f"{P}/tasks", body), (f"{P}/batch", b'{"commands": [' + item + b"]}")):
        status, told = post(server, path, sent)
        assert (status, told["code"]) == (422, "INVALID_INPUT") or status == 400, told
        assert why in told["detail"]
    call = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": ' + body + b"}}"
    status, told = post(server, "/mcp", call, Accept="application/json, text/event-stream")
    assert (status, why in told["error"]["message"]) == (400, True)
    assert client.tasks() == []


@pytest.mark.parametrize(
    ("body", "why"), [(b'{"t": 1, "t": 2}', "duplicate key"), (b'{"t": ' + b"7" * 400 + b"}", "64")]
)
def test_webhooks(served: tuple[TenureServer, Client, str], body: bytes, why: str) -> None:
    server, client, secret = served
    key = signatures.key_of("standard", secret)
    headers = signatures.signed_headers("standard", key, f"m-{len(body)}", body, time.time_ns() // 1000)
    status, told = post(server, f"{P}/triggers/hook/deliveries", body, **headers)
    assert 400 <= status < 500
    assert why in told["detail"]
    assert client.tasks() == []


def test_stdio(tmp_path: Path) -> None:
    make_store(tmp_path)
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}  # fmt: skip
    call = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "add", "name": "show"}}\n'
    done = subprocess.run(
        command("mcp"), cwd=tmp_path, input=json.dumps(hello).encode() + b"\n" + call, capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines()]
    (refused,) = [one for one in told if one.get("id") == 7]
    assert "duplicate key 'name'" in refused["error"]["message"]

"""A server on loopback as it starts by default: its user's commands are known by themselves, other users are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tenure import process_table
from tenure.agents.identity import user_of
from tenure.client import AsyncClient, Client
from tenure.client.local_token import PROCESS, find_token, token_file, write_token
from tenure.core.errors import NotSignedIn
from tests.servers.processes import wait_until
from tests.servers.tenure import TenureServer

NOBODY = 65534  # another user of this machine

ASK = """
import json, os, encodings.idna
from http.client import HTTPConnection
os.setgid({uid}); os.setuid({uid})
line = HTTPConnection("127.0.0.1", {port}, timeout=10)
line.request(*{asked!r})
answer = line.getresponse()
print(json.dumps([answer.status, answer.read().decode()]))
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TenureServer]:
    store = str(tmp_path / "tenure.db")
    with Client(store, "p", create=True) as client:
        client.init()
    server = TenureServer(store, settings={"TENURE_SERVE_AUTH": "auto", "TENURE_STATE": str(tmp_path / "state")})
    monkeypatch.setenv("TENURE_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("TENURE_KEY", raising=False)
    try:
        server.start()
        wait_until(lambda: find_token(os.environ, "127.0.0.1", server.port) is not None, server.process, server.log)
        yield server
    finally:
        server.stop()


def asked(server: TenureServer, path: str, **headers: str) -> tuple[int, Any]:
    line = HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        line.request("GET", path, headers=headers)
        answer = line.getresponse()
        raw = answer.read()
        return answer.status, json.loads(raw) if "json" in (answer.headers["content-type"] or "") else raw
    finally:
        line.close()


def test_the_users_own_clients_send_the_token_by_themselves(server: TenureServer, tmp_path: Path) -> None:
    for host in ("127.0.0.1", "localhost"):
        with Client(f"http://{host}:{server.port}", "p") as client:
            assert client.add("x").ok
    said = subprocess.run(
        [sys.executable, "-P", "-m", "tenure", "list", "--json", "--project", "p"], cwd=tmp_path, capture_output=True,
        env={**os.environ, "TENURE_URL": server.url}, timeout=60, check=True,
    )  # fmt: skip
    assert len(json.loads(said.stdout)) == 2


async def test_the_asynchronous_client_sends_it_too(server: TenureServer) -> None:
    async with AsyncClient(server.url, "p") as client:
        assert (await client.add("x")).ok


def test_who_has_the_token_has_the_name_of_the_user_who_started_the_server(server: TenureServer) -> None:
    token = find_token(os.environ, "127.0.0.1", server.port)
    with Client(server.url, "p", key=token) as client:
        key = client.add("x").task["key"]
        _, told = asked(server, f"/api/v1/projects/p/tasks/{key}", authorization=f"Bearer {token}")
    assert told["created_by"] == f"human:{user_of(os.environ)}"


def test_the_token_lies_in_a_file_of_the_user_alone_until_the_server_ends(server: TenureServer) -> None:
    path = Path(token_file(os.environ, "127.0.0.1", server.port))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.read_text().split()[0] not in server.log.read_text()
    assert server.end() == 0
    assert list(path.parent.iterdir()) == []


def test_without_the_token_nobody_is_let_in_but_health_is_told(server: TenureServer) -> None:
    status, told = asked(server, "/api/v1/projects")
    assert (status, told["code"]) == (401, "NOT_SIGNED_IN")
    assert "token" in told["hint"]
    assert asked(server, "/metrics")[0] == 401
    assert asked(server, "/health")[0] == 200


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_of_the_machine_is_refused(server: TenureServer) -> None:
    token = find_token(os.environ, "127.0.0.1", server.port)
    assert token is not None
    for path, method, body in (("/api/v1/projects", "GET", None), ("/api/v1/projects/p/tasks", "POST", "{}")):
        script = ASK.format(uid=NOBODY, port=server.port, asked=(method, path, body))
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=True)
        status, told = json.loads(done.stdout)
        assert (status, json.loads(told)["code"]) == (401, "NOT_SIGNED_IN")
    path = token_file(os.environ, "127.0.0.1", server.port)
    read = f"import os; os.setgid({NOBODY}); os.setuid({NOBODY}); open({path!r})"
    denied = subprocess.run([sys.executable, "-c", read], capture_output=True, timeout=60, check=False)
    assert b"PermissionError" in denied.stderr


def test_a_client_goes_on_with_the_next_start_of_the_server(server: TenureServer) -> None:
    with Client(server.url, "p") as client:
        assert client.add("x").ok
        before = find_token(os.environ, "127.0.0.1", server.port)
        server.end()
        server.start()
        assert find_token(os.environ, "127.0.0.1", server.port) != before
        assert client.add("y").ok


def test_a_token_that_others_could_have_written_is_not_sent(server: TenureServer) -> None:
    path = Path(token_file(os.environ, "127.0.0.1", server.port))
    path.chmod(0o640)
    with Client(server.url, "p") as client, pytest.raises(NotSignedIn):
        client.add("x")
    path.unlink()
    path.symlink_to(path.parent / "elsewhere")
    assert find_token(os.environ, "127.0.0.1", server.port) is None


def test_a_token_is_for_its_own_address_alone(tmp_path: Path) -> None:
    environ = {"TENURE_STATE": str(tmp_path)}
    write_token(token_file(environ, "127.0.0.1", 7420), "tnl_" + "0" * 64)
    assert find_token(environ, "localhost", 7420)
    for host, port in (("127.0.0.1", 7421), ("127.0.0.2", 7420), ("::1", 7420)):
        assert find_token(environ, host, port) is None


def test_the_token_of_a_server_that_was_killed_is_sent_to_nobody(server: TenureServer) -> None:
    """Its file stays, and whoever listens there now would be told how to be its owner."""
    path = Path(token_file(os.environ, "127.0.0.1", server.port))
    assert server.process is not None
    server.process.kill()
    server.process.wait(20)
    assert path.exists()
    assert find_token(os.environ, "127.0.0.1", server.port) is None


@pytest.mark.parametrize(
    "process", ["", "{pid} 1 {boot}", "{pid} {start} of-another-boot", "x y z", "999999999 1 {boot}"]
)
def test_a_token_without_its_process_is_not_sent(tmp_path: Path, process: str) -> None:
    """An earlier boot, another container, a number that was used again."""
    environ, token = {"TENURE_STATE": str(tmp_path)}, "tnl_" + "0" * 64
    path = Path(token_file(environ, "127.0.0.1", 7420))
    write_token(str(path), token)
    assert find_token(environ, "127.0.0.1", 7420) == token
    here = process_table.described(os.getpid())
    assert here is not None
    path.with_name(path.name + PROCESS).write_text(process.format(pid=here.pid, start=here.start, boot=here.boot))
    assert find_token(environ, "127.0.0.1", 7420) is None


def test_the_link_opens_the_dashboards_session(server: TenureServer) -> None:
    token = find_token(os.environ, "127.0.0.1", server.port)
    line = HTTPConnection("127.0.0.1", server.port, timeout=10)
    here = {"Origin": server.url, "Content-Type": "application/json"}
    line.request("POST", "/login", json.dumps({"key": token}), here)
    answer = line.getresponse()
    answer.read()
    cookie = (answer.headers["set-cookie"] or "").partition(";")[0]
    status, told = asked(server, "/api/v1/me", Cookie=cookie)
    assert (status, told.get("role")) == (200, "owner"), (cookie, told)
    line.request("POST", "/logout", "", {**here, "Cookie": cookie})
    assert line.getresponse().read() == b"{}"
    assert asked(server, "/api/v1/me", Cookie=cookie)[0] == 401
    line.close()

"""Bytes over HTTP: headers, parts, bounds, tricks; in little memory, and without holding anybody up."""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import NamedTuple

import pytest

from tenure.client import Client
from tests.servers.tenure import TenureServer

MEGABYTE = 1 << 20
LARGE = 50 * MEGABYTE
WITHIN = 24 * MEGABYTE  # more memory than before may be used while LARGE goes through


class Ground(NamedTuple):
    server: TenureServer
    folder: Path
    project: str
    receipt: str

    @property
    def path(self) -> str:
        return f"/api/v1/projects/{self.project}/tasks/A-001/artifacts"

    @property
    def kept(self) -> list[Path]:
        place = self.folder / "store.artifacts/local" / self.project
        return [path for path in place.rglob("*") if path.is_file()]

    def store(self) -> Client:
        """The way behind the server's back."""
        return Client(str(self.folder / "store.db"), self.project, agent="bo", create=True)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, self.path + path, body, named)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def put(self, name: str, body: bytes, **headers: str) -> tuple[HTTPResponse, bytes]:
        return self.ask("PUT", f"/{name}", body, **{"Tenure_Receipt": self.receipt, **headers})

    def begin(self, line: socket.socket, length: int, *more: str) -> None:
        """Say that so many bytes will come."""
        lines = [
            f"PUT {self.path}/a HTTP/1.1", "Host: localhost", f"Content-Length: {length}",
            f"Tenure-Receipt: {self.receipt}", *more, "", "",
        ]  # fmt: skip
        line.sendall("\r\n".join(lines).encode())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TenureServer, Path]]:
    folder = tmp_path_factory.mktemp("served")
    Client(str(folder / "store.db"), create=True).close()
    with TenureServer(str(folder / "store.db")) as server:
        yield server, folder


NUMBERS = itertools.count(1)


@pytest.fixture
def ground(served: tuple[TenureServer, Path]) -> Ground:
    """A task that is held, in a project of its own."""
    server, folder = served
    project = f"p{next(NUMBERS)}"
    with Client(str(folder / "store.db"), project, agent="ann", create=True) as client:
        client.init()
        client.add("Work")
        return Ground(server, folder, project, str(client.claim("A-001", lease=3600.0).receipt))


def test_what_is_handed_out_is_for_saving_not_for_showing(ground: Ground) -> None:
    page = b"<script>alert(1)</script>"
    assert ground.put("dir/n%C3%A4me.html", page, Content_Type="text/html")[0].status == 200
    response, body = ground.ask("GET", "/dir/n%C3%A4me.html")
    assert (response.status, body) == (200, page)
    headers = response.headers
    assert headers["Content-Disposition"] == "attachment; filename*=UTF-8''n%C3%A4me.html"
    assert headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    digest = hashlib.sha256(page)
    assert headers["ETag"] == f'"{digest.hexdigest()}"'
    assert headers["Repr-Digest"] == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    again, nothing = ground.ask("GET", "/dir/n%C3%A4me.html", If_None_Match=headers["ETag"])
    assert (again.status, nothing) == (304, b"")
    head, nothing = ground.ask("HEAD", "/dir/n%C3%A4me.html")
    assert (head.status, head.headers["Content-Length"], nothing) == (200, str(len(page)), b"")


@pytest.mark.parametrize(
    ("asked", "status", "part", "said"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=-99", 206, b"0123456789", "bytes 0-9/10"),
        ("bytes=0-1,4-5", 200, b"0123456789", None),
        ("lines=1-2", 200, b"0123456789", None),
        ("bytes=-", 200, b"0123456789", None),
        ("bytes=10-", 416, None, "bytes */10"),
        ("bytes=-0", 416, None, "bytes */10"),
    ],
)
def test_a_part_of_it_can_be_asked_for(ground: Ground, asked: str, status: int, part: bytes, said: str | None) -> None:
    ground.put("a", b"0123456789")
    response, body = ground.ask("GET", "/a", Range=asked)
    assert (response.status, response.headers["Content-Range"]) == (status, said)
    assert part is None or body == part


def test_a_digest_that_is_another_is_refused(ground: Ground) -> None:
    right = base64.b64encode(hashlib.sha256(b"content").digest()).decode()
    assert ground.put("a", b"content", Content_Digest=f"sha-256=:{right}:")[0].status == 200
    for wrong in (f"sha-256=:{right}:", "sha-256=:AAAA:", "sha-256=none"):
        response, body = ground.put("b", b"changed", Content_Digest=wrong)
        assert (response.status, b"igest" in body) == (400, True)
    assert ground.put("b", b"changed", Content_Digest="md5=:xxx:")[0].status == 200


@pytest.mark.parametrize(
    "path",
    ["/../x", "/..%2fx", "/%2e%2e/%2e%2e/x", "/a/../../x", "//etc/passwd", "/a%5c..%5cx", "/.git%2fconfig", "/x%00"],
)
def test_paths_that_lead_elsewhere_are_refused(ground: Ground, path: str) -> None:
    response, body = ground.ask("PUT", path, b"x", Tenure_Receipt=ground.receipt)
    assert response.status == 400
    assert b"artifact name" in body
    assert ground.ask("GET", path)[0].status == 400
    assert ground.kept == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Tenure_Receipt": ""}, 400),
        ({"Tenure_Receipt": "no receipt"}, 400),
        ({"Content_Type": "text/html, text/plain"}, 400),
        ({"Content_Length": "many"}, 400),
    ],
)
def test_what_cannot_be_read_is_a_bad_request(ground: Ground, headers: dict[str, str], status: int) -> None:
    assert ground.put("a", b"x", **headers)[0].status == status
    assert ground.kept == []


def test_the_path_and_the_receipt_name_the_same_task(ground: Ground) -> None:
    connection = HTTPConnection("127.0.0.1", ground.server.port, timeout=30)
    connection.request("PUT", ground.path.replace("A-001", "A-002") + "/a", b"x", {"Tenure-Receipt": ground.receipt})
    response = connection.getresponse()
    assert (response.status, b"the receipt is for A-001" in response.read()) == (400, True)
    connection.close()


def test_a_superseded_holder_is_refused_before_it_sends_anything(ground: Ground) -> None:
    with ground.store() as bo:
        bo.recover("A-001")
        bo.claim("A-001")
    with socket.create_connection(("127.0.0.1", ground.server.port), timeout=30) as line:
        ground.begin(line, 1_000_000, "Expect: 100-continue")
        assert b"409 Conflict" in line.recv(4096)
    assert ground.kept == []


def test_who_hangs_up_in_the_middle_leaves_nothing(ground: Ground) -> None:
    with socket.create_connection(("127.0.0.1", ground.server.port), timeout=30) as line:
        ground.begin(line, 4 * MEGABYTE)
        line.sendall(b"x" * (2 * MEGABYTE))
        until(lambda: bool(ground.kept))  # it has begun to come in
    until(lambda: ground.kept == [])
    assert ground.put("a", b"anew")[0].status == 200


def test_a_body_that_is_too_large_is_refused_with_and_without_its_length(ground: Ground) -> None:
    with ground.store() as owner:
        owner.init(limits={"max_result_size": MEGABYTE})
    assert ground.put("a", b"x" * (MEGABYTE + 1))[0].status == 413
    connection = HTTPConnection("127.0.0.1", ground.server.port, timeout=30)
    try:
        headers = {"Tenure-Receipt": ground.receipt, "Transfer-Encoding": "chunked"}
        connection.request("PUT", f"{ground.path}/a", iter([b"x" * 65536] * 20), headers, encode_chunked=True)
        assert connection.getresponse().status == 413
    finally:
        connection.close()
    assert ground.kept == []
    assert ground.put("a", b"x" * MEGABYTE)[0].status == 200


# --- large ones ---


def memory(server: TenureServer) -> int:
    """The most that the process has had so far."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def test_fifty_megabytes_go_through_in_little_memory_while_others_are_served(ground: Ground, tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        for _ in range(LARGE // MEGABYTE):
            file.write(os.urandom(MEGABYTE))
    slowest, is_over = 0.0, threading.Event()

    def look() -> None:
        nonlocal slowest
        while not is_over.is_set():
            began = time.monotonic()
            assert ground.ask("GET", "")[0].status == 200
            slowest = max(slowest, time.monotonic() - began)

    ground.put("warm", b"up")
    before = memory(ground.server)
    looking = threading.Thread(target=look)
    looking.start()
    try:
        with Client(ground.server.url, ground.project) as client:
            assert client.put_artifact(ground.receipt, "large", path).ok
            digest = hashlib.sha256()
            for piece in client.get_artifact("A-001", "large"):
                digest.update(piece)
    finally:
        is_over.set()
        looking.join()
    grown = memory(ground.server) - before
    print(f"grown by {grown / MEGABYTE:.1f} MB; the slowest look meanwhile took {slowest * 1000:.0f} ms")
    assert digest.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()
    assert grown < WITHIN
    assert slowest < 2.0


def until(is_so: object) -> None:
    assert callable(is_so)
    end = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)

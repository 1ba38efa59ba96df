"""A server that answers something else than a tenure server does: told so, never a bug of ours."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tenure import Worker
from tenure.client import AsyncClient, Client
from tenure.client.contents import AsyncDownload, Download
from tenure.client.transports import asynchronous, http, http_artifacts
from tenure.client.transports.http_messages import Reply, not_tenure
from tenure.core.commands import Note, Submit
from tenure.core.errors import InvalidInput, StoreUnavailable, TenureError
from tests.client.stub import CUT, reply, stubbed


class Strange(BaseHTTPRequestHandler):
    said = b"{}"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.said)))
        self.end_headers()
        self.wfile.write(self.said)

    do_GET = do_POST = do_PUT = _answer  # noqa: N815 - as http.server names them

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(params=[b"{}", b"[]", b"null", b'{"outcome": 7}', b'{"items": {}}'])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    handler = type("Strange", (Strange,), {"said": request.param})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_client_is_told_what_the_server_is_not(url: str) -> None:
    with Client(url, "p", agent="ann") as client:
        for ask in (client.tasks, client.claim, lambda: client.add("x")):
            with pytest.raises(InvalidInput, match="does not answer as a tenure server does"):
                ask()


@pytest.mark.parametrize("url", [b"{}"], indirect=True)
@pytest.mark.parametrize("verb", [["status"], ["list"], ["claim"], ["add", "x"], ["key", "list"], ["show", "A-1"]])
def test_the_command_line_says_so_too(url: str, verb: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tenure", *verb, "--json"], cwd=tmp_path, capture_output=True, timeout=60,
        env={"HOME": str(tmp_path), "TENURE_URL": url, "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 8, done
    assert "does not answer as a tenure server" in json.loads(done.stdout)["error"]["message"]


# --- only our errors ----------------------------------------------------------------------------------------

HUGE = b"1" + b"0" * 30
STRANGE: dict[str, bytes] = {
    "cut JSON": reply(200, b'{"outcome": "OK", "mess'),
    "JSON of another code": reply(200, {"outcome": "GRANTED_BY_2031", "message": "done"}),
    "JSON of other types": reply(200, {"outcome": "OK", "task": 7, "claims": {"a": 1}, "mark": "x"}),
    "pages of other types": reply(200, {"items": {"a": 1}, "next": None}),
    "JSON that is deep": reply(200, b'{"items":' + b"[" * 200_000),
    "JSON that is no UTF-8": reply(200, b'{"outcome": "\xff\xfe"}'),
    "a page of HTML": reply(200, b"<html>hello</html>", type="text/html"),
    "a page of a proxy": reply(403, b"<html>no</html>", type="text/html"),
    "a problem of another shape": reply(500, b'{"code": 7}', type="application/problem+json"),
    "a problem with odd fields": reply(
        400, {"code": "NOT_HOME", "detail": ["x"], "hint": 5, "definite": "?"}, type="application/problem+json"
    ),
    "a home that is no URL": reply(421, b"{}", "Tenure-Home: http://[::1"),
    "a redirect to nowhere": reply(302, b"", "Location: http://["),
    "a wait without end": reply(503, b"", "Retry-After: " + "9" * 400),
    "nothing": CUT,
    "another protocol": b"SSH-2.0-OpenSSH_9.2\r\n",
    "bytes": bytes(range(256)) * 20,
    "no status": b"HTTP/1.1 \r\n\r\n",
    "a status that is no number": b"HTTP/1.1 abc OK\r\n\r\n",
    "a header without an end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
    "a thousand headers": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
    "a header of bytes": b"HTTP/1.1 200 OK\r\nX\xff\x00: y\r\nContent-Length: 2\r\n\r\n{}",
    "a length beyond memory": b"HTTP/1.1 200 OK\r\nContent-Length: " + HUGE + b"\r\n\r\n{}",
    "a length that is too long": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n{}",
    "a length below nothing": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\nConnection: close\r\n\r\n{}",
    "chunks of no size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "half a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{",
    "content that is no gzip": reply(200, b"{}", "Content-Encoding: gzip"),
    "a change of the protocol": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
    "an artifact of no view": reply(200, b"bytes", "Tenure-Artifact: [1, 2]"),
    "an artifact of no size": reply(200, b"bytes", 'Tenure-Artifact: {"digest": "d", "size": "5"}'),
    "an artifact with other bytes": reply(200, b"bytes", 'Tenure-Artifact: {"digest": "d", "size": 9}'),
}  # fmt: skip
RECEIPT = "A-001-x@1:0000000000000000000000000000000000000000:e1"
CALLS: dict[str, Callable[[Any], Any]] = {
    "add": lambda client: client.add("x"),
    "claim": lambda client: client.claim(),
    "wait for a claim": lambda client: client.claim(wait=0.01),
    "tasks": lambda client: client.tasks(),
    "show": lambda client: client.show("A-001"),
    "batch": lambda client: client.batch([Note(project="p", task="A-001", text="x")]),
    "mark": lambda client: client.mark(),
    "wait for news": lambda client: client.wait_for_news(1, 0.01),
    "put": lambda client: client.put_artifact(RECEIPT, "a", b"x" * 100),
    "get": lambda client: client.get_artifact("A-001", "a"),
}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PATIENCE": 0.02, "TO_ANSWER": 0.5, "SHORTEST": 0.001, "LONGEST": 0.001}.items():
        monkeypatch.setattr(http, name, value)
        for module in (asynchronous, http_artifacts):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)


def read(answer: Any) -> None:
    if isinstance(answer, Download):
        answer.read()


async def answered(answer: Any) -> None:
    answer = await answer
    if isinstance(answer, AsyncDownload):
        await answer.read()


@pytest.mark.sampled
@pytest.mark.parametrize("said", STRANGE)
@pytest.mark.usefixtures("impatient")
def test_only_our_errors_leave_a_client(said: str) -> None:
    with stubbed(STRANGE[said]) as stub, Client(stub.url, "p", agent="ann", homes={"eu": stub.url}) as client:
        for name, call in CALLS.items():
            with pytest.raises(TenureError) as refused:
                read(call(client))
            if name in ("add", "claim") and STRANGE[said].startswith(b"HTTP/1.1 200"):
                assert not refused.value.definite, f"{name} may have been done"


def test_a_next_page_of_another_type_is_refused() -> None:
    with stubbed(reply(200, {"items": [], "next": [5]})) as stub, Client(stub.url, "p") as client:
        for ask in (client.tasks, client.log):
            with pytest.raises(InvalidInput, match="does not answer as a tenure server does"):
                ask()


async def is_refused(call: Callable[[], Any]) -> TenureError:
    """The error of an asynchronous call, which must be ours."""
    with pytest.raises(TenureError) as refused:
        read(await call())
    return refused.value


@pytest.mark.sampled
@pytest.mark.parametrize("said", STRANGE)
@pytest.mark.usefixtures("impatient")
def test_only_our_errors_leave_an_asynchronous_client(said: str) -> None:
    async def play(url: str) -> None:
        async with AsyncClient(url, "p", agent="ann", homes={"eu": url}) as client:
            for call in CALLS.values():
                await is_refused(lambda call=call: answered(call(client)))
        assert "closed" in (await is_refused(client.tasks)).message

    with stubbed(STRANGE[said]) as stub:
        asyncio.run(play(stub.url))


URLS = [
    "http://[", "http://[::1", "http://a..b", "http://a b", "https://" + "a" * 300, "http://host/ä", "http://\u2100.com",
    "http://\udce9", "http://x\n.de", "http://127.0.0.1:99999", "http://127.0.0.1:1/\udce9", "a\0b", "\udce9.db",
    "sqlite:///\0", "postgresql://[", "mariadb://[", "valkey://[", "ftp://x", "",
]  # fmt: skip


@pytest.mark.parametrize("url", URLS, ids=[ascii(url)[:20] for url in URLS])
@pytest.mark.parametrize("create", [False, True])
def test_any_text_is_a_url_or_refused(url: str, create: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some are paths

    def blocking() -> None:
        with Client(url, "p", create=create) as client:
            client.tasks()

    async def waiting() -> None:
        async with AsyncClient(url, "p", create=create) as client:
            await client.tasks()

    def working() -> None:
        worker = Worker(url, "p", create=create)
        worker.task()(lambda ctx: None)
        worker.run(until_idle=True)

    for use in (blocking, lambda: asyncio.run(waiting()), working):
        with pytest.raises(TenureError):
            use()


@pytest.mark.parametrize("field", ["project", "agent", "session", "user"])
def test_any_text_is_a_name_or_refused(field: str) -> None:
    named: dict[str, Any] = {"project": "p", field: "\udce9"}

    async def play(url: str) -> None:
        async with AsyncClient(url, **named) as client:
            await is_refused(client.mark)

    with stubbed(reply(200, b"{}")) as stub:
        with Client(stub.url, **named) as client, pytest.raises(InvalidInput, match="UTF-8"):
            client.mark()
        asyncio.run(play(stub.url))


def test_what_cannot_be_sent_is_refused() -> None:
    odd = Note(project="p", task="A-001", text=object())  # type: ignore[arg-type]

    async def play(url: str) -> None:
        async with AsyncClient(url, "p") as client:
            await is_refused(lambda: client.batch([odd]))

    with stubbed(reply(200, b"{}")) as stub:
        with Client(stub.url, "p") as client, pytest.raises(InvalidInput, match="cannot be encoded"):
            client.batch([odd])
        asyncio.run(play(stub.url))


def test_tls_that_cannot_be_set_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", "/nonexistent/keys")
    with Client("https://127.0.0.1:1", "p") as client, pytest.raises(StoreUnavailable, match="/nonexistent/keys"):
        client.tasks()
    with pytest.raises(StoreUnavailable, match="/nonexistent/keys"):
        AsyncClient("https://127.0.0.1:1", "p")


@pytest.mark.usefixtures("impatient")
def test_a_reply_that_a_proxy_has_cut_costs_no_result(tmp_path: Path) -> None:
    """The worker sends the result again: it may have been accepted, and it may not."""
    store = str(tmp_path / "store.db")
    with Client(store, "p", create=True) as client:
        client.init()
        client.add("Work", type="t")
    worker = Worker(store, "p")
    worker.task("t")(lambda ctx: "done")
    do, cut = worker.client.transport.do, []

    def through_a_proxy(command: Any, principal: Any) -> Any:
        if isinstance(command, Submit) and not cut:
            cut.append(command)
            raise not_tenure(Reply(200, b'{"outc', {}), "http://proxy", is_write=True)
        return do(command, principal)

    worker.client.transport.do = through_a_proxy  # type: ignore[method-assign]
    worker.run(until_idle=True)
    worker.close()
    with Client(store, "p") as client:
        assert client.show("A-001")["result"]["data"] == "done"
        assert [entry["release_reason"] for entry in client.history("A-001")] == ["COMPLETED"]

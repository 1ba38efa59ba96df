"""A server that answers something else than a tenure server does: told so, never a bug of ours."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tenure.client import Client
from tenure.core.errors import InvalidInput


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

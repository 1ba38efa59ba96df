"""A key that ends while the body of a request is on its way: nothing is done with it any more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.client.caller import SystemRandom
from tenure.client.routes import BATCH, PREFIX
from tenure.client.transports.local import ProjectArtifacts
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.records import KINDS, ApiKey
from tenure.engine import Context, Engine
from tenure.server import requests
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import Policy
from tenure.server.logs import ServerLog
from tenure.stores.memory import Memory

P = f"{PREFIX}/projects/p"


class Slow:
    """A server, and a caller whose bodies come in two pieces."""

    def __init__(self, folder: Path) -> None:
        place = ProjectArtifacts(str(folder), "memory://", "local")
        self.engine = Engine(Memory(), SystemRandom(), Context(artifacts=place))
        self.engine.do(c.DefineProject(project="p"))
        self.engine.do(c.Add(project="p", task=NewTask(title="held")))
        self.key = str(self.engine.do(c.CreateKey(name="ann", role="agent")).secret)
        held = self.engine.do(c.ClaimTask(project="p", task="A-001", agent="ann", session="s"))
        self.receipt = str(held.receipt)
        self.loop = asyncio.Runner()
        self.assembly = Assembly(self.engine, Policy(auth="required", rate=0), ServerLog("error"))
        self.assembly.app.mount("/inner", self.inner)
        self.reached = 0

    async def inner(self, _: Any, receive: Any, send: Any) -> None:
        """A mounted application, as that of MCP."""
        while (await receive()).get("more_body"):
            pass
        self.reached += 1
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def ask(self, method: str, path: str, body: bytes, *, ends: bool) -> tuple[int, bytes]:
        sent: list[Any] = []

        async def ask() -> None:
            async def receive() -> dict[str, Any]:
                if not pieces:
                    await asyncio.Event().wait()
                if len(pieces) == 1 and ends:
                    command = c.RevokeKey(key=self.key.split("_")[2])
                    outcome = await asyncio.to_thread(self.engine.do, command)
                    self.assembly.authenticator.observe(command, c.OWNER, outcome, 0.0)
                return pieces.pop(0)

            pieces = [
                {"type": "http.request", "body": body[:1], "more_body": True},
                {"type": "http.request", "body": body[1:], "more_body": False},
            ]

            async def send(message: Any) -> None:
                sent.append(message)

            await asyncio.wait_for(self.assembly.app(scope, receive, send), 30)

        headers = {
            "Host": "localhost", "Authorization": f"Bearer {self.key}", "Content-Length": str(len(body)),
            "Tenure-Receipt": self.receipt, "Tenure-Agent": "ann",
        }  # fmt: skip
        scope = {
            "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": b"",
            "scheme": "http", "client": ("127.0.0.1", 4711), "state": {}, "http_version": "1.1",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip
        self.loop.run(ask())
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])

    def rows(self) -> dict[str, Any]:
        def read(tx: Any) -> dict[str, Any]:
            return {KINDS[kind].table: tx.find(kind, {}) for kind in KINDS if kind is not ApiKey}

        return self.engine.read(read)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    monkeypatch.setattr(requests, "LATE", 0.0)
    slow = Slow(tmp_path)
    yield slow
    slow.loop.run(slow.assembly.service.close())
    slow.loop.close()


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", f"{P}/tasks", {"title": "more"}),
        ("POST", (PREFIX + BATCH).format(project="p"), {"commands": [{"command": "add", "task": {"title": "more"}}]}),
        ("PUT", f"{P}/tasks/A-001/artifacts/a.txt", "bytes"),
        ("POST", "/inner", "anything"),
    ],
)
def test_what_a_key_began_to_send_is_not_done_after_its_end(
    slow: Slow, method: str, path: str, body: Any, ends: bool
) -> None:
    before = slow.rows()
    status, told = slow.ask(method, path, json.dumps(body).encode(), ends=ends)
    if ends:
        assert (status, json.loads(told)["code"]) == (401, "NOT_SIGNED_IN")
        assert (slow.rows(), slow.reached) == (before, 0)
    else:
        assert status in (200, 201), told
        assert slow.rows() != before or slow.reached

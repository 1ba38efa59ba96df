"""Callers over raw connections: each sends, reads its answer, and sends again.

A separate process, so that it and the server have a core each. It reads its task as a JSON line, and answers with one.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

PATH = "/api/v1/projects/bench"


def request(method: str, path: str, body: Any, **headers: str) -> bytes:
    data = json.dumps(body).encode()
    head = [f"{method} {PATH}{path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(data)}"]
    head += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*head, "", ""]).encode() + data


class Line(asyncio.Protocol):
    """One connection with one request on its way at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._have = b""
        self._need = -1
        self._answer: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error or ConnectionError("the server hung up"))

    def data_received(self, data: bytes) -> None:
        self._have += data
        if self._need < 0:
            end = self._have.find(b"\r\n\r\n")
            if end < 0:
                return
            at = self._have.index(b"content-length: ") + 16
            self._need = end + 4 + int(self._have[at : self._have.index(b"\r", at)])
        if len(self._have) >= self._need:
            answer, self._have, self._need = self._have, b"", -1
            assert self._answer is not None
            if not self._answer.done():
                self._answer.set_result(answer)

    def ask(self, data: bytes) -> asyncio.Future[bytes]:
        self._answer = self.loop.create_future()
        self.transport.write(data)
        return self._answer


async def connected(port: int, count: int) -> list[Line]:
    loop = asyncio.get_running_loop()
    lines = []
    for _ in range(count):
        _, line = await loop.create_connection(Line, "127.0.0.1", port)
        lines.append(line)
    return lines


# --- claims -------------------------------------------------------------------------------------------------


async def claims(port: int, callers: int, seconds: float, n: int) -> dict[str, Any]:
    """Claim for so many seconds, or until nothing is left."""
    held: list[bytes] = []
    took: list[float] = []
    lines = await connected(port, callers)
    until = time.perf_counter() + seconds

    async def work(number: int, line: Line) -> None:
        asked = request("POST", "/claims", {"agent": f"agent-{number}", "session": f"session-{number}", "n": n})
        while (began := time.perf_counter()) < until:
            answer = await line.ask(asked)
            took.append(time.perf_counter() - began)
            if not answer.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(answer.decode()[:500])
            found = answer.split(b'"receipt":"')[1:]
            if not found:
                return  # drained
            held.extend(part[: part.index(b"@")] for part in found)

    began = time.perf_counter()
    await asyncio.gather(*(work(number, line) for number, line in enumerate(lines)))
    passed = time.perf_counter() - began
    took.sort()
    return {
        "per_s": len(held) / passed, "p50_ms": took[len(took) // 2] * 1e3,
        "p99_ms": took[len(took) * 99 // 100] * 1e3, "claims": len(held),
        "tasks": len(set(held)),
    }  # fmt: skip


# --- waiting ------------------------------------------------------------------------------------------------


async def idle(port: int, callers: int, tasks: int, pid: int) -> dict[str, Any]:
    """So many wait; then tasks come one at a time, and each goes to one of them at once."""
    lines = await connected(port, callers)
    got: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    is_over = False

    async def wait(number: int, line: Line) -> None:
        asked = request("POST", "/claims?wait=60", {"agent": f"idle-{number}", "session": f"idle-{number}"})
        while not is_over:
            answer = await line.ask(asked)
            if b'"receipt"' in answer:
                got.put_nowait((time.perf_counter(), answer))

    waiters = [asyncio.ensure_future(wait(number, line)) for number, line in enumerate(lines)]
    (asker,) = await connected(port, 1)
    before = 0.0
    while True:  # until the first look of everybody is done: the server is quiet
        await asyncio.sleep(1)
        spent = cpu_of(pid)
        if spent - before < 0.2:
            break
        before = spent
    spent, began = cpu_of(pid), time.perf_counter()
    await asyncio.sleep(5)
    busy = (cpu_of(pid) - spent) / (time.perf_counter() - began)
    took = []
    for number in range(tasks):
        sent = time.perf_counter()
        answer = await asker.ask(request("POST", "/tasks", {"task": {"title": f"task {number}"}}))
        assert b"CREATED" in answer, answer
        at, _ = await asyncio.wait_for(got.get(), 30)
        took.append(at - sent)
    is_over = True
    for waiter in waiters:
        waiter.cancel()
    took.sort()
    return {
        "rss_mb": rss_of(pid), "cpu": busy, "p50_ms": took[len(took) // 2] * 1e3,
        "p99_ms": took[min(len(took) - 1, len(took) * 99 // 100)] * 1e3, "left": got.qsize(),
    }  # fmt: skip


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def rss_of(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


WORK = {"claims": claims, "idle": idle}


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asked = json.loads(sys.stdin.readline())
    print(json.dumps(uvloop.run(WORK[asked.pop("what")](**asked))))


if __name__ == "__main__":
    main()

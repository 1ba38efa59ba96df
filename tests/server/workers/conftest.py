"""`tenure serve --workers 3` as real processes, and requests that say which of them answered."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tenure.client import Client
from tests.servers import processes
from tests.servers.tenure import TenureServer

WORKERS = 3
TRACE = "0af7651916cd43dd8448eb211c80{:04x}"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server(TenureServer):
    """`ask` opens a connection for each request unless one is given, so the kernel chooses the worker each time."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.traces = 0
        self._open: list[HTTPConnection] = []

    def stop(self) -> None:
        for line in self._open:
            line.close()
        super().stop()

    def ask(
        self, method: str, path: str, body: Any = None, *, line: HTTPConnection | None = None, **headers: str
    ) -> Answer:
        if line is None:
            with closing(self._new_line()) as line:
                return self.ask(method, path, body, line=line, **headers)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, path, None if body is None else json.dumps(body), sent)
        answer = line.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())

    def line(self) -> HTTPConnection:
        """A connection that stays open until the end."""
        self._open.append(self._new_line())
        return self._open[-1]

    def _new_line(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=60)

    def lines(self) -> dict[int, HTTPConnection]:
        """A connection to each worker."""
        found: dict[int, HTTPConnection] = {}
        while len(found) < WORKERS:
            line = self.line()
            found.setdefault(self.worker_of(line), line)
        return found

    def worker_of(self, line: HTTPConnection) -> int:
        """The worker at the other end: its log names the trace of our request."""
        self.traces += 1
        trace = TRACE.format(self.traces)
        self.ask("GET", "/api/v1/projects", line=line, traceparent=f"00-{trace}-b7ad6b7169203331-00")
        told = self.logged(lambda entry: entry.get("trace_id") == trace)
        return int(told["worker"])

    def logged(self, is_it: Callable[[dict[str, Any]], bool], *, count: int = 1) -> dict[str, Any]:
        """The entry of the log, once so many are there."""
        found: list[dict[str, Any]] = []

        def is_there() -> bool:
            lines = self.log.read_text().splitlines()
            found[:] = [e for e in (json.loads(line) for line in lines if line.startswith("{")) if is_it(e)]
            return len(found) >= count

        assert self.process is not None
        processes.wait_until(is_there, self.process, self.log)
        return found[-1]

    def pids(self) -> dict[int, int]:
        """The workers' process ids, by their number in the order of their start."""
        assert self.process is not None
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return {pid: int(pid) for pid in map(int, children)}

    def kill_worker(self, pid: int) -> None:
        """As by kill -9; returns once another one is in its place."""
        before = len(self.restarts())
        os.kill(pid, signal.SIGKILL)
        self.logged(lambda entry: entry["event"].startswith("a worker has ended"), count=before + 1)
        assert self.process is not None
        processes.wait_until(lambda: len(self.pids()) == WORKERS, self.process, self.log)

    def restarts(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if "a worker has ended" in line]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    started: list[Server] = []

    def start(store: str | None = None, **settings: str) -> Server:
        url = store or str(tmp_path / "store.db")
        Client(url, "p", agent="a", session="s", role="owner", create=True).close()
        server = Server(url, "--workers", str(WORKERS), settings={f"TENURE_{k}": v for k, v in settings.items()})
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def server(make: Callable[..., Server]) -> Server:
    return make()

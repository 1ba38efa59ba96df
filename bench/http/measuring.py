"""The parts of a run, their rounds, the figures."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from bench.report import Figure, ratio_of, show
from tenure.client.caller import SystemRandom
from tenure.core.commands import AddMany, ClaimNext, DefineProject, NewTask
from tenure.engine import Context, Engine
from tenure.engine.runtime.batcher import Batcher
from tenure.stores.open_store import open_store
from tests.servers import processes
from tests.servers.postgres import PostgresServer
from tests.servers.tenure import TenureServer

CALLERS = 64
BATCH_CALLERS = 8
N = 50
MOST_MADE = 500  # tasks of one command
BATCH_TASKS = 30_000  # a second: more than anybody claims, since the last of a queue are claimed slowly


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench http", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--store", choices=("postgres", "sqlite"), default="postgres")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--waiting", type=int, default=10_000, help="agents that long-poll")
    parser.add_argument("--tasks", type=int, default=200, help="that come while they wait")
    parser.add_argument("--quick", action="store_true", help="one short round and few agents: for development")
    given = parser.parse_args(argv)
    if given.quick:
        given.seconds, given.rounds, given.waiting, given.tasks = 1.0, 1, 200, 20
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder, stores(given.store, Path(folder)) as make:
        figures = [*claims(make, given.seconds, given.rounds), *waiting(make, given.waiting, given.tasks)]
    show(figures, as_json=given.json)
    return 0


@contextmanager
def stores(kind: str, folder: Path) -> Iterator[Any]:
    """What gives the URL of a new store each time."""
    if kind == "sqlite":
        names = iter(range(1000))
        yield lambda: str(folder / f"{next(names)}.db")
        return
    with PostgresServer() as server:
        names = iter(range(1000))
        yield lambda: server.create(f"http_{next(names)}")


def filled(url: str, tasks: int) -> None:
    engine = Engine(open_store(url), SystemRandom(), Context(pause=time.sleep))
    engine.do(DefineProject(project="bench"))
    for begin in range(0, tasks, MOST_MADE):
        size = min(MOST_MADE, tasks - begin)
        engine.run([AddMany(project="bench", tasks=(NewTask(title="a task of the usual size"),) * size)])
    engine.store.close()


def load(**asked: Any) -> dict[str, Any]:
    """The callers' report of their task."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.http.load"], input=json.dumps(asked) + "\n", capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    report: dict[str, Any] = json.loads(done.stdout)
    return report


# --- claims -------------------------------------------------------------------------------------------------


def claims(make: Any, seconds: float, rounds: int) -> Iterator[Figure]:
    single: list[dict[str, Any]] = []
    bare: list[dict[str, Any]] = []
    fifty: list[dict[str, Any]] = []
    inside: list[float] = []
    for _ in range(rounds):
        url = make()
        filled(url, int(8_000 * seconds))
        with TenureServer(url) as server:
            _one(server.port)  # it listens before it has loaded everything: the first answer waits for that
            single.append(_checked(load(what="claims", port=server.port, callers=CALLERS, seconds=seconds, n=1)))
            answer = _one(server.port)
        with _bare(answer) as port:
            bare.append(load(what="claims", port=port, callers=CALLERS, seconds=seconds, n=1))
        url = make()
        filled(url, int(BATCH_TASKS * seconds))
        with TenureServer(url) as server:
            _one(server.port)
            fifty.append(_checked(load(what="claims", port=server.port, callers=BATCH_CALLERS, seconds=seconds, n=N)))
        url = make()
        filled(url, int(BATCH_TASKS * seconds))
        inside.append(in_process(url, seconds))
    yield _against("http_single_claims", single, [one["per_s"] for one in bare], "≥ 0.6")
    yield Figure("http_single_p99_ms", median(one["p99_ms"] for one in single), "ms")
    yield _against("http_batch_claims", fifty, inside, "≥ 0.85")
    yield Figure("http_batch_p99_ms", median(one["p99_ms"] for one in fifty), "ms")


def _against(name: str, ours: list[dict[str, Any]], base: list[float], goal: str) -> Figure:
    rates = [one["per_s"] for one in ours]
    return Figure(name, median(rates), "1/s", median(base), ratio_of(rates, base), goal)


def _checked(report: dict[str, Any]) -> dict[str, Any]:
    if report["claims"] != report["tasks"]:
        raise RuntimeError("a task was handed out twice")
    return report


def _one(port: int) -> bytes:
    """The answer to one more claim."""
    from http.client import HTTPConnection

    link = HTTPConnection("127.0.0.1", port)
    link.request("POST", "/api/v1/projects/bench/claims", json.dumps({"agent": "one", "session": "one"}))
    answer = link.getresponse().read()
    link.close()
    return answer


@contextmanager
def _bare(answer: bytes) -> Iterator[int]:
    port = processes.free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.http.bare", str(port)], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(answer)
    process.stdin.close()
    try:
        for _ in range(200):
            try:
                _one(port)
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def in_process(url: str, seconds: float) -> float:
    """Claims of 50 a second, by as many threads as there are callers, through the same batcher."""
    engine = Engine(open_store(url), SystemRandom(), Context(pause=time.sleep))
    taken: list[int] = []

    def work(number: int) -> None:
        command = ClaimNext(project="bench", agent=f"agent-{number}", session=f"session-{number}", n=N)
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            outcome = batcher.do(command)
            if not outcome.ok:
                return
            taken.append(len(outcome.claims or ()))

    with Batcher(engine) as batcher:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(BATCH_CALLERS)]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        passed = time.perf_counter() - began
    engine.store.close()
    return sum(taken) / passed


# --- waiting ------------------------------------------------------------------------------------------------


def waiting(make: Any, count: int, tasks: int) -> Iterator[Figure]:
    url = make()
    filled(url, 0)
    with TenureServer(url) as server:
        assert server.process is not None
        report = load(what="idle", port=server.port, callers=count, tasks=tasks, pid=server.process.pid)
    if report["left"]:
        raise RuntimeError(f"{report['left']} more claims than tasks")
    yield Figure("http_waiting", count, "agents")
    yield Figure("http_waiting_mb", report["rss_mb"], "MB", goal="< 1000")
    yield Figure("http_waiting_cpu", report["cpu"], "of a core")
    yield Figure("http_pickup_p50_ms", report["p50_ms"], "ms")
    yield Figure("http_pickup_p99_ms", report["p99_ms"], "ms")

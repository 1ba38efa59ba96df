"""What people do to a task reaches the function that runs for it, long before its lease has to be renewed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tenure import AsyncContext, Client, Context, Worker
from tenure.client.worker import watcher
from tenure.core.records import RetryPolicy
from tenure.testing import FakeClock
from tests.client.test_worker import PATIENCE, running, until
from tests.sampling import places
from tests.servers.postgres import url_of
from tests.servers.tenure import TenureServer

PROGRAM = """
import asyncio, sys, threading, time
from tenure import Worker

url, kind = sys.argv[1:]
worker = Worker(url, "shop", lease=3600.0)  # renewed after 24 minutes

def say(*words):
    print(*words, flush=True)

@worker.task("blocking")
def blocking(ctx):
    say("begun")
    end = time.monotonic() + 60
    while not ctx.cancelled and time.monotonic() < end:
        threading.Event().wait(0.01)
    say("stopped" if ctx.cancelled else "never", time.time())

@worker.task("async")
async def waiting(ctx):
    say("begun")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        say("stopped", time.time())
        raise
    say("never", time.time())

worker.run()
"""


@pytest.fixture(params=places("sqlite", "postgresql", "http"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    store = str(tmp_path / "store.db")
    if request.param == "postgresql":
        request.getfixturevalue("postgres")
        store = url_of(tmp_path)
    with Client(store, "shop", create=True) as client:
        client.init()
    if request.param != "http":
        yield store
        return
    with TenureServer(store) as served:
        yield served.url


@contextmanager
def process_at(url: str, kind: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", PROGRAM, url, kind]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


@pytest.mark.parametrize("kind", ["blocking", "async"])
@pytest.mark.parametrize("verb", ["cancel", "pause", "drain", "max_duration"])
def test_a_function_in_another_process_stops_before_its_renewal(
    url: str, kind: str, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {"max_duration": 2.0} if verb == "max_duration" else {}
    with Client(url, "shop") as mia, process_at(url, kind, tmp_path) as process:
        mia.add("Long", type=kind, constraints=limits)
        assert said(process) == ["begun"]
        at = time.time()
        if verb == "drain":
            mia.pause("A-001", drain=True)
        elif verb != "max_duration":
            getattr(mia, verb)("A-001", "no need")
        word, when = said(process)
        with capsys.disabled():
            took = float(when) - at - limits.get("max_duration", 0.0)
            print(f"\n{url.partition('://')[0][-10:]:>10} {kind:8} {verb:12} reached the function after {took:5.2f} s")
        assert word == "stopped"  # the renewal would have come after 24 minutes, the function's own end after one


def test_max_duration_is_enforced_by_the_worker_s_own_clock() -> None:
    """The store's clock stands still: only the worker's can have ended the function."""
    with Client("memory://stands-still", "shop", create=True, clock=FakeClock()) as mia:
        mia.add("Long", type="t", constraints={"max_duration": "1s"}, max_attempts=1)
        worker = Worker("memory://stands-still", "shop", lease=3600.0)
        stopped = threading.Event()

        @worker.task("t")
        async def work(ctx: AsyncContext) -> None:
            try:
                await asyncio.sleep(PATIENCE)
            finally:
                stopped.set()

        with running(worker):
            assert stopped.wait(PATIENCE)
            assert mia.wait("A-001", timeout=PATIENCE).error == "max_duration of 1 s is over"
        assert mia.history("A-001")[0]["error_class"] == "timeout"


def test_one_worker_never_runs_two_copies_of_a_task(url: str) -> None:
    """Functions that do not listen: each claim of the task after the first must wait for the end of its function."""
    with Client(url, "shop") as mia:
        mia.add("Deaf", type="t", max_attempts=9, retry=RetryPolicy(strategy="immediate"))
        worker = Worker(url, "shop", concurrency=4, lease=3600.0)
        other = Worker(url, "shop", agent="other", lease=3600.0)
        begun, let_go, free = threading.Event(), threading.Event(), threading.Event()
        here, most, lock = 0, 0, threading.Lock()

        @worker.task("t")
        def work(ctx: Context) -> str:
            nonlocal here, most
            with lock:
                here += 1
                most = max(most, here)
            begun.set()
            assert let_go.wait(PATIENCE)
            with lock:
                here -= 1
            return "late"

        @other.task("t")
        def elsewhere(ctx: Context) -> str:
            assert free.wait(PATIENCE)
            return "elsewhere"

        with running(worker):
            assert begun.wait(PATIENCE)
            mia.pause("A-001")
            mia.resume("A-001")  # ready: the worker has three free slots
            with running(other):
                until(mia, lambda: mia.show("A-001").get("agent") == "other")
                free.set()
                until(mia, lambda: mia.show("A-001")["state"] == "completed")
            assert mia.show("A-001")["result"]["data"] == "elsewhere"
            let_go.set()
        assert most == 1


def test_a_claim_granted_for_a_running_function_continues_it(tmp_path: Path) -> None:
    """The claim expired unnoticed, and the worker was granted its task once more: the same function goes on."""
    store = str(tmp_path / "store.db")
    with Client(store, "shop", create=True) as mia:
        mia.init()
        mia.add("Work", type="t")
        worker = Worker(store, "shop", concurrency=2, lease=3600.0)
        begun, let_go, calls = threading.Event(), threading.Event(), []

        @worker.task("t")
        def work(ctx: Context) -> int:
            calls.append(ctx.generation)
            begun.set()
            assert let_go.wait(PATIENCE)
            until(mia, lambda: ctx.generation == 2)  # the worker may learn of its grant a moment later
            return ctx.generation

        with running(worker):
            assert begun.wait(PATIENCE)
            mia.recover("A-001", "its receipt was lost")
            until(mia, lambda: mia.show("A-001")["generation"] == 2)
            let_go.set()
            until(mia, lambda: mia.show("A-001")["state"] == "completed")
        assert (calls, mia.show("A-001")["result"]["data"]) == ([1], 2)


def test_versions_are_read_in_one_query_and_at_most_twice_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "store.db")
    reads: list[tuple[float, int]] = []
    states = Client.states

    def counted(self: Client, tasks: Any) -> Any:
        reads.append((time.monotonic(), len(tuple(tasks))))
        return states(self, tasks)

    with Client(store, "shop", create=True) as mia:
        mia.init()
        for n in range(3):
            mia.add(f"T{n}", type="t")
        worker = Worker(store, "shop", concurrency=3, lease=3600.0)
        let_go = threading.Event()
        worker.task("t")(lambda ctx: let_go.wait(PATIENCE))
        monkeypatch.setattr(Client, "states", counted)
        with running(worker):
            while len(reads) < 5:  # each event wakes the watcher
                mia.note("A-001", "busy")
            let_go.set()
    assert reads[-1][1] == 3
    between = [later[0] - before[0] for before, later in pairwise(reads)]
    assert min(between) >= watcher.EVERY * 0.9

"""What an open tab of the dashboard costs the server, in milliseconds of CPU a second, at 100,000 tasks.

The tab is a real one, in Chromium without a window. The server's CPU is read from /proc, without a tab and with it, in
turns: while nothing happens, and while an agent beside the server claims, reports and completes tasks. The cost of a
tab is the median of the differences.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.report import Figure, show
from tenure.client import Client
from tenure.core.commands import NewTask
from tests.servers.browser import browsing
from tests.servers.tenure import TenureServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROJECT = "large"
BATCH = 1000
AGENTS = 20
PAGES = {"overview": "", "tasks": "/tasks", "board": "/tasks?view=board", "for a person": "/todo"}
GOAL = "< 5"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench dashboard", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="each without the tab and with it")
    parser.add_argument("--a-second", type=float, default=2.0, help="tasks that the agent completes")
    parser.add_argument("--page", action="append", choices=PAGES, help="only this page")
    given = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="tenure-bench-") as folder:
        store = str(Path(folder) / "tenure.db")
        fill(store, given.tasks)
        show(list(measured(store, given)), as_json=given.json)
    return 0


def fill(store: str, tasks: int) -> None:
    with Client(store, PROJECT, agent="filler", session="filler", create=True) as client:
        client.init()
        for start in range(0, tasks, BATCH):
            client.add_many(
                [
                    NewTask(title=f"Task {n}", track="ABCDEFG"[n % 7], tags=("bench",), description="Do what it says.")
                    for n in range(start, min(start + BATCH, tasks))
                ]
            )
        for n in range(AGENTS):
            with Client(store, PROJECT, agent=f"agent-{n}", session=f"s-{n}") as agent:
                agent.register()
                agent.claim(lease=3600)


def measured(store: str, given: argparse.Namespace) -> Iterator[Figure]:
    with TenureServer(store) as server, browsing() as browser:
        for work in (0.0, given.a_second):
            load = "idle" if not work else f"{work:g} tasks/s"
            with working(store, work):
                for name in given.page or PAGES:
                    rounds = [turn(server, browser, name, given.seconds) for _ in range(given.rounds)]
                    yield Figure(f"server, {load}", median(alone for alone, _ in rounds), "ms/s")
                    own = median(both - alone for alone, both in rounds)
                    yield Figure(f"one tab on {name}, {load}", own, "ms/s", goal=GOAL)


def turn(server: TenureServer, browser: Browser, name: str, seconds: float) -> tuple[float, float]:
    """Milliseconds of the server's CPU a second: alone, and with a tab."""
    alone = spent(server, lambda: time.sleep(seconds))
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(f"{server.url}/projects/{PROJECT}{PAGES[name]}")
    page.locator("h1").first.wait_for()
    page.wait_for_timeout(3000)  # the first requests are not what an open tab costs
    both = spent(server, lambda: page.wait_for_timeout(seconds * 1000))
    context.close()
    return alone, both


def spent(server: TenureServer, wait: Callable[[], object]) -> float:
    before, began = cpu(server.process.pid), time.monotonic()
    wait()
    return (cpu(server.process.pid) - before) / (time.monotonic() - began)


def cpu(pid: int) -> float:
    """Milliseconds of CPU that the threads of a process have used."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text("ascii").split()[0]) for one in threads) / 1e6


@contextmanager
def working(store: str, a_second: float) -> Iterator[None]:
    """An agent beside the server: each task is claimed, reported on and completed."""
    over = threading.Event()

    def work() -> None:
        with Client(store, PROJECT, agent="worker", session="worker") as client:
            while not over.wait(1 / a_second):
                receipt = str(client.claim(lease=60).receipt)
                client.progress(receipt, 50, "half of it")
                client.submit(receipt, {"done": True}, "done")

    thread = threading.Thread(target=work, daemon=True)
    if a_second:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if a_second:
            thread.join()

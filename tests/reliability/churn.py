"""Tasks are made, claimed and completed without a break on PostgreSQL: the pace must hold, and the tables stay small.

The pace is counted in windows of some seconds. There is a downward trend when the mean of the last third of them lies
under 0.8 of that of the first third; the very first, in which nothing is archived yet, does not count. (Not the median:
sweeps come in bursts, so that windows are fast or slow.) What a task costs in CPU time, here and in the server, stands
beside it: where the pace falls and the cost does not, others were using the machine.

Meanwhile sweeps move tasks that have been over for some seconds into the archive. So all tables but the archive are
bounded: in the last third of the windows they are at most 1.3 times as large as in the middle third.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from pathlib import Path
from typing import NamedTuple

import psycopg

from tenure import Client
from tenure.core import commands
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.records import Task
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.servers.postgres import PostgresServer
from tests.servers.replication import children

PROJECT = "churn"
BATCH = 50
LEAST = 0.8
LARGEST = 1.3
ARCHIVE = "archived"
TICKS = os.sysconf("SC_CLK_TCK")
SIZES = """
SELECT relname, pg_table_size(c.oid), pg_indexes_size(c.oid) FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE nspname = 'churn' AND relkind IN ('r', 'p') ORDER BY pg_total_relation_size(c.oid) DESC
"""
MEGABYTE = 1 << 20
MOST = 10_000_000  # tasks that are counted


class Window(NamedTuple):
    tasks: float  # completed a second
    cost: float  # seconds of CPU for each
    live: int  # tasks that are not in the archive
    sizes: dict[str, tuple[int, int]]  # table → bytes of rows, of indexes

    @property
    def hot(self) -> int:
        """Bytes of everything but the archive."""
        return sum(rows + indexes for name, (rows, indexes) in self.sizes.items() if name != ARCHIVE)

    @property
    def cold(self) -> int:
        return sum(self.sizes.get(ARCHIVE, (0, 0)))


class Churn:
    def __init__(self, client: Client, server: PostgresServer) -> None:
        self.client, self.server = client, server
        self.done = 0
        self.count = threading.Lock()
        self.ended = threading.Event()
        self.wrong: list[str] = []

    def work(self, name: str) -> None:
        """Make a batch, take as many, hand them in; again and again."""
        who = {"project": PROJECT, "agent": name, "session": name}
        task = commands.NewTask(title="round and round")
        try:
            while not self.ended.is_set():
                self.told([commands.Add(project=PROJECT, task=task)] * BATCH, "CREATED")
                granted = self.told([commands.ClaimNext(**who)] * BATCH, "GRANTED")
                submits = [
                    commands.Submit(project=PROJECT, receipt=str(one.receipt), data={"by": name}) for one in granted
                ]
                self.told(submits, "ACCEPTED")
                with self.count:
                    self.done += BATCH
        except Exception as error:  # noqa: BLE001  # told at the end
            self.wrong.append(f"{name}: {type(error).__name__}: {error}")

    def tidy(self) -> None:
        """What a server does all the time."""
        try:
            while not self.ended.wait(1.0):
                report = self.client.engine.sweep(PROJECT)
                self.wrong += [f"sweep: {text}" for text in report.failed.values()]
        except Exception as error:  # noqa: BLE001  # as above
            self.wrong.append(f"sweep: {type(error).__name__}: {error}")

    def told(self, batch: list[commands.Command], wanted: str) -> list[Outcome]:
        answers = self.client.batch(batch)
        for answer in answers:
            if isinstance(answer, TenureError):
                raise answer
            if answer.outcome != wanted:
                raise AssertionError(f"{answer.outcome} where {wanted} was due: {answer.message}")
        return answers  # type: ignore[return-value]  # outcomes, all of them

    def window(self, seconds: float) -> Window:
        done, cpu, began = self.done, self.cpu(), time.monotonic()
        self.ended.wait(seconds)
        done, cpu = self.done - done, self.cpu() - cpu
        with psycopg.connect(self.server.url, autocommit=True) as link:
            sizes = {name: (rows, indexes) for name, rows, indexes in link.execute(SIZES)}
        pace = done / (time.monotonic() - began)
        with self.client.store.begin("local", write=False) as tx:
            live = tx.tally(Task, {"project": PROJECT}, MOST)
        return Window(pace, cpu / max(1, done), live, sizes)

    def cpu(self) -> float:
        """Seconds that this process and the server's have used, those that have ended included."""
        assert self.server.process is not None
        ticks = 0
        for pid in (self.server.process.pid, *children(self.server.process.pid)):
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # ended just now: its parent has counted it
            ticks += sum(int(field) for field in fields[11:15])
        return time.process_time() + ticks / TICKS


def shown(number: int, window: Window) -> str:
    largest = [(name, pair) for name, pair in window.sizes.items() if name != ARCHIVE][:3]
    sizes = ", ".join(f"{name} {rows / MEGABYTE:.1f}+{indexes / MEGABYTE:.1f}" for name, (rows, indexes) in largest)
    return (
        f"{number:>3}  {window.tasks:>7.0f} tasks/s  {window.cost * 1e3:>6.3f} ms of CPU each  "
        f"{window.live:>7} live  {window.hot / MEGABYTE:>7.1f} MB ({sizes}), archive {window.cold / MEGABYTE:.1f}"
    )


def trend(windows: list[Window]) -> float:
    """The last third's median beside the first third's; 1 is steady."""
    counted = windows[1:] if len(windows) > 3 else windows
    third = max(1, len(counted) // 3)
    first, last = counted[:third], counted[-third:]
    return statistics.mean(w.tasks for w in last) / statistics.mean(w.tasks for w in first)


def growth(windows: list[Window]) -> float:
    """All tables but the archive, in the last third beside the middle one; 1 is bounded."""
    third = max(1, len(windows) // 3)
    middle, last = windows[-2 * third : -third] or windows, windows[-third:]
    return statistics.median(w.hot for w in last) / statistics.median(w.hot for w in middle)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="churn", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--window", type=float, default=15.0, help="seconds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--archive-after", type=int, default=10, help="seconds that a finished task stays where it is")
    wanted = parser.parse_args(argv)
    end_when_told()
    windows: list[Window] = []
    with PostgresServer.measured() as server:
        url = f"{server.url}?schema=churn"
        with Client(url, PROJECT, create=True) as client:
            client.init(limits={"archive_after": wanted.archive_after})
            churn = Churn(client, server)
            threads = [threading.Thread(target=churn.work, args=(f"w{n}",)) for n in range(wanted.threads)]
            threads.append(threading.Thread(target=churn.tidy))
            for thread in threads:
                thread.start()
            try:
                for number in range(max(1, round(wanted.minutes * 60 / wanted.window))):
                    windows.append(churn.window(wanted.window))
                    print(shown(number + 1, windows[-1]), flush=True)
                    if churn.wrong:
                        break
            finally:
                churn.ended.set()
                for thread in threads:
                    thread.join()
            wrong = [*churn.wrong, *client.store.check()]
    steady = trend(windows)
    if steady < LEAST:
        wrong.append(f"the pace fell: the last third of the windows is at {steady:.2f} of the first")
    grown = growth(windows)
    if grown > LARGEST:
        wrong.append(f"the tables grew: in the last third of the windows they have {grown:.2f} times the middle's size")
    for text in wrong:
        print(f"wrong: {text}")
    numbers: dict[str, results.Figure] = {
        "tasks": churn.done, "tasks_per_second": round(statistics.mean(w.tasks for w in windows)),
        "last_third_of_first": round(steady, 2), "megabytes": round(windows[-1].hot / MEGABYTE),
        "tables_grew": round(grown, 2), "archive_megabytes": round(windows[-1].cold / MEGABYTE), "wrong": len(wrong),
    }  # fmt: skip
    results.tell("churn", numbers)
    return 1 if wrong else 0

"""A PostgreSQL store with very many tasks: lists, histories, verify and the archive in bounded time.

All tasks are made, claimed and completed by the engine, in batches. Some are held, some are long over. Then each look
is taken some times: a page of fifty by state, holder, session, tag and dag, a history, a log, a session, a claim. A
page must come within 50 ms (median), a claim within 10. Three looks have other bounds: the tasks that changed last are
found by the end of the log, a tag that few have is searched in all tasks, and a session tells of the whole project's
progress, whose counts a server would keep. Verify and replay read everything; what they take for a task must not grow
with their number, so a small store is verified beside it. The archive takes the oldest of all.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask
from tenure.core.errors import TenureError
from tenure.engine import Engine
from tenure.engine.archive import mover
from tenure.engine.reads.query_table import read_query
from tenure.stores.postgres import Postgres, planner_statistics
from tenure.testing.clock import FakeClock
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.servers.postgres import PostgresServer

PROJECT = "large"
BATCH = 500  # tasks of one transaction
PAGE = 50
TAGS, OWNERS, SMALL = 50, 20, 10_000
LIST_MS, CLAIM_MS = 50.0, 10.0
NEWEST_MS = 150.0  # up to 4,000 events are read, however many tasks there are
COUNTED_US = 0.7  # for each task, where all are counted or searched
GROWTH = 2.0  # of what verify takes for a task: the rows of a small store fit in its cache
HOUR = 3600.0
LIMITS = {"archive_after": 30 * 86400}


class Large:
    def __init__(self, server: PostgresServer, name: str, tasks: int) -> None:
        self.clock = FakeClock()
        self.store = Postgres(f"{server.url}?schema={name}", clock=self.clock)
        self.engine = Engine(self.store, SystemRandom())
        self.tasks, self.made = tasks, 0
        self.wrong: list[str] = []
        self.engine.do(c.DefineProject(project=PROJECT, limits=LIMITS))

    def fill(self, finished: int, old: int) -> None:
        """`finished` are completed, `old` of them long ago; OWNERS hold fifty each; the others are ready."""
        self.add(old + BATCH)
        self.complete(old)
        self.clock.advance(seconds=2 * HOUR)
        self.add(self.tasks - self.made - 2 * PAGE)
        self.complete(finished - old)
        steps = tuple(NewTask(title=f"step {n}", name=f"step-{n}", tags=("rare",)) for n in range(2 * PAGE))
        made = self.run([c.Plan(project=PROJECT, tasks=steps, title="the one that is listed")])
        self.dag = str(made[0].tasks[0]["dag"])
        for owner in range(OWNERS):
            self.run([self.next(f"owner-{owner}", n=PAGE)])
        self.server_side()

    def add(self, count: int) -> None:
        for start in range(0, count, BATCH):
            some = tuple(
                NewTask(title="one of many", tags=(f"tag-{n % TAGS}",)) for n in range(start, min(count, start + BATCH))
            )
            self.run([c.AddMany(project=PROJECT, tasks=some)])
        self.made += count

    def complete(self, count: int) -> None:
        for start in range(0, count, BATCH):
            many = min(BATCH, count - start)
            asked = [self.next(f"agent-{n}", n=PAGE) for n in range(-(-many // PAGE))]
            grants = [grant for answer in self.run(asked) for grant in answer.claims or (answer,)][:many]
            self.run([c.Submit(project=PROJECT, receipt=str(one.receipt), data={"n": start}) for one in grants])
            self.clock.advance(seconds=0.01)

    def next(self, agent: str, n: int = 1) -> c.ClaimNext:
        return c.ClaimNext(project=PROJECT, agent=agent, session=f"s-{agent}", n=n, lease=12 * HOUR)

    def run(self, batch: list[Any]) -> list[Any]:
        answers: list[Any] = self.engine.run(batch)
        for answer in answers:
            if isinstance(answer, TenureError):
                raise answer
            if answer.outcome not in ("CREATED", "GRANTED", "ACCEPTED"):
                raise AssertionError(f"{answer.outcome}: {answer.message}")
        return answers

    def server_side(self) -> None:
        """What autovacuum does by and by."""
        link = self.store.connections.take()
        try:
            schema = self.store.queries.dialect.schema
            for table in ("task_base", "task_hot", "brief", *planner_statistics.PLACES, "event"):
                link.script(f"VACUUM (ANALYZE) {schema}{table}", 600)
        finally:
            self.store.connections.give(link)

    def looks(self) -> Iterator[tuple[str, float, Callable[[], Any]]]:
        """Name, bound in milliseconds, look."""

        def tasks(**filters: Any) -> Callable[[], Any]:
            return lambda: read_query(self.engine, q.Tasks(project=PROJECT, limit=PAGE, **filters))

        one = tasks(state=("completed",))()[0]["key"]
        all_read = LIST_MS + self.tasks * COUNTED_US / 1000
        for state in ("ready", "completed", "claimed"):
            yield f"list_{state}", LIST_MS, tasks(state=(state,))
        yield "list_newest", NEWEST_MS, tasks(order="-updated_at", state=("completed", "ready"))
        yield "list_agent", LIST_MS, tasks(agent=("owner-3",))
        yield "list_session", LIST_MS, tasks(session="s-owner-4")
        yield "list_tag", LIST_MS, tasks(tag=("tag-7",))
        yield "list_rare_tag", all_read, tasks(tag=("rare",))
        yield "list_dag", LIST_MS, tasks(dag=self.dag)
        yield "history", LIST_MS, lambda: read_query(self.engine, q.History(project=PROJECT, task=one))
        yield "log_of_task", LIST_MS, lambda: read_query(self.engine, q.TaskLog(project=PROJECT, task=one))
        yield "log_page", LIST_MS, lambda: read_query(self.engine, q.Log(project=PROJECT, after=5, last=False))
        yield "session", all_read, lambda: read_query(self.engine, q.ShowSession(project=PROJECT, session="s-owner-5"))
        yield "claim", CLAIM_MS, lambda: self.run([self.next("single")])

    def look(self, turns: int) -> dict[str, float]:
        found = {}
        for name, bound, look in self.looks():
            spent = []
            for _ in range(turns + 1):
                began = time.perf_counter()
                if not look():
                    self.wrong.append(f"{name}: nothing was found")
                spent.append((time.perf_counter() - began) * 1000)
            found[name] = statistics.median(spent[1:])
            if found[name] > bound:
                self.wrong.append(f"{name} took {found[name]:.1f} ms of {bound:g}")
        return found

    def verify(self) -> tuple[float, float]:
        """Seconds of verify with replay, and of the store's own check."""
        began = time.monotonic()
        self.wrong += self.engine.verify()
        verified = time.monotonic() - began
        self.wrong += self.store.check()
        return verified, time.monotonic() - began - verified

    def archive(self, old: int) -> float:
        """Tasks a second, of those that are old among all the others."""
        began = time.monotonic()
        moved = mover.move_all(self.engine, PROJECT, older=int(HOUR * 1_000_000))
        if (moved.tasks, moved.failed) != (old, {}):
            self.wrong.append(f"{moved.tasks} tasks of {old} were archived: {list(moved.failed.items())[:3]}")
        return moved.tasks / (time.monotonic() - began)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="large", description=__doc__)
    parser.add_argument("--tasks", type=int, default=300_000)
    parser.add_argument("--old", type=int, default=5_000, help="completed tasks that are archived")
    parser.add_argument("--turns", type=int, default=15)
    wanted = parser.parse_args(argv)
    end_when_told()
    with PostgresServer.measured(Path("/tmp")) as server:
        small, large = Large(server, "small", SMALL), Large(server, "large", wanted.tasks)
        began = time.monotonic()
        small.fill(SMALL // 2, SMALL // 10)
        large.fill(wanted.tasks // 2, wanted.old)
        filled = time.monotonic() - began
        print(f"{SMALL + wanted.tasks} tasks in {filled:.0f} s", flush=True)
        beside, looks = small.look(wanted.turns), large.look(wanted.turns)
        (few, _), (many, checked) = small.verify(), large.verify()
        print(f"verified in {few:.0f} and {many:.0f} s", flush=True)
        growth = many / wanted.tasks / (few / SMALL)
        if growth > GROWTH:
            large.wrong.append(f"verify takes {growth:.2f} times as long for a task as in a small store")
        few_moved, moved = small.archive(SMALL // 10), large.archive(wanted.old)
        wrong = [*small.wrong, *large.wrong, *large.store.check()]
        for one in (small, large):
            one.store.close()
    figures: dict[str, results.Figure] = {"tasks": wanted.tasks, "fill_s": round(filled)}
    figures |= {f"{name}_ms": round(ms, 1) for name, ms in looks.items()}
    figures |= {f"{name}_of_{SMALL}_ms": round(ms, 1) for name, ms in beside.items()}
    figures |= {
        "verify_s": round(many, 1), "check_s": round(checked, 1), "verify_growth": round(growth, 2),
        "archived_per_s": round(moved), f"archived_per_s_of_{SMALL}": round(few_moved),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "wrong": len(wrong),
    }  # fmt: skip
    results.tell("large", figures)
    for line in wrong[:20]:
        print(line)
    return 1 if wrong else 0

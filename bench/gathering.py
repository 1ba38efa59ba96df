"""Single claims and submits of many threads and of asyncio tasks on durable SQLite, gathered and each alone."""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.ground import PROJECT, WrongAnswer, add, check, claim_next, open_engine, submit, sync_cost
from bench.report import Figure, rate, show
from tenure.core import commands
from tenure.core.records import Result
from tenure.engine import Context, Engine
from tenure.engine.runtime.batcher import Batcher

Do = Callable[[commands.Command], Any]


class Board:
    """One store on which every side claims and submits; counts the batches of the batcher."""

    def __init__(self, folder: Path) -> None:
        self.engine = open_engine(folder / "gathering.db")
        self.engine.do(commands.DefineProject(project=PROJECT))
        self.done: list[str] = []
        self.sizes: list[int] = []

    def round(self, threads: int, each: int, gathered: bool) -> tuple[float, float]:
        """Seconds a claim and seconds a submit, all threads together."""
        add(self.engine, threads * each)
        if not gathered:
            return self._phases(threads, each, self.engine.do)
        with self._batcher() as batcher:
            return self._phases(threads, each, batcher.do)

    def _phases(self, threads: int, each: int, do: Do) -> tuple[float, float]:
        grants, claiming = together(threads, lambda n: [do(claim_next(n)) for _ in range(each)])
        self._keep(grants)
        accepted, submitting = together(threads, lambda n: [do(submit(g.receipt)) for g in grants[n]])
        check([outcome for some in accepted for outcome in some], "ACCEPTED")
        return claiming / (threads * each), submitting / (threads * each)

    def loop_round(self, tasks: int) -> tuple[float, float]:
        """The same from as many asyncio tasks, each of which claims and submits one."""
        add(self.engine, tasks)

        async def play(batcher: Batcher) -> tuple[float, float]:
            began = time.perf_counter()
            grants = await asyncio.gather(*(batcher.ado(claim_next(n)) for n in range(tasks)))
            claimed = time.perf_counter()
            accepted = await asyncio.gather(*(batcher.ado(submit(g.receipt or "")) for g in grants))
            ended = time.perf_counter()
            self._keep([list(grants)])
            check(list(accepted), "ACCEPTED")
            return (claimed - began) / tasks, (ended - claimed) / tasks

        with self._batcher() as batcher:
            return asyncio.run(play(batcher))

    def _batcher(self) -> Batcher:
        sizes = self.sizes

        class Counting(Engine):
            def commit_checked(self, batch: Any, callers: Any) -> Any:
                sizes.append(len(batch))
                return super().commit_checked(batch, callers)

        return Batcher(Counting(self.engine.store, self.engine.random, Context(pause=time.sleep)))

    def _keep(self, grants: list[list[Any]]) -> None:
        check([grant for some in grants for grant in some], "GRANTED")
        self.done += [grant.task["id"] for some in grants for grant in some]

    def verify(self) -> None:
        with self.engine.store.begin("local", write=False) as tx:
            results = {r.task for r in tx.find(Result, {"project": PROJECT, "accepted": True})}
        self.engine.store.close()
        if len(set(self.done)) != len(self.done) or results != set(self.done):
            raise WrongAnswer(f"{len(self.done)} claims, {len(set(self.done))} tasks, {len(results)} results")


def together(threads: int, action: Callable[[int], Any]) -> tuple[list[Any], float]:
    """What each thread got, and the seconds from their common start to the last one's end."""
    got: list[Any] = [None] * threads
    start = threading.Barrier(threads + 1)

    def run(number: int) -> None:
        start.wait()
        try:
            got[number] = action(number)
        except Exception as error:  # noqa: BLE001 - the main thread raises it
            got[number] = error

    workers = [threading.Thread(target=run, args=(n,)) for n in range(threads)]
    for worker in workers:
        worker.start()
    start.wait()
    began = time.perf_counter()
    for worker in workers:
        worker.join()
    seconds = time.perf_counter() - began
    for error in got:
        if isinstance(error, Exception):
            raise WrongAnswer(f"a thread failed: {error!r}") from error
    return got, seconds


def measure(folder: Path, threads: int, each: int, rounds: int, tasks: int) -> list[Figure]:
    board = Board(folder)
    for gathered in (False, True):  # agents become known, statements are prepared
        board.round(threads, 2, gathered)
    figures = []
    gc.collect()
    syncs = [sync_cost(folder)]
    for crowd, count in ((threads, each), (1, threads * each // 4)):
        board.sizes.clear()
        costs: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        for number in range(rounds):
            for gathered in (True, False) if number % 2 else (False, True):
                costs[gathered].append(board.round(crowd, count, gathered))
            syncs.append(sync_cost(folder))
        who = f"{crowd} threads" if crowd > 1 else "1 thread"
        for verb, place in (("claims", 0), ("submits", 1)):
            ours, alone = ([cost[place] for cost in costs[side]] for side in (True, False))
            figures.append(rate(f"{verb}, {who}, gathered", ours, alone))
        if crowd > 1:
            figures.append(Figure(f"commands a batch, {who}", statistics.mean(board.sizes), ""))
    board.sizes.clear()
    looped = [board.loop_round(tasks) for _ in range(rounds)]
    for verb, place in (("claims", 0), ("submits", 1)):
        seconds = statistics.median(cost[place] for cost in looped)
        figures.append(Figure(f"{verb}, {tasks} asyncio tasks, gathered", 1 / seconds, "1/s"))
    figures.append(Figure(f"commands a batch, {tasks} asyncio tasks", statistics.mean(board.sizes), ""))
    board.verify()
    return [Figure("fdatasync", statistics.median(syncs) * 1e6, "µs"), *figures]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench gathering", description=__doc__)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--each", type=int, default=20, help="claims, then submits, of each thread a round")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each side")
    parser.add_argument("--tasks", type=int, default=1000, help="of the event loop")
    parser.add_argument("--folder", type=Path, help="where the file goes; a temporary folder unless given")
    parser.add_argument("--json", action="store_true", help="one object a line")
    given = parser.parse_args(argv)
    if min(given.threads, given.each, given.rounds, given.tasks) < 1 or given.threads * given.each < 4:
        parser.error("threads, each, rounds and tasks are at least 1, and threads times each at least 4")
    with tempfile.TemporaryDirectory(prefix="tenure-bench-", dir=given.folder) as name:
        figures = measure(Path(name), given.threads, given.each, given.rounds, given.tasks)
    show(figures, as_json=given.json)
    return 0

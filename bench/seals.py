"""`./x bench seals [PART …]`: events sealed and verified a second, and what a sealer costs those that claim.

sqlite, postgres: a log of real tasks is sealed, then verified. claims-sqlite, claims-postgres: cycles of claim and
submit beside a process that leads and seals, and one that only leads, by turns: it is one process, switched on and off.
Processor time is that of the claiming process and of its backends, not of the sealer and its own, for batches of one
size, since a cycle costs less in a larger one; latencies are those of an open loop, as fast. The sealer must keep up:
the run stops at a turn where it does not.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bench.ground import check
from bench.postgres.costs import on_processor
from bench.relay.beside import LEADS, LEASE, Switch
from bench.relay.end_to_end import PROJECT, worked
from bench.report import Figure, ratio_of, show
from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.outcomes import Outcome
from tenure.engine import Context, Engine
from tenure.engine.audit import sealer
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.duties.election import DUTIES
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.batcher import Batcher
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.stores.open_store import open_store
from tests.reliability.storm import in_child

PARTS = ("sqlite", "postgres", "claims-sqlite", "claims-postgres")
CREW = 1000  # agents
SEALER = "sealer"  # the name of its connections
BATCH = 50
PAUSE = 0.0005  # between two looks at the clock


@contextmanager
def placed(kind: str) -> Iterator[str]:
    """The URL of an audited project's store, durable, on a real disk."""
    with ExitStack() as stack:
        if kind == "sqlite":
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tenure-bench-", dir="/tmp"))
            url = f"sqlite://{folder}/tenure.db"
        else:
            from tests.servers.postgres import PostgresServer

            url = stack.enter_context(PostgresServer.measured()).create("seals")
        engine = opened(url)
        engine.do(c.DefineProject(project=PROJECT))
        engine.do(c.AuditOn(project=PROJECT))
        engine.store.close()
        yield url


def opened(url: str) -> Engine:
    return Engine(open_store(url), SystemRandom(), Context(pause=time.sleep))


def sealed(kind: str, events: int, rounds: int) -> list[Figure]:
    rates, costs, verified = [], [], []
    with placed(kind) as url, closing(opened(url).store) as kept:
        engine = Engine(kept, SystemRandom(), Context(pause=time.sleep))
        for round_ in range(rounds + 1):
            worked(engine, events // 3)
            began, used = time.perf_counter(), time.process_time()
            count = sealer.seal_all(engine, PROJECT)
            took, cost = time.perf_counter() - began, time.process_time() - used
            began = time.perf_counter()
            report = read_query(engine, q.VerifyAudit(project=PROJECT))
            if report["findings"] or report["unsealed"]:
                raise SystemExit(f"{kind}: {report['findings'][:1]}")
            if round_:
                rates.append(count / took)
                costs.append(cost / count * 1e6)
                verified.append(report["sealed"] / (time.perf_counter() - began))
    return [
        Figure(f"{kind}: events sealed a second", statistics.median(rates), "1/s", goal="≥ 20000"),
        Figure(f"{kind}: processor time of sealing an event", statistics.median(costs), "µs", goal="≤ 50"),
        Figure(f"{kind}: events verified a second", statistics.median(verified), "1/s"),
    ]


# --- beside claims --------------------------------------------------------------------------------------------


class Turn(NamedTuple):
    spent: float  # processor seconds of a cycle
    claims: list[float]  # seconds that each took, from the moment at which it was to come


def lead_apart(url: str, switch: Switch, leads: Path) -> None:
    """Leads until it is killed, and seals as every leader does while it is switched on."""

    def find(engine: Engine, now: int) -> list[str]:
        return sealer.projects_to_seal(engine, now) if switch else []

    parent, engine = os.getppid(), opened(url)
    duties = {**DUTIES, "seal": DUTIES["seal"]._replace(find=find)}
    coordinator = Coordinator(engine, f"beside-{os.getpid()}", time.monotonic, lease=LEASE, duties=duties)
    while coordinator.term is None:
        time.sleep(min(0.05, coordinator.step()))
    coordinator.start()
    leads.touch()
    while os.getppid() == parent:
        time.sleep(0.5)


@contextmanager
def another(url: str, switch: Switch) -> Iterator[None]:
    """Forked while no store is open here."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        leads = Path(folder, LEADS)
        named = f"{url}?application_name={SEALER}" if url.startswith("postgres") else url
        pid = in_child(lambda: lead_apart(named, switch, leads))
        try:
            wait_until(leads.exists, "nobody leads")
            yield
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def wait_until(is_so: Callable[[], bool], otherwise: str, patience: float = 60.0) -> None:
    until = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > until:
            raise SystemExit(f"claims: {otherwise}")
        time.sleep(0.05)


def behind(engine: Engine) -> int:
    """How many events no seal covers."""

    def ask(work: UnitOfWork) -> int:
        seal = sealer.last_seal(work, PROJECT)
        return sealer.unsealed(work, PROJECT, 0 if seal is None else seal.last)

    return engine.read_settled((), ask)


def in_batches(engine: Engine, spent: Callable[[], float], rate: float, count: int) -> float:
    """Processor seconds of a cycle, where each batch begins at its time."""
    asked = [c.ClaimNext(project=PROJECT, agent=f"c{n}", session=f"c{n}") for n in range(BATCH)]
    gc.collect()
    began, used = time.perf_counter(), spent()
    for start in range(0, count, BATCH):
        time.sleep(max(0.0, began + start / rate - time.perf_counter()))
        granted = engine.run(asked)
        check(granted, "GRANTED")
        done = [c.Submit(project=PROJECT, receipt=one.receipt, data={"ok": True}) for one in granted]  # type: ignore[union-attr]
        check(engine.run(done), "ACCEPTED")
    return (spent() - used) / count


def open_loop(engine: Engine, rate: float, count: int, seed: int) -> list[float]:
    """Claims that come at times that were fixed before, whether or not earlier ones are answered; each is submitted."""
    chance = random.Random(seed)
    at, times = 0.0, []
    for _ in range(count):
        at += chance.expovariate(rate)
        times.append(at)
    took, left = [0.0] * count, threading.Semaphore(0)
    faults: list[Any] = []

    def submitted(future: Future[Outcome]) -> None:
        error = future.exception() or (None if future.result().outcome == "ACCEPTED" else future.result())
        faults.extend([error] if error is not None else [])
        left.release()

    def claimed(future: Future[Outcome], number: int) -> None:
        took[number] = time.perf_counter() - began - times[number]
        granted = None if future.exception() else future.result()
        if granted is None or granted.receipt is None:
            faults.append(future.exception() or granted)
            left.release()
            return
        done = c.Submit(project=PROJECT, receipt=granted.receipt, data={"ok": True})
        batcher.submit(done, caller=number).add_done_callback(submitted)

    gc.collect()
    gc.freeze()
    with Batcher(engine) as batcher:
        began = time.perf_counter() + 0.05
        for number in range(count):
            while (due := times[number] - (time.perf_counter() - began)) > 0:
                time.sleep(max(due, PAUSE))
            name = f"c{number % CREW}"
            asked = c.ClaimNext(project=PROJECT, agent=name, session=name)
            batcher.submit(asked, caller=number).add_done_callback(partial(claimed, number=number))
        for _ in range(count):
            if not left.acquire(timeout=60):
                raise SystemExit("claims: some were not answered within a minute")
    gc.unfreeze()
    if faults:
        raise SystemExit(f"claims: {faults[0]}")
    return took


def beside(kind: str, rounds: int, rate: float, seconds: float) -> list[Figure]:
    turns: dict[bool, list[Turn]] = {True: [], False: []}
    switch, most = Switch(), 0
    allowed = 1.5 * DUTIES["seal"].every / 1e6 * EVENTS * rate  # what comes in one and a half of its intervals
    with placed(kind) as url, another(url, switch):
        engine = opened(url)
        with processor(kind, url) as spent:
            for round_ in range(rounds + 1):
                for seals in (True, False) if round_ % 2 else (False, True):
                    switch.set(False)
                    count = int(rate * seconds) // BATCH * BATCH
                    added(engine, 2 * count)
                    switch.set(seals)
                    if seals:  # first what came meanwhile
                        wait_until(lambda: behind(engine) < sealer.IN_SEAL, "the sealer does not catch up")
                    used = in_batches(engine, spent, rate, count)
                    turn = Turn(used, open_loop(engine, rate, count, round_))
                    if seals:
                        most = max(most, behind(engine))
                        if most > allowed:
                            raise SystemExit(f"claims: the sealer does not keep up: it is {most} events behind")
                    if round_:
                        turns[seals].append(turn)
        engine.store.close()
    spent_beside, alone = ([turn.spent for turn in turns[side]] for side in (True, False))
    p99 = [percentile([took for turn in turns[side] for took in turn.claims]) * 1e3 for side in (True, False)]
    return [
        Figure(
            f"{kind}: processor time of a cycle beside a sealer", statistics.median(spent_beside) * 1e6, "µs",
            statistics.median(alone) * 1e6, ratio_of(spent_beside, alone), "≤ 1.02",
        ),
        Figure(f"{kind}: p99 of a claim beside a sealer, {rate:.0f} cycles/s", p99[0], "ms", p99[1], p99[0] / p99[1]),
        Figure(f"{kind}: most events that the sealer was behind after a turn", most, "", goal=f"≤ {allowed:.0f}"),
    ]  # fmt: skip


EVENTS = 2  # of a cycle


def added(engine: Engine, tasks: int) -> None:
    for start in range(0, tasks, 250):
        size = min(250, tasks - start)
        check(engine.run([c.Add(project=PROJECT, task=c.NewTask(title="claim it"))] * size), "CREATED")


def percentile(found: list[float]) -> float:
    return sorted(found)[int(len(found) * 0.99)]


@contextmanager
def processor(kind: str, url: str) -> Iterator[Callable[[], float]]:
    """Seconds on a processor, of this process and of the backends of its connections."""
    if kind == "sqlite":
        yield time.process_time
        return
    import psycopg

    text = f"""SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()
        AND pid <> pg_backend_pid() AND application_name <> '{SEALER}'"""
    with psycopg.connect(url, autocommit=True) as link:

        def spent() -> float:
            own = time.process_time()
            return own + sum(on_processor(pid) for (pid,) in link.execute(text.encode()).fetchall()) / 1e9

        yield spent


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench seals", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them, where none is named")
    parser.add_argument("--events", type=int, default=15_000, help="in one round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rate", type=float, default=1000, help="cycles a second beside the sealer")
    parser.add_argument("--seconds", type=float, default=8, help="of either half of a turn")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    figures: list[Figure] = []
    for part in options.parts or PARTS:
        figures += (
            beside(part.removeprefix("claims-"), options.rounds, options.rate, options.seconds)
            if part.startswith("claims-")
            else sealed(part, options.events, options.rounds)
        )
    show(figures, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`./x bench seals [PART …]`: events sealed and verified a second, and what a sealer costs those that claim.

sqlite, postgres: a log of real tasks is sealed, then verified. claims: processor time of a cycle of add, claim and
submit beside a process that leads and seals, and one that only leads, by turns: one process, switched on and off.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.ground import Chance
from bench.relay.beside import LEADS, LEASE, Switch, paced
from bench.relay.end_to_end import PROJECT, engine_of, store, worked
from bench.report import Figure, show
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.records import Seal
from tenure.engine import Context, Engine
from tenure.engine.audit import sealer
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.duties.election import DUTIES, SECOND, Duty
from tenure.engine.reads.query_table import read_query
from tests.reliability.storm import in_child

PARTS = ("sqlite", "postgres", "claims")


@contextmanager
def opened(kind: str) -> Iterator[Engine]:
    if kind == "sqlite":
        with store() as folder:
            engine = engine_of(folder)
            yield engine
            engine.store.close()
        return
    from tenure.stores.postgres import Postgres
    from tests.servers.postgres import PostgresServer

    with PostgresServer() as server:
        engine = Engine(Postgres(server.create("seals")), Chance(), Context(pause=time.sleep))
        engine.do(c.DefineProject(project=PROJECT))
        yield engine
        engine.store.close()


def sealed(kind: str, events: int, rounds: int) -> list[Figure]:
    rates, costs, verified = [], [], []
    with opened(kind) as engine:
        engine.do(c.AuditOn(project=PROJECT))
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


def lead_apart(folder: Path, switch: Switch) -> None:
    """Leads until it is killed, and seals every second while it is switched on."""

    def due(engine: Engine, now: int) -> list[str]:
        return sealer.projects_to_seal(engine, now + sealer.AFTER) if switch else []

    parent, engine = os.getppid(), engine_of(folder)
    duties = {**DUTIES, "seal": Duty(SECOND, due, sealer.seal_project)}
    coordinator = Coordinator(engine, f"beside-{os.getpid()}", time.monotonic, lease=LEASE, duties=duties)
    while coordinator.term is None:
        time.sleep(min(0.05, coordinator.step()))
    coordinator.start()
    (folder / LEADS).touch()
    while os.getppid() == parent:
        time.sleep(0.5)


def beside(rounds: int, cycles: int) -> list[Figure]:
    sides: dict[bool, list[float]] = {True: [], False: []}
    slow: dict[bool, list[float]] = {True: [], False: []}
    switch = Switch()
    with store() as folder:
        engine = engine_of(folder)
        engine.do(c.AuditOn(project=PROJECT))
        engine.store.close()
        pid = in_child(lambda: lead_apart(folder, switch))
        try:
            until = time.monotonic() + 30
            while not (folder / LEADS).exists() and time.monotonic() < until:
                time.sleep(0.05)
            engine = engine_of(folder)
            for round_ in range(rounds + 1):
                for seals in (True, False) if round_ % 2 else (False, True):
                    switch.set(seals)
                    time.sleep(1.5)  # it sees the switch, and seals what came meanwhile
                    used, took = paced(engine, cycles)
                    if round_:
                        sides[seals].append(used)
                        slow[seals] += took
            with engine.store.begin("local", write=False) as tx:
                if len(tx.find(Seal, {"project": PROJECT})) < rounds:
                    raise SystemExit("claims: the process beside has not sealed")
            engine.store.close()
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    ratio = statistics.median(b / a for a, b in zip(sides[False], sides[True], strict=True))
    p99 = {side: sorted(found)[int(len(found) * 0.99)] * 1e3 for side, found in slow.items()}
    return [
        Figure(
            "claims: processor time of a cycle beside a sealer", statistics.median(sides[True]) * 1e6, "µs",
            statistics.median(sides[False]) * 1e6, ratio, "≤ 1.02",
        ),
        Figure("claims: p99 of a claim beside a sealer", p99[True], "ms", p99[False], p99[True] / p99[False]),
    ]  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench seals", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all of them, where none is named")
    parser.add_argument("--events", type=int, default=15_000, help="in one round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    figures: list[Figure] = []
    for part in options.parts or PARTS:
        figures += (
            beside(options.rounds, options.events // 20)
            if part == "claims"
            else sealed(part, options.events, options.rounds)
        )
    show(figures, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

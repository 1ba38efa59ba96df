"""The power of a store's server is cut under load: its files are as they were at their last sync, and nothing is lost.

A preloaded library keeps, beside each file of the server, what a disk is certain to hold: the bytes at the last sync.
The server is killed, started on those, and every task whose creation was acknowledged must be there, once. With
`--weak` the server syncs its commits some time later, and losses must be found: else this would prove nothing.
"""

from __future__ import annotations

import argparse
import itertools
import random
import threading
import time
from collections import Counter
from contextlib import suppress

from tenure.core import commands as c
from tenure.core.errors import NotFound, OutcomeUnknown, StoreError
from tenure.core.records import Brief
from tenure.engine import Context, Engine
from tenure.stores.mariadb import schema
from tenure.stores.open_store import open_store
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.reliability.storm_worker import SystemRandom
from tests.servers.power_cut import KINDS, PowerCuts

WORKERS = 4
BETWEEN = 40  # acknowledged commits between two cuts
PATIENCE = 30.0  # seconds


class Load:
    """Threads that create tasks, each in a project of its own, and note what they were told."""

    def __init__(self, url: str) -> None:
        self.engine = Engine(open_store(url), SystemRandom(), Context(pause=time.sleep))
        self.acknowledged: set[str] = set()
        self.unknown: set[str] = set()
        self.lost_projects = 0
        self.last: StoreError | None = None
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(number,)) for number in range(WORKERS)]
        for number in range(WORKERS):
            self._define(number)

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def _work(self, who: int) -> None:
        for number in itertools.count():
            if self._is_over.is_set():
                return
            name = f"{who}-{number}"
            command = c.Add(project=f"p{who}", task=c.NewTask(title=name), request_id=name)
            try:
                self.engine.do(command)
                self.acknowledged.add(name)
            except OutcomeUnknown:
                self.unknown.add(name)
            except NotFound:
                self.lost_projects += 1
                self._define(who)
            except StoreError as error:
                self.last = error
                time.sleep(0.01)  # nothing was done

    def _define(self, who: int) -> None:
        with suppress(StoreError):
            self.engine.do(c.DefineProject(project=f"p{who}"))

    def wait_for(self, more: int) -> None:
        enough, until = len(self.acknowledged) + more, time.monotonic() + PATIENCE
        while len(self.acknowledged) < enough:
            time.sleep(0.002)
            if time.monotonic() > until:
                raise AssertionError(f"nothing is acknowledged any more: {self.last}")

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(PATIENCE)

    def found(self) -> Counter[str]:
        with self.engine.store.begin("local", write=False) as tx:
            projects = [f"p{number}" for number in range(WORKERS)]
            return Counter(brief.title for name in projects for brief in tx.find(Brief, {"project": name}))


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="power_cuts", description=__doc__)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--store", choices=KINDS, default="valkey")
    parser.add_argument("--weak", action="store_true", help="with settings that the store refuses, or warns of")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    wanted = parser.parse_args(argv)
    end_when_told()
    dice = random.Random(wanted.seed)
    print(f"seed {wanted.seed}", flush=True)
    if wanted.weak:
        schema.unsafe = lambda connection: []  # it would refuse to open
    began = time.monotonic()
    server = PowerCuts(wanted.store, is_weak=wanted.weak)
    try:
        server.start()
        load = Load(server.place("cuts"))
        server.sync()  # the store itself is not what a weak server may lose
        load.begin()
        try:
            for _ in range(wanted.cuts):
                load.wait_for(BETWEEN)
                time.sleep(dice.uniform(0, 0.02))
                server.cut()
            load.wait_for(BETWEEN)
        finally:
            load.end()
        found = load.found()
        faults = [*load.engine.store.check(), *load.engine.verify()]
        load.engine.store.close()
    finally:
        server.stop()
    lost = load.acknowledged - found.keys()
    strange = found.keys() - load.acknowledged - load.unknown
    numbers: dict[str, results.Figure] = {
        "cuts": wanted.cuts,
        "acknowledged": len(load.acknowledged),
        "unknown": len(load.unknown),
        "lost": len(lost) + load.lost_projects,
        "double": sum(number > 1 for number in found.values()),
        "strange": len(strange),
        "other": len(faults),
        "seconds": round(time.monotonic() - began),
    }
    for text in (*sorted(lost)[:5], *sorted(strange)[:5], *faults[:10]):
        print(text)
    results.tell("power_cuts", numbers, variant=f"{wanted.store}-weak" if wanted.weak else wanted.store)
    if wanted.weak:
        return 0 if numbers["lost"] else 1
    return 1 if numbers["lost"] or strange or faults or numbers["double"] else 0

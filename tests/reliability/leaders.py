"""Coordinators that are killed, stopped and let go on: one leads, no tick twice, nothing written by who was deposed.

Every duty writes two events, each with the term and tick that it is for. In the log, where each transaction has its
place, an event must be of the term that was in force there, and no tick may be begun twice, whoever led.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from tenure.core.events import Event
from tenure.core.records import STORE, Leader
from tenure.engine import Engine
from tenure.engine.duties.coordinator import SOONEST, Coordinator, Note
from tenure.engine.duties.election import Duty, LeaderEngine
from tenure.engine.runtime.effects import Report
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.lead import COORDINATOR
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.reliability.storm import MOST_STOPPED, STOPPED_FOR, Storm, ends, make_store
from tests.reliability.storm_worker import LEASE, NAMED, PROJECT, Worker, open_engine
from tests.servers.postgres import PostgresServer

EVERY = 20_000  # microseconds from tick to tick
LEADING = "leading"  # a file with the process that was elected last
RESIGNS = 0.002  # of all cycles


class Candidate(Worker):
    """Stands, leads, and now and then steps down, until it is killed."""

    def __init__(self, folder: Path, slot: int, life: int, seed: str) -> None:
        self.folder = folder
        self.dice = random.Random(f"{seed}/{slot}/{life}")
        # Every second one has a watch that hardly moves, as that of a machine which sleeps: it never stops by itself.
        watch = time.monotonic if slot % 2 else time.process_time
        self.coordinator = Coordinator(
            open_engine(folder), f"c{slot}-{life}", watch, lease=LEASE, looks=SOONEST, tell=self.tell,
            duties={"noting": Duty(EVERY, lambda engine, now: [PROJECT], self.note)},
        )  # fmt: skip

    def tell(self, note: Note) -> None:
        if note.message.startswith("leads with"):
            (self.folder / LEADING).write_text(str(os.getpid()))

    def note(self, engine: Engine, project: str) -> Report:
        assert isinstance(engine, LeaderEngine)
        term = engine.term

        def decide(work: UnitOfWork) -> None:
            leader = work.get(Leader, STORE, COORDINATOR)
            assert leader is not None
            work.record("task.noted", project=project, details={"term": term, "tick": leader.duties_begun["noting"]})

        engine.transact((project,), decide)
        time.sleep(self.dice.random() * 0.02)  # where most of the blows fall: between two writes
        engine.transact((project,), decide)
        return Report()

    def live(self) -> None:
        while True:
            pause = self.coordinator.step()
            if self.dice.random() < RESIGNS:
                self.coordinator.resign()
            time.sleep(min(pause, LEASE / 10) * self.dice.random())


class Upheaval(Storm):
    """Most blows are at whoever leads; every second one only stops it for longer than its lease."""

    def kill(self) -> None:
        if self.dice.random() < 0.5 and len(self.stopped) < MOST_STOPPED:
            self.stop()
        else:
            super().kill()

    def stop(self) -> None:
        pid = self.aim() or self.dice.choice([pid for pid in self.slots if pid not in self.stopped])
        os.kill(pid, signal.SIGSTOP)
        self.stopped[pid] = time.monotonic() + self.dice.uniform(*STOPPED_FOR)
        self.counts["stops"] += 1

    def aim(self) -> int | None:
        """Whoever was elected last."""
        file = self.folder / LEADING
        text = file.read_text() if file.exists() else ""
        pid = int(text) if text.isdecimal() else None
        return pid if pid in self.slots and pid not in self.stopped else None


def findings(events: list[Event]) -> tuple[Counter[str], list[str]]:
    """What the log shows, and what is wrong with it."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    term = longest = 0
    last: int | None = None
    ticks: dict[int, list[int]] = {}  # tick → terms of its events
    for event in events:
        told = event.details
        if event.kind == "leader.elected":
            counts["terms"] += 1
            if told["term"] != term + 1:
                wrong.append(f"term {told['term']} follows {term}")
            term = told["term"]
            longest = max(longest, event.time - (last or event.time))
        elif event.kind == "task.noted":
            counts["writes"] += 1
            if told["term"] != term:
                wrong.append(f"written under term {told['term']}, while {term} ran, at {event.sequence}")
            ticks.setdefault(told["tick"], []).append(told["term"])
        last = event.time
    for tick, terms in ticks.items():
        if len(terms) > 2 or len(set(terms)) > 1:
            wrong.append(f"tick {tick} was run {len(terms)} times, in the terms {sorted(set(terms))}")
    counts["ticks"] = len(ticks)
    counts["cut_short"] = sum(len(terms) == 1 for terms in ticks.values())
    counts["longest_gap_ms"] = longest // 1000
    return counts, wrong


def upheaval(
    folder: Path, kills: int, processes: int, rate: float, seed: int, server: PostgresServer | None
) -> tuple[Counter[str], list[str]]:
    if server is not None:
        (folder / NAMED).write_text(f"{server.url}?schema=leaders")
    make_store(folder)
    raging = Upheaval(folder, processes, seed, Candidate)
    with ends(raging):
        raging.rage(kills, rate)
    engine = open_engine(folder)
    with engine.store.begin("local", write=False) as tx:
        counts, wrong = findings(tx.events({}, limit=10_000_000))
    wrong += engine.verify()
    engine.store.close()
    return counts + raging.counts, wrong + raging.errors


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="leaders", description=__doc__)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1.5, help="blows a second, about")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    wanted = parser.parse_args(argv)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix="tenure-leaders-"))
    began = time.monotonic()
    print(f"seed {wanted.seed}, in {folder}", flush=True)
    with PostgresServer() if wanted.store == "postgres" else nullcontext() as server:
        counts, wrong = upheaval(folder, wanted.kills, wanted.processes, wanted.rate, wanted.seed, server)
    for text in wrong[:50]:
        print(text)
    if not wrong:
        shutil.rmtree(folder)
    names = ("kills", "aimed", "zombies", "terms", "ticks", "writes", "cut_short", "longest_gap_ms")
    numbers: dict[str, results.Figure] = {name: counts[name] for name in names}
    numbers |= {"wrong": len(wrong), "seconds": round(time.monotonic() - began)}
    results.tell("leaders", numbers, variant=wanted.store if wanted.store != "sqlite" else "")
    return 1 if wrong else 0

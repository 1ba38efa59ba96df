"""Schedules and triggers under coordinators that are killed and stopped: one task a tick, one more for each event.

The stores' clock runs six hundred times as fast, the same in every process, so that a minute's schedule has ten ticks a
second. Coordinators are killed in the middle of them, or sleep longer than their lease and go on as if they led. At
the end there must be a task for every minute that went by, no two for one, and one for each event that a trigger heard.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

from tenure.core import commands as c
from tenure.core.commands import NewTask, Template
from tenure.core.filters import Prefix
from tenure.core.records import Schedule, Task
from tenure.engine import Context, Engine
from tenure.engine.duties.coordinator import SOONEST, Coordinator, Note
from tenure.engine.duties.election import DUTIES
from tenure.engine.sources import trigger_duty
from tenure.stores.port import Store
from tenure.stores.postgres import Postgres
from tenure.stores.sqlite import Sqlite
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.reliability.leaders import LEADING, Upheaval
from tests.reliability.storm import ends, in_child
from tests.reliability.storm_worker import LEASE, NAMED, PROJECT, SystemRandom, Worker
from tests.servers.postgres import PostgresServer

SPEED = 600
MINUTE = 60 * 1_000_000
BEGAN = "began"  # a file with the instant from which the clock runs fast
WATCHED = ("settle", "schedules", "triggers")
TICKS_A_SECOND = SPEED / 60
AWAKE = 0.2  # seconds between looks whether a sleeper has slept enough


def fast_clock(folder: Path) -> int:
    began = int((folder / BEGAN).read_text())
    return began + (time.time_ns() // 1000 - began) * SPEED


def opened(folder: Path) -> Engine:
    named = folder / NAMED

    def clock() -> int:
        return fast_clock(folder)

    store: Store
    store = Postgres(named.read_text(), clock=clock) if named.exists() else Sqlite(f"{folder}/tenure.db", clock=clock)
    return Engine(store, SystemRandom(), Context(pause=time.sleep))


def coordinator_of(
    engine: Engine, name: str, tell: Callable[[Note], None] = lambda _: None, *, sleeps: bool = False
) -> Coordinator:
    """`sleeps`: with a watch that hardly moves, as that of a machine which sleeps: it never stops by itself."""
    watch = time.process_time if sleeps else time.monotonic
    duties = {duty: DUTIES[duty] for duty in WATCHED}
    return Coordinator(engine, name, lambda: watch() * SPEED, lease=LEASE * SPEED, duties=duties, tell=tell)


class Candidate(Worker):
    """Stands, leads and fires, until it is killed."""

    def __init__(self, folder: Path, slot: int, life: int, seed: str) -> None:
        self.folder = folder
        self.dice = random.Random(f"{seed}/{slot}/{life}")
        self.coordinator = coordinator_of(opened(folder), f"c{slot}-{life}", self.tell, sleeps=slot % 2 == 0)

    def tell(self, note: Note) -> None:
        if note.message.startswith("leads with"):
            (self.folder / LEADING).write_text(str(os.getpid()))

    def live(self) -> None:
        while True:
            self.coordinator.step()
            time.sleep(SOONEST * self.dice.random())


class Raging(Upheaval):
    def rage_for(self, seconds: float, rate: float) -> None:
        for slot in range(len(self.lives)):
            self.start(slot)
        now = time.monotonic()
        until, blow = now + seconds, now + self.dice.expovariate(rate)
        while now < until:
            self.pause(min(blow, until, now + AWAKE) - now)
            self.wake_up()  # in time: a schedule makes up for a hundred ticks, and no more
            now = time.monotonic()
            if now >= blow:
                self.kill()
                blow = now + self.dice.expovariate(rate)


def found(folder: Path) -> None:
    engine = opened(folder)
    engine.do(c.DefineProject(project=PROJECT))
    tick = Template(tasks=(NewTask(title="Tick {tick.at}"),))
    engine.do(c.SetSchedule(project=PROJECT, schedule="minute", cron="* * * * *", misfire="all", template=tick))
    heard = Template(tasks=(NewTask(title="Heard {event.key}"),))
    where = {"task.created_by": "cron:minute"}
    engine.do(
        c.SetTrigger(project=PROJECT, trigger="heard", on="task.created", where=where, template=heard, most=10_000)
    )
    engine.store.close()


def findings(engine: Engine, first: int, end: int) -> Iterator[str]:
    """What is wrong with what was made of the ticks from the first to the end."""
    with engine.store.begin("local", write=False) as tx:
        (schedule,) = tx.load(Schedule, ((PROJECT, "minute"),))
        ticks = Counter(t.idempotency_key for t in tx.find(Task, {"project": PROJECT, "created_by": "cron:minute"}))
        heard = Counter(
            task.idempotency_key
            for task in tx.find(Task, {"project": PROJECT, "idempotency_key": Prefix("trigger:heard:")})
        )
        made = tx.events({"project": PROJECT, "kind": "task.created"}, limit=10_000_000)
    wanted = {f"cron:minute:{at}" for at in range(first, end, MINUTE)}
    told = {f"trigger:heard:{e.id}" for e in made if e.details["created_by"] == "cron:minute"}
    for what, have, want in (("tick", ticks, wanted), ("event", heard, told)):
        yield from (f"{what} {key}: no task" for key in sorted(want - set(have))[:10])
        yield from (f"{what} {key}: a task for nothing" for key in sorted(set(have) - want)[:10])
        yield from (f"{what} {key}: {count} tasks" for key, count in have.items() if count > 1)
    if schedule.missed or schedule.failed:
        yield f"{schedule.missed} missed, {schedule.failed} failed"


def finish(engine: Engine, first: int, ticks: int) -> int:
    """Go on until there were so many ticks, and all of them were heard; where the ticks ended."""
    last = coordinator_of(engine, "last")
    end = 0
    while not end:
        last.step()
        time.sleep(SOONEST)
        with engine.store.begin("local", write=True) as tx:
            tx.lock("write", (PROJECT,))
            (schedule,) = tx.load(Schedule, ((PROJECT, "minute"),))
            if schedule.next_at is not None and (schedule.next_at - first) // MINUTE >= ticks:
                end = schedule.next_at
        if end:
            engine.do(c.PauseSchedule(project=PROJECT, schedule="minute"))
    while trigger_duty.projects_with_news(engine, 0):
        trigger_duty.hear(engine, PROJECT)
    last.resign()
    return end


def run(
    folder: Path, ticks: int, processes: int, rate: float, seed: int, server: PostgresServer | None
) -> tuple[Counter[str], list[str]]:
    if server is not None:
        (folder / NAMED).write_text(f"{server.url}?schema=schedules")
    (folder / BEGAN).write_text(str(time.time_ns() // 1000))
    _, status = os.waitpid(in_child(lambda: found(folder)), 0)
    assert status == 0, "no store could be made"
    raging = Raging(folder, processes, seed, Candidate)
    with ends(raging):
        raging.rage_for(ticks / TICKS_A_SECOND, rate)
    engine = opened(folder)
    with engine.store.begin("local", write=False) as tx:
        (made,) = tx.events({"project": PROJECT, "kind": "schedule.set"}, limit=1)
    first = made.details["next_at"]
    end = finish(engine, first, ticks)
    wrong = [*findings(engine, first, end), *engine.verify()]
    with engine.store.begin("local", write=False) as tx:
        tasks = tx.tally(Task, {"project": PROJECT, "created_by": "cron:minute"}, 1_000_000)
        told = Counter(event.kind for event in tx.events({}, limit=10_000_000))
    engine.store.close()
    counts = Counter(ticks=tasks, heard=told["trigger.fired"], terms=told["leader.elected"])
    return counts + raging.counts, wrong + raging.errors


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="schedules", description=__doc__)
    parser.add_argument("--ticks", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rate", type=float, default=1.0, help="blows a second, about")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    wanted = parser.parse_args(argv)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix="tenure-schedules-"))
    began = time.monotonic()
    print(f"seed {wanted.seed}, in {folder}", flush=True)
    with PostgresServer() if wanted.store == "postgres" else nullcontext() as server:
        counts, wrong = run(folder, wanted.ticks, wanted.processes, wanted.rate, wanted.seed, server)
    for text in wrong[:50]:
        print(text)
    if not wrong:
        shutil.rmtree(folder)
    names = ("ticks", "heard", "terms", "kills", "aimed", "zombies")
    numbers: dict[str, results.Figure] = {name: counts[name] for name in names}
    numbers |= {"wrong": len(wrong), "seconds": round(time.monotonic() - began)}
    results.tell("schedules", numbers, variant=wanted.store if wanted.store != "sqlite" else "")
    return 1 if wrong else 0

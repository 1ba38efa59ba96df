"""Workers driven by a broker that repeats every command, is killed and wiped: each task is accepted once.

Tasks are added, relayed as commands, and worked on by processes that only a command wakes: half of them ask for the
next task, half claim the task of the command. The relay sends every command twice, under two message ids. Workers and
the relay are killed; the broker is killed, and wiped while many tasks are open. At the end every task must be
completed, with one accepted result.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tenure.client import Client
from tenure.client.worker.worker import Worker as SdkWorker
from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.outcomes import Outcome
from tenure.core.records import RetryPolicy, Task, replace
from tenure.engine import Engine
from tenure.sinks import names
from tenure.sinks.open_sink import open_sink, open_source
from tenure.sinks.port import Message, Received, Sink, SinkUnavailable, Source
from tenure.sinks.subscriptions import Subscription
from tests.reliability import results
from tests.reliability.brokers import BROKERS, Broker
from tests.reliability.ground import end_when_told
from tests.reliability.relay import Blows, checked, left_of, wait_for
from tests.reliability.relay_process import URL, Faulty, Relaying
from tests.reliability.storm import ends, in_child, make_store
from tests.reliability.storm_worker import PROJECT, Worker, open_engine, url_of

POOL = "pool"
LEASE = 3.0  # seconds of a claim: a killed worker's task is ready again after that
TASK = NewTask(
    title="by a broker",
    max_attempts=100,
    retry=RetryPolicy(strategy="fixed", initial_delay=0.05, poison=0),
)
DONE = "done"  # the file with the number of completed tasks
ACCEPTED = "accepted"  # the folder with what each worker was told
FINISHED_IN = 300.0  # seconds; as many again without blows


class Twice(Faulty):
    """Sends every command twice, the second time under another id: no broker drops it."""

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        doubled: list[Message] = []
        ends_at = []  # of each message, how many of `doubled` it needs
        for message in messages:
            doubled.append(message)
            if names.family_of(message.name) == names.COMMANDS:
                doubled.append(replace(message, id=f"{message.id}-again"))
            ends_at.append(len(doubled))
        sent = self.sink.send(doubled, timeout)
        return sum(end <= sent for end in ends_at)


class Repeating(Relaying):
    def opened_sink(self) -> Sink:
        return Twice(open_sink((self.folder / URL).read_text()), self.folder, self.dice)


class Driven(Worker):
    """Works when a command comes. It acknowledges once its claim is committed or finally denied."""

    def __init__(self, folder: Path, slot: int, life: int, seed: str) -> None:
        self.folder, self.name = folder, f"w{slot}-{life}"
        self.dice = random.Random(f"{seed}/{slot}/{life}")
        self.takes_next = slot % 2 == 0
        self.client = Client(url_of(folder), PROJECT, agent=self.name, session=self.name)
        self.source: Source = open_source((folder / URL).read_text(), Subscription(POOL, size=2))

    def live(self) -> None:
        parent = os.getppid()
        with (self.folder / ACCEPTED / self.name).open("ab", buffering=0) as told:
            while os.getppid() == parent:
                try:
                    received = self.source.fetch(2, 1.0)
                except SinkUnavailable:
                    time.sleep(0.2)
                    continue
                for one in received:
                    self.answer(one, lambda task: told.write(f"{task}\n".encode()))

    def answer(self, received: Received, tell: Callable[[str], object]) -> None:
        outcome = self.claimed(received)
        with suppress(SinkUnavailable):  # it comes again, and the claim decides
            self.source.acknowledge(received)
        while outcome.receipt is not None:
            time.sleep(self.dice.random() * 0.01)
            ended = self.client.do(c.Submit(project=PROJECT, receipt=outcome.receipt, data={"by": self.name}))
            if ended.outcome == "ACCEPTED":
                assert outcome.task is not None
                tell(outcome.task["id"])
            if not self.takes_next:
                return
            outcome = self.client.claim_or_wait(self.next(), 0.0)  # commands that were lost have no other to wake it

    def claimed(self, received: Received) -> Outcome:
        if self.takes_next:
            return self.client.claim_or_wait(self.next(), 0.0)
        task = msgspec.json.decode(received.body)["payload"]["task_id"]
        return self.client.do(c.ClaimTask(project=PROJECT, task=task, agent=self.name, session=self.name, lease=LEASE))

    def next(self) -> c.ClaimNext:
        return c.ClaimNext(project=PROJECT, agent=self.name, session=self.name, lease=LEASE)


class OfTheSdk(Worker):
    """The product's own worker with a source; what was accepted is in the store alone."""

    def __init__(self, folder: Path, slot: int, life: int, seed: str) -> None:
        dice, url = random.Random(f"{seed}/{slot}/{life}"), (folder / URL).read_text()
        take = "next" if slot % 2 == 0 else "task"
        self.worker = SdkWorker(
            url_of(folder),
            PROJECT,
            agent=f"w{slot}-{life}",
            lease=LEASE,
            source=url,
            pool=POOL,
            take=take,
            concurrency=2,
        )

        @self.worker.task()
        def work(_: object) -> dict[str, int]:
            time.sleep(dice.random() * 0.01)
            return {"slot": slot}

    def live(self) -> None:
        self.worker.run()


WORKERS: dict[str, type[Worker]] = {"sdk": OfTheSdk, "own": Driven}
KIND = "worker"  # the file with the kind of worker


def any_of(folder: Path, slot: int, life: int, seed: str) -> Worker:
    """The first process relays, the others work."""
    kind = WORKERS[(folder / KIND).read_text()] if slot else Repeating
    return kind(folder, slot, life, seed)


# --- the run ------------------------------------------------------------------------------------------------


def add(folder: Path, tasks: int) -> None:
    engine = open_engine(folder)
    for start in range(0, tasks, 100):
        checked(engine.run([c.Add(project=PROJECT, task=TASK)] * min(100, tasks - start)))
    engine.store.close()


def note_done(folder: Path) -> None:
    engine = open_engine(folder)
    with engine.store.begin("local", write=False) as tx:
        (folder / DONE).write_text(str(tx.count(Task, {"project": PROJECT}, "state").get("completed", 0)))
    engine.store.close()


def done_in(folder: Path) -> int:
    _, status = os.waitpid(in_child(lambda: note_done(folder)), 0)
    assert status == 0, "the tasks could not be counted"
    return int((folder / DONE).read_text())


@contextmanager
def all_killed(blows: Blows) -> Iterator[None]:
    """No worker outlives it: only a command that is announced again can wake those that follow."""
    slots = list(blows.slots.values())
    for pid in blows.slots:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    blows.counts["kills"] += len(slots)
    blows.slots.clear()
    blows.stopped.clear()
    yield
    for slot in slots:
        blows.start(slot)


def driven(folder: Path, broker: Broker, tasks: int, workers: int, kills: int, seed: int) -> Blows:
    blows = Blows(folder, workers + 1, seed, broker, any_of)  # type: ignore[arg-type]  # it makes a worker
    with ends(blows):
        for slot in range(workers + 1):
            blows.start(slot)
        assert wait_for(blows, lambda: left_of(folder) is not None), "no relay began"
        adder = in_child(lambda: add(folder, tasks))
        is_added, is_wiped, until = False, False, time.monotonic() + FINISHED_IN
        while (done := done_in(folder)) < tasks and time.monotonic() < until:
            blows.pause(blows.dice.expovariate(4))
            blows.wake_up()  # also while nothing is done: one that was stopped may hold the file's lock
            if blows.counts["kills"] < kills * (done / tasks + 0.05):
                blows.strike()
            if not is_added and os.waitpid(adder, os.WNOHANG)[0]:
                is_added = True
            if is_added and not is_wiped and done >= tasks * 0.2:
                with all_killed(blows):
                    blows.counts["open_when_wiped"] = tasks - done_in(folder)
                    blows.broker.wipe()
                is_wiped = True
            elif is_wiped and not blows.counts["broker_kills"] and done >= tasks * 0.6:
                blows.kill_broker()
        blows.calm()
        if not is_wiped:
            blows.errors.append("the broker was not wiped: all tasks were done before that")
        if not wait_for(blows, lambda: done_in(folder) == tasks, FINISHED_IN):
            blows.errors.append(f"{tasks - done_in(folder)} tasks wait for a command that does not come")
    return blows


def judged(folder: Path, engine: Engine, tasks: int) -> tuple[Counter[str], list[str]]:
    told = Counter(line for file in (folder / ACCEPTED).iterdir() for line in file.read_text().splitlines())
    with engine.store.begin("local", write=False) as tx:
        states = tx.count(Task, {"project": PROJECT}, "state")
        completed = Counter(event.task for event in tx.events({"kind": "task.completed"}, limit=10_000_000))
        claims = len(tx.events({"kind": "task.claimed"}, limit=10_000_000))
        expired = len(tx.events({"kind": "task.lease_expired"}, limit=10_000_000))
    limbo = tasks - states.get("completed", 0)
    counts = Counter(
        accepted=len(completed), claims=claims, leases_expired=expired, limbo=limbo,
        double=sum(number > 1 for number in (*told.values(), *completed.values())),
        lost=len(told.keys() - completed.keys()),
    )  # fmt: skip
    wrong = [f"{name}: {counts[name]}" for name in ("limbo", "double", "lost") if counts[name]]
    return counts, wrong + engine.verify()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="broker", description=__doc__)
    parser.add_argument("--sink", choices=BROKERS, default="nats")
    parser.add_argument("--tasks", type=int, default=5_000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--worker", choices=WORKERS, default="own", help="the product's, or a plain loop on the source")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    wanted = parser.parse_args(argv)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix="tenure-broker-"))
    (folder / ACCEPTED).mkdir()
    (folder / KIND).write_text(wanted.worker)
    began = time.monotonic()
    print(f"seed {wanted.seed}, in {folder}", flush=True)
    make_store(folder)
    with BROKERS[wanted.sink]() as broker:
        (folder / URL).write_text(broker.url)
        blows = driven(folder, broker, wanted.tasks, wanted.workers, wanted.kills, wanted.seed)
    engine = open_engine(folder)
    counts, wrong = judged(folder, engine, wanted.tasks)
    engine.store.close()
    wrong += blows.errors
    for text in wrong[:50]:
        print(text)
    if not wrong:
        shutil.rmtree(folder)
    numbers: dict[str, results.Figure] = {
        "tasks": wanted.tasks, "accepted": counts["accepted"], "claims": counts["claims"],
        "leases_expired": counts["leases_expired"], "kills": blows.counts["kills"], "zombies": blows.counts["zombies"],
        "broker_kills": blows.counts["broker_kills"], "open_when_wiped": blows.counts["open_when_wiped"],
        "double": counts["double"], "lost": counts["lost"], "limbo": counts["limbo"], "wrong": len(wrong),
        "seconds": round(time.monotonic() - began),
    }  # fmt: skip
    variant = wanted.sink if wanted.worker == "own" else f"{wanted.sink}-{wanted.worker}"
    results.tell("broker", numbers, variant=variant)
    return 1 if wrong else 0

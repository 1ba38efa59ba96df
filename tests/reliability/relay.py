"""Relays and their broker are killed again and again, also between acknowledgement and cursor: no event is lost.

Two processes, each with a coordinator and a relay, share one SQLite file while another writes to its log. They are
killed, or stopped for longer than their lease; a third of the pages kill their own process once the broker has
acknowledged them. At the end the broker is compared with the log: every message is there, in order, and a repeat has
the id of the first. NATS and Redis drop repeats in their window; RabbitMQ keeps them, which consumers see by the id.
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
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.events import Event
from tenure.core.outcomes import Outcome
from tenure.core.records import Sink
from tenure.engine import Engine
from tenure.engine.relay.page import facts_of
from tenure.sinks import names
from tenure.sinks.envelope import messages_of
from tenure.sinks.port import Message
from tests.reliability import results
from tests.reliability.brokers import BROKERS, Broker
from tests.reliability.ground import end_when_told
from tests.reliability.relay_process import CALM, LEASE, NAME, STOPS, URL, Relaying
from tests.reliability.storm import Storm, ends, in_child, make_store
from tests.reliability.storm_worker import PROJECT, Worker, open_engine

BATCH = 20  # tasks
PLACE, END = "place", "end"  # files: how far the sink's row is, and the end of the log
CATCHES_UP_IN = 180.0  # seconds after the last blow
STOPPED_FOR = (LEASE + 0.5, LEASE + 1.5)
STOPPED_AT = 50  # messages of a page that the process stops after
KILLED = 9  # the status of a process that ended by SIGKILL


class Blows(Storm):
    """At relays; now and then at the broker."""

    def __init__(self, folder: Path, processes: int, seed: int, broker: Broker, worker: type[Worker]) -> None:
        super().__init__(folder, processes, seed, worker)
        self.broker = broker

    def bury(self) -> None:
        """Those that ended themselves after an acknowledgement are counted, others are errors."""
        for pid in list(self.slots):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                slot = self.slots.pop(pid)
                self.stopped.pop(pid, None)
                if status == KILLED:
                    self.counts["cuts"] += 1
                else:
                    self.errors.append(f"process {slot}-{self.lives[slot] - 1} ended by itself, with {status}")
                self.start(slot)

    def strike(self) -> None:
        self.wake_up()
        if self.dice.random() < 0.2 and not self.stopped:
            pid = self.dice.choice(list(self.slots))
            os.kill(pid, signal.SIGSTOP)
            self.stopped[pid] = time.monotonic() + self.dice.uniform(*STOPPED_FOR)
        else:
            self.bury()
            self.kill()

    def aim(self) -> int | None:
        return None

    def kill_broker(self) -> None:
        self.broker.kill()
        self.pause(self.dice.random())
        self.broker.start()
        self.counts["broker_kills"] += 1

    def calm(self) -> None:
        """No more blows: whoever was stopped goes on."""
        (self.folder / CALM).touch()
        self.stopped = dict.fromkeys(self.stopped, 0.0)
        self.wake_up()


# --- in processes of their own ------------------------------------------------------------------------------


def write_apart(folder: Path, events: int, seconds: float, *, batch: int = BATCH) -> None:
    _, status = os.waitpid(in_child(lambda: write(folder, events, seconds, batch=batch)), 0)
    assert status == 0, f"the writer ended with {status}"


def add_apart(folder: Path, tasks: int) -> None:
    """In one transaction: whoever stops once these are relayed may hold the file's lock."""

    def add() -> None:
        engine = open_engine(folder)
        checked(engine.run([c.Add(project=PROJECT, task=NewTask(title="relayed"))] * tasks))
        engine.store.close()

    _, status = os.waitpid(in_child(add), 0)
    assert status == 0, f"the writer ended with {status}"


def write(
    folder: Path, events: int, seconds: float, *, batch: int = BATCH, engine: Engine | None = None, lease: float = 60
) -> None:
    """Tasks are added, claimed and finished until so many events are in the log, over about so many seconds."""
    engine = engine or open_engine(folder)
    began, first, round_ = time.monotonic(), end_of(engine), 0
    while (written := end_of(engine) - first) < events:
        round_ += 1
        checked(engine.run([c.Add(project=PROJECT, task=NewTask(title=f"relay {round_}"))] * batch))
        claims = [c.ClaimNext(project=PROJECT, agent=f"a{n}", session=f"a{n}", lease=lease) for n in range(batch)]
        granted = [outcome.receipt for outcome in checked(engine.run(claims))]
        checked(engine.run([c.Submit(project=PROJECT, receipt=r, data={"n": round_}) for r in granted if r]))
        time.sleep(max(0.0, began + written / events * seconds - time.monotonic()))


def checked(answers: Iterable[object]) -> list[Outcome]:
    found = list(answers)
    wrong = [answer for answer in found if not isinstance(answer, Outcome)]
    assert not wrong, wrong[0]
    return found  # type: ignore[return-value]  # outcomes, all of them


def end_of(engine: Engine) -> int:
    with engine.store.begin("local", write=False) as tx:
        last = tx.events({}, limit=1, last=True)
    return last[0].sequence if last else 0


def note_place(folder: Path) -> None:
    engine = open_engine(folder)
    with engine.store.begin("local", write=False) as tx:
        rows = tx.load(Sink, (("", NAME),))
    (folder / END).write_text(str(end_of(engine)))
    (folder / PLACE).write_text(str(rows[0].sequence if rows else 0))
    engine.store.close()


def left_of(folder: Path) -> int | None:
    """How many events the sink's row is behind; None where there is no row yet. A forking process opens no store."""
    _, status = os.waitpid(in_child(lambda: note_place(folder)), 0)
    assert status == 0, "the sink's row could not be read"
    place = int((folder / PLACE).read_text())
    return int((folder / END).read_text()) - place if place else None


# --- the run ------------------------------------------------------------------------------------------------


def wait_for(blows: Blows, is_over: Callable[[], bool], seconds: float = CATCHES_UP_IN) -> bool:
    until = time.monotonic() + seconds
    while not is_over():
        if time.monotonic() > until:
            return False
        blows.pause(0.3)
    return True


def has_ended(pid: int) -> bool:
    ended, status = os.waitpid(pid, os.WNOHANG)
    assert status == 0, f"the writer ended with {status}"
    return ended != 0


def relayed(
    folder: Path, broker: Broker, events: int, kills: int, broker_kills: int, seed: int, seconds: float
) -> Blows:
    """Everything is struck at while events are written; then the relay catches up."""
    blows = Blows(folder, 2, seed, broker, Relaying)
    with ends(blows):
        for slot in range(2):
            blows.start(slot)
        assert wait_for(blows, lambda: left_of(folder) is not None), "no relay began"
        writer = in_child(lambda: write(folder, events, seconds))
        is_written = False
        while not is_written or blows.counts["kills"] < kills or blows.counts["broker_kills"] < broker_kills:
            blows.pause(blows.dice.expovariate(kills / seconds))
            blows.strike()
            is_written = is_written or has_ended(writer)
            done = blows.counts["broker_kills"]
            if done < broker_kills and blows.counts["kills"] >= (done + 1) * kills / (broker_kills + 1):
                blows.kill_broker()
        blows.calm()
        if not wait_for(blows, lambda: left_of(folder) == 0):
            blows.errors.append(f"the relay did not catch up: {left_of(folder)} events are left")
    return blows


def stopped(folder: Path, broker: Broker, events: int, seed: int, seconds: float) -> Blows:
    """One relay is stopped between acknowledgement and cursor for so many seconds, and goes on.

    Nothing is written meanwhile: its coordinator may have been stopped while it holds the file's lock.
    """
    blows = Blows(folder, 1, seed, broker, Relaying)
    (folder / CALM).touch()
    with ends(blows):
        blows.start(0)
        assert wait_for(blows, lambda: left_of(folder) is not None), "no relay began"
        write_apart(folder, events, 1.0)
        (folder / STOPS).write_text(str(STOPPED_AT))
        (folder / CALM).unlink()
        add_apart(folder, STOPPED_AT)
        (pid,) = blows.slots
        assert wait_for(blows, lambda: os.waitpid(pid, os.WNOHANG | os.WUNTRACED)[0] == pid), "it did not stop"
        blows.counts["stops"] += 1
        blows.pause(seconds)
        os.kill(pid, signal.SIGCONT)
        if not wait_for(blows, lambda: left_of(folder) == 0):
            blows.errors.append("the relay did not catch up")
    return blows


# --- the check ----------------------------------------------------------------------------------------------


def expected(engine: Engine) -> tuple[list[Event], dict[str, set[str]]]:
    """The events that the sink must have got, and the ids of all messages by family."""
    with engine.store.begin("local", write=False) as tx:
        events = tx.events({}, limit=10_000_000)
        start = next(n for n, event in enumerate(events) if event.kind == "sink.added")
        sent = [
            message for event, facts in facts_of(tx, "local", events[start:]) for message in messages_of(event, facts)
        ]
    ids: dict[str, set[str]] = {family: set() for family in names.FAMILIES}
    for message in sent:
        ids[names.family_of(message.name)].add(message.id)
    return list(events[start:]), ids


def compared(
    got: dict[str, list[Message]], ids: dict[str, set[str]], *, may_repeat: bool
) -> tuple[Counter[str], list[str]]:
    """What the broker has against what the log says."""
    counts: Counter[str] = Counter(lost=0, doubles=0, out_of_order=0, unknown=0)
    for family, wanted in ids.items():
        found = {message.id for message in got[family]}
        counts["lost"] += len(wanted - found)
        counts["unknown"] += len(found - wanted)
    seen: dict[str, int] = {}
    last = 0
    id_of: dict[int, set[str]] = {}
    for message in got[names.EVENTS]:
        body = msgspec.json.decode(message.body)
        id_of.setdefault(body["sequence"], set()).add(message.id)
        seen[message.id] = seen.get(message.id, 0) + 1
        if seen[message.id] > 1:
            counts["doubles"] += 1
        elif body["sequence"] < last:
            counts["out_of_order"] += 1
        else:
            last = body["sequence"]
    counts["several_ids"] = sum(len(several) > 1 for several in id_of.values())
    refused = ["lost", "out_of_order", "unknown", "several_ids", *([] if may_repeat else ["doubles"])]
    return counts, [f"{name}: {counts[name]}" for name in refused if counts[name]]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="relay", description=__doc__)
    parser.add_argument("--sink", choices=BROKERS, default="nats")
    parser.add_argument("--events", type=int, default=15_000)
    parser.add_argument("--kills", type=int, default=60, help="of relays, from outside")
    parser.add_argument("--broker-kills", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40.0, help="over which the events are written")
    parser.add_argument(
        "--stopped",
        type=float,
        metavar="SECONDS",
        help="instead: one relay, stopped between acknowledgement and cursor",
    )
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    wanted = parser.parse_args(argv)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix="tenure-relay-"))
    began = time.monotonic()
    print(f"seed {wanted.seed}, in {folder}", flush=True)
    make_store(folder)
    with BROKERS[wanted.sink]() as broker:
        (folder / URL).write_text(broker.url)
        if wanted.stopped is None:
            blows = relayed(
                folder, broker, wanted.events, wanted.kills, wanted.broker_kills, wanted.seed, wanted.seconds
            )
        else:
            blows = stopped(folder, broker, wanted.events, wanted.seed, wanted.stopped)
        got = {family: list(broker.received(family)) for family in names.FAMILIES}
    engine = open_engine(folder)
    events, ids = expected(engine)
    counts, wrong = compared(got, ids, may_repeat=not broker.drops_repeats or wanted.stopped is not None)
    wrong += blows.errors + engine.verify()
    engine.store.close()
    for text in wrong[:50]:
        print(text)
    if not wrong:
        shutil.rmtree(folder)
    numbers: dict[str, results.Figure] = {
        "events": len(events), "received": len(got[names.EVENTS]), "commands": len(got[names.COMMANDS]),
        "kills": blows.counts["kills"], "cuts": blows.counts["cuts"],
        "zombies": blows.counts["zombies"] + blows.counts["stops"], "broker_kills": blows.counts["broker_kills"],
        "lost": counts["lost"], "doubles": counts["doubles"], "out_of_order": counts["out_of_order"],
        "several_ids": counts["several_ids"], "wrong": len(wrong), "seconds": round(time.monotonic() - began),
    }  # fmt: skip
    results.tell("relay", numbers, variant="-".join((wanted.sink, *(["stopped"] if wanted.stopped else []))))
    return 1 if wrong else 0

"""What a relay costs those that claim: processor time with it and without, and claims while a broker is frozen."""

from __future__ import annotations

import mmap
import os
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.ground import check
from bench.relay import sinks
from bench.relay.end_to_end import PROJECT, end_of, engine_of, leading, relay_of, run, store
from bench.report import Figure
from tenure.core import commands as c
from tenure.core.records import Sink as SinkRow
from tenure.engine import Engine
from tenure.engine.relay.leader_thread import PAUSE
from tenure.engine.relay.relay import Relay, Settings
from tenure.sinks.open_sink import open_sink
from tests.reliability.storm import in_child
from tests.servers.nats import NatsServer
from tests.servers.valkey import ValkeyServer

PACE = 200  # cycles a second, one at a time
LEASE = 1.0  # the shortest there is
LEADS = "leads"  # a file: the process leads


class Switch:
    """Shared with a forked process: whether its relay works."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 1)

    def set(self, is_on: bool) -> None:
        self._shared[0] = is_on

    def __bool__(self) -> bool:
        return bool(self._shared[0])


def lead_apart(folder: Path, url: str, switch: Switch) -> None:
    """A process that leads until it is killed, and relays while it is switched on: duties cost the same in both."""
    parent, engine = os.getppid(), engine_of(folder)
    with leading(engine, f"beside-{os.getpid()}", LEASE) as coordinator:
        sink = open_sink(url)
        relay = Relay(
            engine, Settings("beside"), lambda: sink, lambda: coordinator.led() if switch else None, time.monotonic
        )
        run(relay)
        relay.start()
        (folder / LEADS).touch()
        while os.getppid() == parent:
            time.sleep(0.5)


@contextmanager
def another(folder: Path, url: str, switch: Switch) -> Iterator[None]:
    """Forked while no store is open here."""
    switch.set(True)
    pid = in_child(lambda: lead_apart(folder, url, switch))
    try:
        until = time.monotonic() + 30
        while not (folder / LEADS).exists():
            if time.monotonic() > until:
                raise SystemExit("claims: nobody leads")
            time.sleep(0.05)
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def cycle(engine: Engine, number: int) -> float:
    """One task, added, claimed and completed; returns how long the claim took."""
    check([engine.do(c.Add(project=PROJECT, task=c.NewTask(title="claim it")))], "CREATED")
    began = time.perf_counter()
    granted = engine.do(c.ClaimNext(project=PROJECT, agent=f"c{number % 50}", session=f"c{number % 50}"))
    took = time.perf_counter() - began
    check([granted], "GRANTED")
    check([engine.do(c.Submit(project=PROJECT, receipt=granted.receipt or "", data={"ok": True}))], "ACCEPTED")
    return took


def paced(engine: Engine, cycles: int) -> tuple[float, list[float]]:
    """Processor seconds for one cycle, and the claims' latencies."""
    began, used, took = time.monotonic(), 0.0, []
    for number in range(cycles):
        before = time.process_time()
        took.append(cycle(engine, number))
        used += time.process_time() - before
        time.sleep(max(0.0, began + number / PACE - time.monotonic()))
    return used / cycles, took


def claimed(rounds: int, cycles: int) -> list[Figure]:
    """By turns: a process beside that relays, and one that only leads. It is one process, switched on and off.

    Two processes, each with a new store of ours, would differ by more than a relay costs.
    """
    alone, beside, slow_alone, slow_beside = [], [], [], []
    switch = Switch()
    with sinks.running("nats") as url, store() as folder, another(folder, url, switch):
        engine = engine_of(folder)
        for round_ in range(rounds + 1):
            for relays in (True, False) if round_ % 2 else (False, True):
                switch.set(relays)
                time.sleep(PAUSE + 0.1)  # it sees the switch, and sends what came meanwhile
                used, took = paced(engine, cycles)
                if relays:
                    check_relayed(engine)
                if round_:
                    (beside if relays else alone).append(used)
                    (slow_beside if relays else slow_alone).extend(took)
        engine.store.close()
    ratio = statistics.median(b / a for a, b in zip(alone, beside, strict=True))
    p99 = [sorted(found)[int(len(found) * 0.99)] * 1e3 for found in (slow_alone, slow_beside)]
    return [
        Figure(
            "claims: processor time of a cycle beside a relay", statistics.median(beside) * 1e6, "µs",
            statistics.median(alone) * 1e6, ratio, "≤ 1.05",
        ),
        Figure("claims: p99 of a claim beside a relay", p99[1], "ms", p99[0], p99[1] / p99[0]),
    ]  # fmt: skip


def check_relayed(engine: Engine) -> None:
    """The relay kept up: it is less than a second of events behind."""
    behind = end_of(engine) - place_of(engine, "beside")
    if behind > PACE * 3:
        raise SystemExit(f"claims: the relay beside is {behind} events behind")


def hanging(seconds: float) -> list[Figure]:
    """A broker is frozen for so many seconds: its relay waits; claims, a lease's end and another sink do not."""
    cycles = round(seconds * PACE / 2)
    with (
        store() as folder,
        ValkeyServer(is_durable=True) as valkey,
        tempfile.TemporaryDirectory(dir="/tmp") as place,
        NatsServer(Path(place)) as nats,
    ):
        engine = engine_of(folder)
        with leading(engine) as coordinator:
            term = coordinator.term
            hung = relay_of(coordinator, "hung", open_sink(nats.url))
            other = relay_of(coordinator, "other", open_sink(valkey.url().replace("redis://", "redis+stream://")))
            for relay in (hung, other):
                run(relay)
                relay.start()
            _, before = paced(engine, cycles)
            nats.freeze()
            began = time.monotonic()
            lost = engine.do(c.Add(project=PROJECT, task=c.NewTask(title="let it expire")))
            check([lost], "CREATED")
            check([engine.do(c.ClaimNext(project=PROJECT, agent="gone", session="gone", lease=LEASE))], "GRANTED")
            expired = time_of_expiry(engine)
            _, during = paced(engine, cycles)
            other_in = seconds_behind(engine, "other")
            while time.monotonic() < began + seconds:
                time.sleep(0.1)
            behind = end_of(engine) - place_of(engine, "hung")
            nats.thaw()
            until = time.monotonic() + 60
            while place_of(engine, "hung") < end_of(engine) - 1 and time.monotonic() < until:
                time.sleep(0.05)
            caught_up = place_of(engine, "hung") >= end_of(engine) - 1
            kept = coordinator.term == term
            for relay in (hung, other):
                relay.stop()
        engine.store.close()
    p99 = [sorted(found)[int(len(found) * 0.99)] * 1e3 for found in (before, during)]
    return [
        Figure("hang: p99 of a claim while a sink hangs", p99[1], "ms", p99[0], p99[1] / p99[0]),
        Figure("hang: lateness of a lease's end", expired, "s", goal="< 2"),
        Figure("hang: events the hung sink is behind", behind, ""),
        Figure("hang: lag of another sink", other_in, "s", goal="< 1"),
        Figure("hang: the term was kept (1: yes)", float(kept), "", goal="≥ 1"),
        Figure("hang: it caught up afterwards (1: yes)", float(caught_up), "", goal="≥ 1"),
    ]


def seconds_behind(engine: Engine, name: str) -> float:
    """How long the sink takes to get to where the log ends now."""
    began, end = time.monotonic(), end_of(engine)
    while place_of(engine, name) < end and time.monotonic() < began + 60:
        time.sleep(0.005)
    return time.monotonic() - began


def time_of_expiry(engine: Engine) -> float:
    """Seconds from the end of the lease that nobody renews to its event."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        with engine.store.begin("local", write=False) as tx:
            found = tx.events({"kind": "task.lease_expired"}, limit=1, last=True)
        if found:
            claimed_at = claim_time(engine, found[0].task or "")
            return (found[0].time - claimed_at) / 1e6 - LEASE
        time.sleep(0.02)
    return 30.0


def claim_time(engine: Engine, task: str) -> int:
    with engine.store.begin("local", write=False) as tx:
        return tx.events({"kind": "task.claimed", "task": task}, limit=1, last=True)[0].time


def place_of(engine: Engine, name: str) -> int:
    with engine.store.begin("local", write=False) as tx:
        return tx.load(SinkRow, (("", name),))[0].sequence

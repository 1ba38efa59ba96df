"""A sink that hangs for a minute: claims, leases and another sink are measured beside it, and without it.

One process has a coordinator, a relay to a broker that accepts connections and never answers, and one to a sink that
answers. First it runs without the hanging one. Claims are timed, leases of a second expire, and the other sink notes
how long after its event a message arrives.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.instants import parse_instant
from tenure.core.records import RetryPolicy, Sink
from tenure.engine import Engine
from tenure.engine.duties.coordinator import SOONEST, Coordinator
from tenure.engine.relay.relay import Relay, Settings
from tenure.sinks.nats import NatsSink
from tenure.sinks.port import Message
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.reliability.relay import checked, end_of
from tests.reliability.storm import found
from tests.reliability.storm_worker import PROJECT, open_engine

PAUSE = 0.02  # seconds between two claims
PLAIN = NewTask(title="claimed and done")
ABANDONED = NewTask(title="abandoned", max_attempts=1000, retry=RetryPolicy(strategy="fixed", poison=0), priority=90)
MOST_LATE = 2_000.0  # milliseconds that a lease may end late, and a message may be behind at the 99th percentile
MOST_SLOWER = 1.5  # the median claim, against that without the hanging sink


class Noting:
    """A sink that answers at once."""

    def __init__(self) -> None:
        self.late: list[float] = []  # milliseconds from an event to its arrival
        self.ids: set[str] = set()

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        now = time.time_ns() // 1000
        for message in messages:
            if message.name.startswith("evt.") and message.id not in self.ids:
                self.late.append((now - parse_instant(msgspec.json.decode(message.body)["emitted_at"])) / 1000)
                self.ids.add(message.id)
        return len(messages)

    def identity(self) -> str:
        return "here"

    def lag(self) -> None:
        return None

    def close(self) -> None:
        pass


def part(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(len(ordered) * share))], 1) if ordered else -1.0


def measured(engine: Engine, noting: Noting, seconds: float) -> dict[str, float]:
    """The figures of so many seconds."""
    noting.late.clear()
    start, claims, until = end_of(engine), list[float](), time.monotonic() + seconds
    abandon_at = 0.0
    while time.monotonic() < until:
        if time.monotonic() >= abandon_at:
            checked(engine.run([c.Add(project=PROJECT, task=ABANDONED)]))
            checked(engine.run([c.ClaimNext(project=PROJECT, agent="gone", session="gone", lease=1.0)]))
            abandon_at = time.monotonic() + 1.0
        checked(engine.run([c.Add(project=PROJECT, task=PLAIN)]))
        at = time.perf_counter()
        (claim,) = checked(engine.run([c.ClaimNext(project=PROJECT, agent="ann", session="ann", lease=60)]))
        claims.append((time.perf_counter() - at) * 1000)
        if claim.receipt is not None:
            checked(engine.run([c.Submit(project=PROJECT, receipt=claim.receipt, data=1)]))
        time.sleep(PAUSE)
    time.sleep(1.5)  # the last lease ends
    expired = engine.read(lambda tx: tx.events({"kind": "task.lease_expired"}, after=start, limit=100_000))
    late = [(event.time - event.details["lease_until"]) / 1000 for event in expired]
    return {
        "claims": len(claims), "claim_ms_p50": part(claims, 0.5), "claim_ms_p99": part(claims, 0.99),
        "leases_expired": len(late), "lease_late_ms_most": part(late, 1.0),
        "other_sink_ms_p99": part(noting.late, 0.99),
    }  # fmt: skip


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="hanging", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for which the sink hangs; as long without it")
    wanted = parser.parse_args(argv)
    end_when_told()
    folder = Path(tempfile.mkdtemp(prefix="tenure-hanging-"))
    began = time.monotonic()
    found(folder)
    engine, noting = open_engine(folder), Noting()
    coordinator = Coordinator(open_engine(folder), "one", time.monotonic, looks=SOONEST)
    coordinator.start()
    other = Relay(coordinator.engine, Settings("other"), lambda: noting, coordinator.led, time.monotonic)
    other.start()
    while not engine.read(lambda tx: tx.load(Sink, (("", "other"),))):
        time.sleep(0.05)
    figures = {"without": measured(engine, noting, wanted.seconds)}
    with socket.create_server(("127.0.0.1", 0), backlog=100) as deaf:
        url = f"nats://127.0.0.1:{deaf.getsockname()[1]}"
        hanging = Relay(coordinator.engine, Settings("hanging"), lambda: NatsSink(url), coordinator.led, time.monotonic)
        hanging.start()
        figures["hanging"] = measured(engine, noting, wanted.seconds)
        rows = engine.read(lambda tx: tx.load(Sink, (("", "hanging"),)))
        other.stop()
        coordinator.stop()
    wrong = engine.verify()
    beside, alone = figures["hanging"], figures["without"]
    sent = rows[0].sent if rows else -1
    if sent:
        wrong.append(f"the sink did not hang: {sent} messages were sent to it")
    if beside["claim_ms_p50"] > alone["claim_ms_p50"] * MOST_SLOWER:
        wrong.append("claims are slower beside the sink that hangs")
    for name in ("lease_late_ms_most", "other_sink_ms_p99"):
        if beside[name] > max(MOST_LATE, alone[name] * MOST_SLOWER):
            wrong.append(f"{name}: {beside[name]}, without the sink {alone[name]}")
    if not beside["leases_expired"]:
        wrong.append("no lease expired beside the sink that hangs")
    for text in wrong:
        print(text)
    engine.store.close()
    shutil.rmtree(folder)
    for name, numbers in figures.items():
        results.tell("hanging", dict(numbers), part=name)
    results.tell("hanging", {"wrong": len(wrong), "seconds": round(time.monotonic() - began)})
    return 1 if wrong else 0

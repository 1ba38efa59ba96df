"""From the log of a SQLite file to a broker or a webhook's receiver, with the relay that processes run."""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path

from bench.ground import Chance, check
from bench.relay import sinks
from bench.report import Figure
from tenure.core import commands as c
from tenure.core.records import Sink as SinkRow
from tenure.core.records import Webhook, replace
from tenure.engine import Engine
from tenure.engine.duties.coordinator import LEASE, Coordinator
from tenure.engine.relay.relay import Relay, Settings
from tenure.engine.relay.webhook_relay import WebhookRelay
from tenure.engine.relay.webhook_verbs import READER
from tenure.sinks.http_sender import HttpSender
from tenure.sinks.open_sink import open_sink
from tenure.sinks.port import Message, Sink
from tenure.sinks.webhook import WebhookSender
from tenure.stores.open_store import open_store
from tenure.testing.factories import OWNER, SECRETS
from tests.reliability.storm import in_child
from tests.sinks.receivers import Receiver

PROJECT = "bench"
GOALS = {"nats": "≥ 8000", "rabbitmq": "≥ 2000", "redis": ""}
PACE = 1000  # events a second, of the lag
PATIENCE = 60.0


def engine_of(folder: Path) -> Engine:
    context = replace(SECRETS, pause=time.sleep, allow_http=True)
    return Engine(open_store(f"sqlite://{folder}/tenure.db"), Chance(), context)


@contextmanager
def store() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tenure-bench-", dir="/tmp") as name:
        engine = engine_of(Path(name))
        engine.do(c.DefineProject(project=PROJECT), OWNER)
        engine.store.close()
        yield Path(name)


def worked(engine: Engine, tasks: int, *, batch: int = 100, pause: Callable[[int], None] = lambda _: None) -> None:
    """Tasks that are added, claimed and completed: three events each."""
    for start in range(0, tasks, batch):
        size = min(batch, tasks - start)
        check(engine.run([c.Add(project=PROJECT, task=c.NewTask(title="relay it"))] * size), "CREATED")
        asked = [c.ClaimNext(project=PROJECT, agent=f"a{n}", session=f"a{n}") for n in range(size)]
        granted = engine.run(asked)
        check(granted, "GRANTED")
        done = [c.Submit(project=PROJECT, receipt=one.receipt, data={"ok": True}) for one in granted]  # type: ignore[union-attr]
        check(engine.run(done), "ACCEPTED")
        pause(start + size)


def end_of(engine: Engine) -> int:
    with engine.store.begin("local", write=False) as tx:
        return tx.events({}, limit=1, last=True)[0].sequence


@contextmanager
def leading(engine: Engine, name: str = "bench", lease: float = LEASE) -> Iterator[Coordinator]:
    coordinator = Coordinator(engine, name, time.monotonic, lease=lease)
    while coordinator.term is None:
        time.sleep(min(0.05, coordinator.step()))
    coordinator.start()
    try:
        yield coordinator
    finally:
        coordinator.stop()


def relay_of(coordinator: Coordinator, name: str, sink: Sink) -> Relay:
    return Relay(coordinator.engine, Settings(name), lambda: sink, coordinator.led, time.monotonic)


def run(relay: Relay) -> None:
    """Until there is nothing more to send."""
    until = time.monotonic() + PATIENCE
    while not relay.step():
        if time.monotonic() > until:
            raise SystemExit("the relay did not end")


# --- rates --------------------------------------------------------------------------------------------------


def relayed(name: str, url: str, events: int, rounds: int) -> list[Figure]:
    """Each round goes to new streams, so that no broker drops what it knows."""
    rates, costs = [], []
    with store() as folder:
        engine = engine_of(folder)
        worked(engine, events // 3)
        with leading(engine) as coordinator:
            for round_ in range(rounds + 1):
                prefix = f"b{round_}"
                sink = open_sink(url, prefix=prefix)
                sink.identity()
                if name == "rabbitmq":
                    asyncio.run(sinks.observed(url, prefix))
                relay = relay_of(coordinator, prefix, sink)
                run(relay)
                engine.do(c.RewindRelay(project="", sink=prefix, to=0), OWNER)
                count = end_of(engine)
                start, before = time.perf_counter(), time.process_time()
                run(relay)
                if round_:
                    rates.append(count / (time.perf_counter() - start))
                    costs.append((time.process_time() - before) / count * 1e6)
                with engine.store.begin("local", write=False) as tx:
                    (row,) = tx.load(SinkRow, (("", prefix),))
                if row.sequence < count:
                    raise SystemExit(f"{name}: the relay stopped at {row.sequence} of {count}: {row.error}")
                relay.stop()
        engine.store.close()
    return [
        Figure(f"{name}: events relayed from the log", statistics.median(rates), "1/s", goal=GOALS[name]),
        Figure(f"{name}: own processor time to relay one", statistics.median(costs), "µs"),
    ]


def receive(folder: Path) -> None:
    parent = os.getppid()
    with Receiver() as receiver:
        (folder / "port.new").write_text(str(receiver.port))
        (folder / "port.new").rename(folder / "port")
        while os.getppid() == parent:
            time.sleep(0.5)


def delivered(events: int, rounds: int) -> list[Figure]:
    """Eight deliveries in flight to a receiver in a separate process; every task's events stay in order."""
    rates = []
    with store() as folder:
        receiver = in_child(lambda: receive(folder))
        try:
            while not (folder / "port").exists():
                time.sleep(0.01)
            engine = engine_of(folder)
            url = f"http://receiver.test:{(folder / 'port').read_text()}/hook"
            engine.do(c.SetWebhook(project=PROJECT, webhook="bench", url=url, kinds=("task.*",)), OWNER)
            http = HttpSender(allow_http=True, networks=(ip_network("127.0.0.1/32"),), resolve=lambda *_: ["127.0.0.1"])
            with leading(engine) as coordinator:
                relay = WebhookRelay(engine, WebhookSender(http, lambda: time.time_ns() // 1000), coordinator.led)
                total = 0
                for _ in range(rounds + 1):
                    begin = end_of(engine)
                    worked(engine, events // 3)
                    count = events // 3 * 3
                    if end_of(engine) - begin < count:
                        raise SystemExit("webhooks: there are too few events")
                    total += count
                    start = time.perf_counter()
                    deliver(engine, relay)
                    rates.append(count / (time.perf_counter() - start))
                with engine.store.begin("local", write=False) as tx:
                    (row,) = tx.load(Webhook, ((PROJECT, "bench"),))
                if row.parked or row.error or row.delivered < total:
                    raise SystemExit(f"webhooks: {row.parked} deliveries are left: {row.error}")
                relay.stop()
            http.close()
            engine.store.close()
        finally:
            os.kill(receiver, signal.SIGKILL)
            os.waitpid(receiver, 0)
    return [Figure("webhooks: events delivered from the log", statistics.median(rates[1:]), "1/s", goal="≥ 500")]


def deliver(engine: Engine, relay: WebhookRelay) -> None:
    until = time.monotonic() + PATIENCE
    end = end_of(engine)
    while time.monotonic() < until:
        if relay.step():
            time.sleep(0.005)
        with engine.store.begin("local", write=False) as tx:
            (reader,) = tx.load(SinkRow, (("", READER),))
            (row,) = tx.load(Webhook, ((PROJECT, "bench"),))
        if reader.sequence >= end and row.sequence is None and not row.parked:
            return
    raise SystemExit("webhooks: the relay did not end")


# --- lag ----------------------------------------------------------------------------------------------------


class Timed:
    """Notes when the page of each sequence was acknowledged."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.acknowledged: list[tuple[int, float]] = []  # last sequence, wall clock
        self.identity, self.lag, self.close = sink.identity, sink.lag, sink.close

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        sent = self.sink.send(messages, timeout)
        if sent:
            self.acknowledged.append((messages[sent - 1].sequence, time.time()))
        return sent


def write_paced(folder: Path, seconds: float) -> None:
    engine, began = engine_of(folder), time.monotonic()

    def pause(tasks: int) -> None:
        time.sleep(max(0.0, began + tasks * 3 / PACE - time.monotonic()))

    worked(engine, round(seconds * PACE / 3), batch=20, pause=pause)


def lagging(seconds: float) -> list[Figure]:
    """The writer is another process; the relay runs in its thread, as in `serve`."""
    with sinks.running("nats") as url, store() as folder:
        # The writer starts before this process has threads and an open store.
        go = folder / "go"

        def write() -> None:
            while not go.exists():
                time.sleep(0.01)
            write_paced(folder, seconds)

        writer = in_child(write)
        engine = engine_of(folder)
        with leading(engine) as coordinator:
            timed = Timed(open_sink(url))
            relay = relay_of(coordinator, "lag", timed)
            run(relay)
            first = end_of(engine)
            began = time.monotonic()
            relay.start()
            go.touch()
            _, status = os.waitpid(writer, 0)
            took = time.monotonic() - began
            if status:
                raise SystemExit("the writer failed")
            last, until = end_of(engine), time.monotonic() + PATIENCE
            while (not timed.acknowledged or timed.acknowledged[-1][0] < last - 1) and time.monotonic() < until:
                time.sleep(0.01)
            relay.stop()
        with engine.store.begin("local", write=False) as tx:
            events = tx.events({"project": PROJECT}, after=first, limit=10_000_000)
        engine.store.close()
    pages = [(sequence, at) for sequence, at in timed.acknowledged if sequence]
    places = [sequence for sequence, _ in pages]
    lags = sorted(pages[bisect_left(places, e.sequence)][1] - e.time / 1e6 for e in events if e.sequence <= places[-1])
    return [
        Figure("lag: events written", len(events) / took, "1/s"),
        Figure("lag: median", statistics.median(lags), "s"),
        Figure("lag: p99", lags[int(len(lags) * 0.99)], "s", goal="< 1"),
    ]

"""Events that a sink takes a second without a log, and our own processor time for one.

Envelopes of real kinds are encoded and sent in pages of 1,000, as a relay does; each round sends other events. The
broker runs on the same machine with a real disk and its default settings, so it shares the cores.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from bench.report import Figure
from tenure.core.events import Event
from tenure.core.records import Task
from tenure.sinks.envelope import Facts, messages_of
from tenure.sinks.open_sink import open_sink
from tenure.sinks.port import Message, Sink
from tenure.testing.samples import row_of
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitServer
from tests.servers.valkey import ValkeyServer

PAGE = 1000
TIMEOUT = 30.0
BROKERS = ("nats", "rabbitmq", "redis")
DETAILS = {
    "task.claimed": {"lease_until": 1_700_000_000_000_000, "attempt": 1, "previous_generation": 0},
    "task.completed": {"result": "result_01", "work_product": "wp-1", "duration_ms": 12_000, "late": False},
}


def events(round_: int, count: int) -> Iterator[tuple[Event, Facts]]:
    """Tasks that are claimed and completed by turns."""
    facts = Facts("local", task=row_of(Task, id="task_01HF7YAT00000000G000000001", key="A-001-write", type="code"))
    kinds = list(DETAILS)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        yield Event(
            sequence=round_ * count + number + 1, id=f"evt_{round_:04}{number:022}", time=1_700_000_000_000_000,
            kind=kind, project="shop", task="task_01HF7YAT00000000G000000001", key="A-001-write", version=3,
            generation=1, agent="ann", session="s-ann", previous_state="ready", new_state="claimed",
            details=DETAILS[kind], trace_id="0" * 32,
        ), facts  # fmt: skip


def encoded(round_: int, count: int) -> list[Message]:
    return [message for event, facts in events(round_, count) for message in messages_of(event, facts)]


def measured(name: str, sink: Sink, count: int, rounds: int) -> list[Figure]:
    """The first round warms up and does not count."""
    rates, sending, encoding = [], [], []
    for round_ in range(rounds + 1):
        before = time.process_time()
        messages = encoded(round_, count)
        encoded_in = time.process_time() - before
        start, before = time.perf_counter(), time.process_time()
        for at in range(0, count, PAGE):
            page = messages[at : at + PAGE]
            if sink.send(page, TIMEOUT) != len(page):
                raise SystemExit(f"{name}: a page was not acknowledged")
        if round_:
            rates.append(count / (time.perf_counter() - start))
            sending.append((time.process_time() - before) / count * 1e6)
            encoding.append(encoded_in / count * 1e6)
    return [
        Figure(f"{name}: events sent, without a log", statistics.median(rates), "1/s"),
        Figure(f"{name}: own processor time to send one", statistics.median(sending), "µs"),
        Figure(f"{name}: own processor time to encode one", statistics.median(encoding), "µs"),
    ]


async def observed(url: str, prefix: str = "") -> None:
    """Bind a quorum queue to the events: without one the broker drops them, and that costs it nothing."""
    import aiormq

    connection = await aiormq.connect(url)
    channel = await connection.channel()
    start = f"{prefix}." if prefix else ""
    await channel.queue_declare(f"{start}observer", durable=True, arguments={"x-queue-type": "quorum"})
    await channel.queue_bind(f"{start}observer", f"{start}tenure.evt", "#")
    await connection.close()


@contextlib.contextmanager
def running(name: str) -> Iterator[str]:
    """The URL of a broker that runs on a real disk."""
    with ExitStack() as stack:
        if name == "nats":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
            url = stack.enter_context(NatsServer(folder)).url
        elif name == "rabbitmq":
            url = stack.enter_context(RabbitServer(place=Path("/tmp"))).url
        else:
            url = stack.enter_context(ValkeyServer(is_durable=True)).url().replace("redis://", "redis+stream://")
        yield url


@contextlib.contextmanager
def opened(name: str, url: str) -> Iterator[Sink]:
    with contextlib.closing(open_sink(url)) as sink:
        sink.identity()
        if name == "rabbitmq":
            asyncio.run(observed(url))
        yield sink

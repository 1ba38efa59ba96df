"""A sink in RabbitMQ keeps the contract; repeats are delivered again, and queues of another are used as they are."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import aiormq
import pytest
from aiormq import spec
from aiormq.abc import AbstractChannel, DeliveredMessage

from tenure.sinks import names
from tenure.sinks.port import Message, Sink, SinkUnavailable, Source
from tenure.sinks.rabbitmq import RabbitSink
from tenure.sinks.rabbitmq_source import RabbitSource
from tenure.sinks.subscriptions import Subscription
from tenure.testing.suites.sink import TIMEOUT, SinkSuite, message, numbers
from tenure.testing.suites.source import SourceSuite
from tests.servers.rabbitmq import RabbitServer

QUORUM = {"x-queue-type": "quorum"}
END = "the end of the test"
_prefixes = itertools.count(1)


def ask(url: str, work: Callable[[AbstractChannel], Awaitable[Any]]) -> Any:
    """Behind the sink's back."""

    async def run() -> Any:
        connection = await aiormq.connect(url)
        try:
            return await work(await connection.channel())
        finally:
            await connection.close()

    return asyncio.run(run())


async def observe(channel: AbstractChannel, prefix: str) -> None:
    """Queues that get a copy of everything."""
    for family in names.FAMILIES:
        exchange, queue = f"{prefix}.tenure.{family}", f"{prefix}.observer.{family}"
        await channel.exchange_declare(exchange, exchange_type="topic", durable=True)
        await channel.queue_declare(queue, durable=True, arguments=QUORUM)
        await channel.queue_bind(queue, exchange, "#")


async def taken(channel: AbstractChannel, queue: str, start: str) -> list[Message]:
    """All that is in the queue, in its order: up to a mark that is put there now."""
    found, ended = list[Message](), asyncio.Event()

    async def on_message(got: DeliveredMessage) -> None:
        if got.header.properties.message_id == END:
            ended.set()
        else:
            found.append(
                Message(
                    id=got.header.properties.message_id or "", name=f"{start}{got.routing_key}", body=bytes(got.body)
                )
            )

    await channel.basic_publish(b"", routing_key=queue, properties=spec.Basic.Properties(message_id=END))
    await channel.basic_consume(queue, on_message, no_ack=True)
    await asyncio.wait_for(ended.wait(), 60)
    return found


class TestRabbit(SinkSuite):
    drops_repeats = False

    @pytest.fixture(autouse=True)
    def server_of_the_test(self, rabbitmq: RabbitServer) -> None:
        self.server, self.prefix = rabbitmq, f"t{next(_prefixes)}"
        self.url = f"{rabbitmq.url}?prefix={self.prefix}"
        self.got: dict[str, list[Message]] = {family: [] for family in names.FAMILIES}
        ask(rabbitmq.url, lambda channel: observe(channel, self.prefix))

    def open_sink(self) -> Sink:
        return RabbitSink(self.url)

    def received(self, family: str) -> list[Message]:
        queue = f"{self.prefix}.observer.{family}"
        self.got[family] += ask(self.server.url, lambda channel: taken(channel, queue, f"{family}."))
        return list(self.got[family])

    def kill(self) -> None:
        self.server.kill()

    def restart(self) -> None:
        self.server.start()

    def wipe(self) -> None:
        self.server.wipe()
        ask(self.server.url, lambda channel: observe(channel, self.prefix))

    def freeze(self) -> None:
        self.server.nodes[0].freeze()

    def thaw(self) -> None:
        self.server.nodes[0].thaw()

    @pytest.mark.nightly  # each start of RabbitMQ takes seconds of processor time
    def test_nothing_is_lost_when_the_server_is_killed_again_and_again(self, sink: Sink) -> None:
        super().test_nothing_is_lost_when_the_server_is_killed_again_and_again(sink)

    @pytest.mark.nightly
    def test_a_server_that_is_down_is_unavailable_and_then_works_again(self, sink: Sink) -> None:
        super().test_a_server_that_is_down_is_unavailable_and_then_works_again(sink)


@pytest.fixture
def prefix() -> str:
    return f"t{next(_prefixes)}"


@pytest.fixture
def sink(rabbitmq: RabbitServer, prefix: str) -> Iterator[RabbitSink]:
    sink = RabbitSink(f"{rabbitmq.url}?prefix={prefix}")
    yield sink
    sink.close()


def test_every_command_has_its_queue(rabbitmq: RabbitServer, sink: RabbitSink, prefix: str) -> None:
    queues = {
        names.EXECUTE: "tenure.cmd.task.execute",
        names.agent_command_name("co der", "review"): "tenure.cmd.agent.co:20der",
        names.mailbox_name("ann"): "tenure.cmd.agent.instance.ann",
        names.dead_letter_name("code"): "tenure.dlq",
    }
    sent = [message(number, name) for number, name in enumerate(queues)]
    assert sink.send(sent, TIMEOUT) == 4
    for number, queue in enumerate(queues.values()):
        found = ask(rabbitmq.url, lambda channel, queue=queue: taken(channel, f"{prefix}.{queue}", ""))
        assert numbers(found) == [number]


def test_a_queue_that_is_set_otherwise_is_used_and_named_but_not_changed(rabbitmq: RabbitServer, prefix: str) -> None:
    queue = f"{prefix}.tenure.cmd.task.execute"
    ask(rabbitmq.url, lambda channel: channel.queue_declare(queue, durable=True, arguments=QUORUM))
    sink = RabbitSink(f"{rabbitmq.url}?prefix={prefix}")
    try:
        assert sink.send([message(0, names.EXECUTE)], TIMEOUT) == 1
        (difference,) = sink.differences()
        assert queue in difference
        assert "x-m" in difference
        assert sink.lag() == 1
    finally:
        sink.close()


def test_a_queue_that_was_deleted_is_created_again(rabbitmq: RabbitServer, sink: RabbitSink, prefix: str) -> None:
    queue = f"{prefix}.tenure.cmd.task.execute"
    assert sink.send([message(0, names.EXECUTE)], TIMEOUT) == 1
    ask(rabbitmq.url, lambda channel: channel.queue_delete(queue))
    page = [message(1), message(2, names.EXECUTE), message(3)]
    assert sink.send(page, TIMEOUT) == 1  # the command came back: no queue takes it
    assert sink.send(page[1:], TIMEOUT) == 2
    assert numbers(ask(rabbitmq.url, lambda channel: taken(channel, queue, ""))) == [2]


def test_messages_are_persistent(rabbitmq: RabbitServer, sink: RabbitSink, prefix: str) -> None:
    """A classic queue, as an observer may have, loses others in a restart."""
    assert sink.send([message(0, names.EXECUTE)], TIMEOUT) == 1
    got = ask(rabbitmq.url, lambda channel: channel.basic_get(f"{prefix}.tenure.cmd.task.execute", no_ack=True))
    assert got.header.properties.delivery_mode == 2


def test_commands_that_nobody_takes_are_limited(sink: RabbitSink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenure.sinks.rabbitmq.COMMANDS_WAITING", 5)
    assert sink.send([message(number, names.EXECUTE) for number in range(20)], TIMEOUT) == 20
    assert sink.lag() == 5


def test_a_wrong_password_is_named_without_it(rabbitmq: RabbitServer) -> None:
    sink = RabbitSink(rabbitmq.url.replace("guest:guest", "guest:wr0ng"))
    try:
        with pytest.raises(SinkUnavailable) as raised:
            sink.identity()
        assert "wr0ng" not in raised.value.message
    finally:
        sink.close()


def identity_of(sink: RabbitSink) -> str:
    """As a relay reads it: while the broker makes the queue for another, it may answer with an error."""
    for _ in range(20):
        with suppress(SinkUnavailable):
            return sink.identity()
    return sink.identity()


def test_two_that_read_the_identity_at_once_read_the_same(rabbitmq: RabbitServer, prefix: str) -> None:
    sinks = [RabbitSink(f"{rabbitmq.url}?prefix={prefix}") for _ in range(4)]
    found: list[str] = []
    threads = [threading.Thread(target=lambda one=one: found.append(identity_of(one))) for one in sinks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    last = RabbitSink(f"{rabbitmq.url}?prefix={prefix}")
    try:
        settled = identity_of(last)
        assert settled in found
    finally:
        for one in (*sinks, last):
            one.close()
    again = RabbitSink(f"{rabbitmq.url}?prefix={prefix}")
    assert again.identity() == settled
    again.close()


class TestRabbitSource(SourceSuite):
    @pytest.fixture(autouse=True)
    def server_of_the_test(self, rabbitmq: RabbitServer) -> None:
        self.server, self.url = rabbitmq, f"{rabbitmq.url}?prefix=t{next(_prefixes)}"

    def open_sink(self) -> Sink:
        return RabbitSink(self.url)

    def open_source(self, subscription: Subscription) -> Source:
        return RabbitSource(self.url, subscription)

    def kill(self) -> None:
        self.server.kill()

    def restart(self) -> None:
        self.server.start()

    def wipe(self) -> None:
        self.server.wipe()

    def hasten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A connection that ends gives its messages back; there is no time to shorten."""

    def vanish(self, source: Source) -> None:
        source.close()

    @pytest.mark.nightly  # as above; `TestRabbit` starts the server again in every run, `test_worker_source` wipes it
    def test_a_server_that_is_down_is_unavailable_and_then_works_again(self, sink: Sink, source: Source) -> None:
        super().test_a_server_that_is_down_is_unavailable_and_then_works_again(sink, source)

    @pytest.mark.nightly
    def test_a_server_that_was_wiped_delivers_what_is_sent_next(self, sink: Sink, source: Source) -> None:
        super().test_a_server_that_was_wiped_delivers_what_is_sent_next(sink, source)

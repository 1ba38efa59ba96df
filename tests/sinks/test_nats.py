"""A sink in NATS JetStream keeps the contract; streams that another has made are used as they are."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import nats as library
import pytest
from nats.js.api import AckPolicy, ConsumerConfig
from nats.js.client import JetStreamContext
from nats.js.errors import NotFoundError

from tenure.core.errors import InvalidInput
from tenure.sinks.nats import NatsSink
from tenure.sinks.nats_source import NatsSource
from tenure.sinks.port import Message, Sink, SinkUnavailable, Source
from tenure.sinks.subscriptions import Subscription
from tenure.testing.suites.sink import TIMEOUT, SinkSuite, message, numbers
from tenure.testing.suites.source import SourceSuite
from tests.servers.nats import NatsServer

UNCONFIRMED = ConsumerConfig(ack_policy=AckPolicy.NONE)
_prefixes = itertools.count(1)


def ask(url: str, work: Callable[[JetStreamContext], Awaitable[Any]]) -> Any:
    """Behind the sink's back."""

    async def run() -> Any:
        client = await library.connect(url)
        try:
            return await work(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(run())


def stored(url: str, stream: str, prefix: str) -> list[Message]:
    """What a stream has, in its order."""

    async def read(js: JetStreamContext) -> list[Message]:
        try:
            info = await js.stream_info(stream)
        except NotFoundError:
            return []
        found = list[Message]()
        subscription = await js.pull_subscribe("", "observer", stream=stream, config=UNCONFIRMED)
        while len(found) < info.state.messages:
            for got in await subscription.fetch(min(500, info.state.messages - len(found)), timeout=5):
                found.append(
                    Message(id=got.headers["Nats-Msg-Id"], name=got.subject.removeprefix(f"{prefix}."), body=got.data)
                )
        await js.delete_consumer(stream, "observer")
        return found

    return ask(url, read)


class TestNats(SinkSuite):
    @pytest.fixture(autouse=True)
    def server_of_the_test(self, nats: NatsServer) -> None:
        self.server, self.prefix = nats, f"t{next(_prefixes)}"
        self.url = f"{nats.url}/?prefix={self.prefix}"

    def open_sink(self) -> Sink:
        return NatsSink(self.url)

    def received(self, family: str) -> list[Message]:
        return stored(self.server.url, f"{self.prefix.upper()}_{family.upper()}", self.prefix)

    def kill(self) -> None:
        self.server.kill()

    def restart(self) -> None:
        self.server.start()

    def wipe(self) -> None:
        self.server.wipe()

    def freeze(self) -> None:
        self.server.freeze()

    def thaw(self) -> None:
        self.server.thaw()


@pytest.fixture
def url(nats: NatsServer) -> str:
    return f"{nats.url}/?prefix=t{next(_prefixes)}"


@pytest.fixture
def sink(url: str) -> Iterator[NatsSink]:
    sink = NatsSink(url)
    yield sink
    sink.close()


def test_streams_are_named_after_the_prefix_and_keep_messages_as_specified(
    nats: NatsServer, sink: NatsSink, url: str
) -> None:
    sink.identity()
    prefix = url.partition("prefix=")[2]

    async def look(js: JetStreamContext) -> dict[str, Any]:
        return {name: (await js.stream_info(f"{prefix.upper()}_{name}")).config for name in ("CMD", "EVT", "DLQ")}

    streams = ask(nats.url, look)
    assert {name: config.subjects for name, config in streams.items()} == {
        "CMD": [f"{prefix}.cmd.>"], "EVT": [f"{prefix}.evt.>"], "DLQ": [f"{prefix}.dlq.>"]
    }  # fmt: skip
    assert [streams[name].max_age for name in ("CMD", "EVT", "DLQ")] == [7 * 86400, 30 * 86400, 0]
    assert {config.duplicate_window for config in streams.values()} == {120}
    assert sink.differences() == []


def test_a_stream_that_is_set_otherwise_is_used_and_named_but_not_changed(nats: NatsServer, url: str) -> None:
    prefix = url.partition("prefix=")[2]
    stream = f"{prefix.upper()}_EVT"
    ask(nats.url, lambda js: js.add_stream(name=stream, subjects=[f"{prefix}.evt.>"], max_age=60, duplicate_window=10))
    sink = NatsSink(url)
    try:
        assert sink.send([message(1)], TIMEOUT) == 1
        assert sink.differences() == [
            f"stream {stream}: max_age is 60.0, not 2592000",
            f"stream {stream}: duplicate_window is 10.0, not 120",
        ]
        assert ask(nats.url, lambda js: js.stream_info(stream)).config.max_age == 60
    finally:
        sink.close()


def test_a_stream_that_does_not_take_our_subjects_is_an_error_that_says_so(nats: NatsServer, url: str) -> None:
    prefix = url.partition("prefix=")[2]
    ask(nats.url, lambda js: js.add_stream(name=f"{prefix.upper()}_EVT", subjects=[f"{prefix}.other.>"]))
    sink = NatsSink(url)
    try:
        with pytest.raises(SinkUnavailable, match="no stream takes this subject"):
            sink.send([message(1)], TIMEOUT)
    finally:
        sink.close()


def test_what_comes_before_a_message_that_is_refused_counts(nats: NatsServer, url: str) -> None:
    prefix = url.partition("prefix=")[2]
    stream = f"{prefix.upper()}_EVT"
    ask(nats.url, lambda js: js.add_stream(name=stream, subjects=[f"{prefix}.evt.>"], max_msg_size=1000))
    sink = NatsSink(url)
    try:
        page = [message(0), message(1), message(2, size=2000), message(3)]
        assert sink.send(page, TIMEOUT) == 2
        with pytest.raises(SinkUnavailable, match="message size exceeds"):
            sink.send(page[2:], TIMEOUT)
    finally:
        sink.close()


def test_a_stream_that_was_deleted_is_created_again_and_changes_the_identity(
    nats: NatsServer, sink: NatsSink, url: str
) -> None:
    before = sink.identity()
    ask(nats.url, lambda js: js.delete_stream(f"{url.partition('prefix=')[2].upper()}_EVT"))
    assert sink.send([message(0)], TIMEOUT) == 1
    assert sink.identity() != before


def test_the_lag_is_what_the_slowest_consumer_has_not_acknowledged(nats: NatsServer, sink: NatsSink, url: str) -> None:
    prefix = url.partition("prefix=")[2]
    assert sink.lag() == 0
    assert sink.send([message(number) for number in range(5)], TIMEOUT) == 5

    async def consume(js: JetStreamContext) -> None:
        await js.pull_subscribe("", durable="slow", stream=f"{prefix.upper()}_EVT")

    ask(nats.url, consume)
    assert sink.lag() == 5


def test_a_wrong_password_is_named_without_it(nats: NatsServer) -> None:
    sink = NatsSink(nats.url.replace("s3cret-nats", "wr0ng"))
    try:
        with pytest.raises(SinkUnavailable) as raised:
            sink.identity()
        assert "wr0ng" not in raised.value.message
        assert "uthorization" in raised.value.message
    finally:
        sink.close()


@pytest.mark.parametrize("option", ["replicas=0", "replicas=x", "prefix=a.b", "prefix=", "other=1"])
def test_an_option_that_is_not_valid_is_refused_at_once(option: str) -> None:
    if option == "prefix=":
        NatsSink("nats://user:s3cret@localhost/?prefix=").close()
        return
    with pytest.raises(InvalidInput) as raised:
        NatsSink(f"nats://user:s3cret@localhost/?{option}")
    assert "s3cret" not in raised.value.message


def test_the_second_host_is_used_where_the_first_is_down(nats: NatsServer, url: str) -> None:
    sink = NatsSink(url.replace("127.0.0.1", "127.0.0.1:1,127.0.0.1"))
    try:
        assert sink.send([message(0)], TIMEOUT) == 1
    finally:
        sink.close()
    assert numbers(stored(nats.url, f"{url.partition('prefix=')[2].upper()}_EVT", url.partition("prefix=")[2])) == [0]


class TestNatsSource(SourceSuite):
    @pytest.fixture(autouse=True)
    def server_of_the_test(self, nats: NatsServer) -> None:
        self.server, self.url = nats, f"{nats.url}/?prefix=t{next(_prefixes)}"

    def open_sink(self) -> Sink:
        return NatsSink(self.url)

    def open_source(self, subscription: Subscription) -> Source:
        return NatsSource(self.url, subscription)

    def kill(self) -> None:
        self.server.kill()

    def restart(self) -> None:
        self.server.start()

    def wipe(self) -> None:
        self.server.wipe()

    def hasten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tenure.sinks.nats_source.ACKNOWLEDGE_WITHIN", 1.0)

"""A sink in the streams of a Valkey server keeps the contract; what may be forgotten is named."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import redis

from tenure.core.errors import InvalidInput
from tenure.sinks import names
from tenure.sinks.port import Message, Sink, SinkUnavailable, Source
from tenure.sinks.redis_source import RedisSource
from tenure.sinks.redis_streams import RedisSink
from tenure.sinks.subscriptions import Subscription
from tenure.testing.suites.sink import TIMEOUT, SinkSuite, message, numbers
from tenure.testing.suites.source import SourceSuite
from tests.servers.valkey import ValkeyServer

_prefixes = itertools.count(1)
QUEUES = {names.EVENTS: "evt", names.COMMANDS: "cmd:task.execute", names.DEAD_LETTERS: "dlq"}


def entries(server: ValkeyServer, stream: str) -> list[Message]:
    """Behind the sink's back."""
    with redis.Redis.from_url(server.url()) as client:
        return [
            Message(id=entry[b"id"].decode(), name=entry[b"name"].decode(), body=entry[b"body"])
            for _, entry in client.xrange(stream)
        ]


def url_of(server: ValkeyServer, prefix: str, more: str = "") -> str:
    return f"{server.url().replace('redis://', 'redis+stream://')}?prefix={prefix}{more}"


class TestRedis(SinkSuite):
    @pytest.fixture(autouse=True)
    def server_of_the_test(self, valkey: ValkeyServer) -> None:
        self.server, self.prefix = valkey, f"t{next(_prefixes)}"

    def open_sink(self) -> Sink:
        return RedisSink(url_of(self.server, self.prefix))

    def received(self, family: str) -> list[Message]:
        return entries(self.server, f"tenure:{self.prefix}:{QUEUES[family]}")

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
def prefix() -> str:
    return f"t{next(_prefixes)}"


@pytest.fixture
def sink(valkey: ValkeyServer, prefix: str) -> Iterator[RedisSink]:
    sink = RedisSink(url_of(valkey, prefix))
    yield sink
    sink.close()


def test_every_command_has_its_stream(valkey: ValkeyServer, sink: RedisSink, prefix: str) -> None:
    streams = {
        names.EXECUTE: "cmd:task.execute",
        names.agent_command_name("coder", "review"): "cmd:agent.coder",
        names.mailbox_name("ann"): "cmd:agent.instance.ann",
        names.dead_letter_name("code"): "dlq",
        "evt.agent.coder.registered.v1": "evt",
    }
    assert sink.send([message(number, name) for number, name in enumerate(streams)], TIMEOUT) == len(streams)
    for number, stream in enumerate(streams.values()):
        assert numbers(entries(valkey, f"tenure:{prefix}:{stream}")) == [number]
    with redis.Redis.from_url(valkey.url()) as client:
        assert client.ttl(f"tenure:{prefix}:cmd:agent.instance.ann") > 0
        assert client.ttl(f"tenure:{prefix}:cmd:agent.coder") == -1


def test_a_stream_is_capped(valkey: ValkeyServer, prefix: str) -> None:
    sink = RedisSink(url_of(valkey, prefix, "&length=100"))
    assert sink.send([message(number) for number in range(2_000)], TIMEOUT) == 2_000
    sink.close()
    found = numbers(entries(valkey, f"tenure:{prefix}:evt"))
    assert found[-1] == 1_999
    assert 100 <= len(found) < 400  # the server removes whole nodes


def test_as_many_ids_are_kept_as_a_repeat_may_have(
    valkey: ValkeyServer, sink: RedisSink, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.sinks.redis_streams.IDS_KEPT", 10)
    sent = [message(number) for number in range(30)]
    assert sink.send(sent, TIMEOUT) == 30
    assert sink.send(sent[20:], TIMEOUT) == 10
    with redis.Redis.from_url(valkey.url()) as client:
        assert client.zcard(f"tenure:{prefix}:evt:sent") == 10
    assert numbers(entries(valkey, f"tenure:{prefix}:evt")) == list(range(30))


def test_what_is_sent_again_after_a_rewind_is_appended_again(
    valkey: ValkeyServer, sink: RedisSink, prefix: str
) -> None:
    sent = [message(number) for number in range(3)]
    assert sink.send(sent, TIMEOUT) == 3
    sink.rewound()
    assert sink.send(sent[1:], TIMEOUT) == 2
    assert numbers(entries(valkey, f"tenure:{prefix}:evt")) == [0, 1, 2, 1, 2]


def test_a_command_is_announced_again_although_its_id_is_known(
    valkey: ValkeyServer, sink: RedisSink, prefix: str
) -> None:
    for sequence in (5, 5, 0, 0):
        assert sink.send([message(1, names.EXECUTE, sequence=sequence)], TIMEOUT) == 1
    assert numbers(entries(valkey, f"tenure:{prefix}:cmd:task.execute")) == [1, 1, 1]


def test_the_lag_is_what_the_slowest_group_has_not_acknowledged(
    valkey: ValkeyServer, sink: RedisSink, prefix: str
) -> None:
    assert sink.send([message(number, names.EXECUTE) for number in range(5)], TIMEOUT) == 5
    assert sink.lag() == 0  # no group reads it
    stream = f"tenure:{prefix}:cmd:task.execute"
    with redis.Redis.from_url(valkey.url()) as client:
        client.xgroup_create(stream, "pool", "0")
        client.xreadgroup("pool", "one", {stream: ">"}, count=2)
    assert sink.lag() == 5


def test_a_server_without_a_log_on_disk_is_named_and_a_restart_changes_its_identity() -> None:
    with ValkeyServer() as server:
        sink = RedisSink(url_of(server, "p"))
        before = sink.identity()
        assert sink.identity() == before
        assert [difference.split()[0] for difference in sink.differences()] == ["appendonly"]
        server.kill()
        server.start()
        assert sink.identity() != before
        sink.close()


def test_a_durable_server_has_no_differences(sink: RedisSink) -> None:
    assert sink.differences() == []


def test_a_wrong_password_is_named_without_it(valkey: ValkeyServer) -> None:
    sink = RedisSink(url_of(valkey, "p").replace("://", "://user:wr0ng@"))
    with pytest.raises(SinkUnavailable) as raised:
        sink.send([message(0)], TIMEOUT)
    assert "wr0ng" not in raised.value.message
    sink.close()


@pytest.mark.parametrize("tail", ["host/zero", "host,other/0", "host/0?length=0", "host/0?keys=1", "/0", "host:x/0"])
def test_a_url_that_is_not_valid_is_refused_at_once(tail: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        RedisSink(f"redis+stream://user:s3cret@{tail}")
    assert "s3cret" not in f"{raised.value.message} {raised.value.hint}"


class TestRedisSource(SourceSuite):
    @pytest.fixture(autouse=True)
    def server_of_the_test(self, valkey: ValkeyServer) -> None:
        self.server, self.url = valkey, url_of(valkey, f"t{next(_prefixes)}")

    def open_sink(self) -> Sink:
        return RedisSink(self.url)

    def open_source(self, subscription: Subscription) -> Source:
        return RedisSource(self.url, subscription)

    def kill(self) -> None:
        self.server.kill()

    def restart(self) -> None:
        self.server.start()

    def wipe(self) -> None:
        self.server.wipe()

    def hasten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tenure.sinks.redis_source.ACKNOWLEDGE_WITHIN", 1.0)

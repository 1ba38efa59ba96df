"""A URL becomes the sink of its scheme; errors say what to do and show no password."""

from __future__ import annotations

import importlib.metadata
import sys
from types import SimpleNamespace

import pytest

from tenure.core.errors import InvalidInput
from tenure.sinks.nats import NatsSink
from tenure.sinks.nats_source import NatsSource
from tenure.sinks.open_sink import BROKERS, open_sink, open_source, shown
from tenure.sinks.rabbitmq import RabbitSink
from tenure.sinks.rabbitmq_source import RabbitSource
from tenure.sinks.redis_source import RedisSource
from tenure.sinks.redis_streams import RedisSink
from tenure.sinks.subscriptions import Subscription
from tenure.testing.memory_sink import MemorySink

KINDS = {
    "nats": (NatsSink, NatsSource), "tls": (NatsSink, NatsSource), "amqp": (RabbitSink, RabbitSource),
    "amqps": (RabbitSink, RabbitSource), "redis+stream": (RedisSink, RedisSource),
    "rediss+stream": (RedisSink, RedisSource),
}  # fmt: skip


@pytest.mark.parametrize("scheme", sorted(BROKERS))
def test_each_scheme_has_its_sink_and_source(scheme: str) -> None:
    sink, source = KINDS[scheme]
    url = f"{scheme}://user:s3cret@localhost:1"
    assert type(open_sink(url, prefix="team")) is sink
    assert type(open_source(url, Subscription("pool"))) is source


@pytest.mark.parametrize("scheme", sorted(BROKERS))
@pytest.mark.parametrize(
    "tail", ["", "?nonsense=1", "host:99999", "host/?prefix=a b", "host/?prefix=..", "ho st", "host:1,/", "[::1"]
)
def test_a_url_that_is_not_valid_is_refused_without_its_password(scheme: str, tail: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        open_sink(f"{scheme}://user:s3cret@{tail}")
    assert "s3cret" not in f"{raised.value.message} {raised.value.hint}"


@pytest.mark.parametrize(("scheme", "library"), [("nats", "nats"), ("amqp", "aiormq"), ("redis+stream", "redis")])
def test_a_missing_library_is_named_with_its_extra(scheme: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    for path in (BROKERS[scheme].sink, BROKERS[scheme].source):
        monkeypatch.delitem(sys.modules, f"tenure.sinks.{path.partition(':')[0]}", raising=False)
    extra = BROKERS[scheme].extra
    with pytest.raises(InvalidInput, match=rf"the {extra} sink needs the extra: install tenure\[{extra}\]"):
        open_sink(f"{scheme}://host")


@pytest.mark.parametrize("url", ["", "host", "mqtt://user:s3cret@host"])
def test_an_unknown_scheme_is_refused_and_the_known_are_named(url: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        open_sink(url)
    assert "nats" in str(raised.value.hint)
    assert "s3cret" not in f"{raised.value.message} {raised.value.hint}"
    with pytest.raises(InvalidInput):
        open_source(url, Subscription("pool"))


def test_a_third_party_adds_a_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = MemorySink()
    entry = SimpleNamespace(name="mine", load=lambda: lambda url: sink)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry] if group == "tenure.sinks" else [])
    assert open_sink("mine://anywhere") is sink


def test_a_prefix_of_the_url_and_another_of_the_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="the prefix 'a', the setting 'b'"):
        open_sink("nats://localhost/?prefix=a", prefix="b")
    assert isinstance(open_sink("nats://localhost/?prefix=a", prefix="a"), NatsSink)


def test_a_pool_that_is_not_valid_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"the pool 'a\.b' is not valid"):
        open_source("nats://localhost", Subscription("a.b"))


def test_a_url_is_shown_without_login_and_options() -> None:
    assert shown("amqp://user:p%40ss@host:5672,other/vhost?ca=/x") == "amqp://host:5672,other"

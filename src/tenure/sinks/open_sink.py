"""From a URL to a sink or a source: `nats://`, `tls://` (NATS), `amqp://`, `amqps://`, `redis+stream://`,
`rediss+stream://`.

Third parties add a scheme with an entry point in the group `tenure.sinks`: a callable (url) → Sink. The group is looked
up only for a scheme that is not known here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from tenure.core.errors import InvalidInput
from tenure.core.urls import split_url

if TYPE_CHECKING:
    from tenure.sinks.port import Sink, Source
    from tenure.sinks.subscriptions import Subscription

GROUP = "tenure.sinks"


class Broker(NamedTuple):
    extra: str
    sink: str  # module and class below `tenure.sinks`
    source: str
    libraries: tuple[str, ...]  # that the extra brings


_NATS = Broker("nats", "nats:NatsSink", "nats_source:NatsSource", ("nats",))
_RABBITMQ = Broker("rabbitmq", "rabbitmq:RabbitSink", "rabbitmq_source:RabbitSource", ("aiormq",))
_REDIS = Broker("redis", "redis_streams:RedisSink", "redis_source:RedisSource", ("redis",))
BROKERS = {
    "nats": _NATS, "tls": _NATS, "amqp": _RABBITMQ, "amqps": _RABBITMQ, "redis+stream": _REDIS,
    "rediss+stream": _REDIS,
}  # fmt: skip


def open_sink(url: str, *, prefix: str = "") -> Sink:
    """The sink at `url`; it connects when it is first used. Raises InvalidInput, which never has the URL's password."""
    scheme = _scheme(url)
    if scheme not in BROKERS:
        return _of_third_party(scheme, url)
    broker = BROKERS[scheme]
    sink: Sink = _loaded(broker, broker.sink)(prefixed(url, prefix))
    return sink


def open_source(url: str, subscription: Subscription, *, prefix: str = "") -> Source:
    """Where the worker's commands come from."""
    scheme = _scheme(url)
    if scheme not in BROKERS:
        raise InvalidInput(f"no source has the scheme {scheme[:40]!r}", f"There are: {', '.join(sorted(BROKERS))}.")
    broker = BROKERS[scheme]
    source: Source = _loaded(broker, broker.source)(prefixed(url, prefix), subscription)
    return source


def shown(url: str) -> str:
    """The URL for people and logs: without login and options."""
    parts = split_url(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _scheme(url: str) -> str:
    scheme, colon, _ = url.partition("://")
    if not colon:
        raise InvalidInput("a sink's URL has no scheme", "As in nats://host:4222 or amqp://host:5672.")
    return scheme


def _loaded(broker: Broker, path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(f"tenure.sinks.{module}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in broker.libraries:
            raise
        raise InvalidInput(f"the {broker.extra} sink needs the extra: install tenure[{broker.extra}]") from None


def prefixed(url: str, prefix: str) -> str:
    """The URL with the prefix of the settings."""
    if not prefix:
        return url
    own = dict(parse_qsl(split_url(url).query)).get("prefix")
    if own is not None and own != prefix:
        raise InvalidInput(f"{shown(url)}: the URL has the prefix {own[:40]!r}, the setting {prefix[:40]!r}")
    return url if own is not None else f"{url}{'&' if '?' in url else '?'}prefix={prefix}"


def _of_third_party(scheme: str, url: str) -> Sink:
    from importlib.metadata import entry_points

    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if scheme not in known:
        names = ", ".join(sorted({*BROKERS, *known}))
        raise InvalidInput(f"no sink has the scheme {scheme[:40]!r}", f"There are: {names}.")
    sink: Sink = known[scheme].load()(url)
    return sink

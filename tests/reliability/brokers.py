"""Real brokers for the harnesses of relays: started, killed, wiped, and read behind the sink's back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from tenure.sinks import names
from tenure.sinks.port import Message
from tests.servers import processes
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitServer
from tests.servers.valkey import ValkeyServer
from tests.sinks import test_nats, test_rabbitmq, test_redis_streams

PREFIX = "r"


class Server(Protocol):
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def wipe(self) -> None: ...


class Broker:
    """Keeps its data when it is killed and started again; `wipe` starts it without them."""

    drops_repeats = True  # within its window
    server: Server
    url: str  # of the sink

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def start(self) -> None:
        self.server.start()

    def kill(self) -> None:
        self.server.kill()

    def wipe(self) -> None:
        self.server.wipe()

    def received(self, family: str) -> Sequence[Message]:
        """Everything that the sink has stored there, in its order."""
        raise NotImplementedError


class Nats(Broker):
    def __init__(self) -> None:
        self.server = self._nats = NatsServer()
        self.url = f"{self._nats.url}/?prefix={PREFIX}"

    def received(self, family: str) -> Sequence[Message]:
        return test_nats.stored(self._nats.url, f"{PREFIX.upper()}_{family.upper()}", PREFIX)


class Rabbit(Broker):
    drops_repeats = False

    def __init__(self) -> None:
        self.server = self._rabbit = RabbitServer()
        self.url = f"{self._rabbit.url}?prefix={PREFIX}"

    def start(self) -> None:
        super().start()
        self._observe()

    def wipe(self) -> None:
        super().wipe()
        self._observe()

    def received(self, family: str) -> Sequence[Message]:
        queue = f"{PREFIX}.observer.{family}"
        found: list[Message] = test_rabbitmq.ask(
            self._rabbit.url, lambda channel: test_rabbitmq.taken(channel, queue, f"{family}.")
        )
        return found

    def _observe(self) -> None:
        test_rabbitmq.ask(self._rabbit.url, lambda channel: test_rabbitmq.observe(channel, PREFIX))


class Redis(Broker):
    def __init__(self) -> None:
        self.server = self._valkey = ValkeyServer(is_durable=True)
        self.url = test_redis_streams.url_of(self._valkey, PREFIX)

    def received(self, family: str) -> Sequence[Message]:
        return test_redis_streams.entries(self._valkey, f"tenure:{PREFIX}:{test_redis_streams.QUEUES[family]}")


BROKERS: dict[str, type[Broker]] = {"nats": Nats, "rabbitmq": Rabbit, "redis": Redis}
FAMILIES = names.FAMILIES
Unavailable = processes.Unavailable

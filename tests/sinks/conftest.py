"""The brokers, each running for the whole session; a test that kills one starts it again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.fixtures import running
from tests.servers.nats import NatsServer
from tests.servers.rabbitmq import RabbitServer
from tests.servers.valkey import ValkeyServer


@pytest.fixture(scope="session")
def nats() -> Iterator[NatsServer]:
    server = NatsServer(password="s3cret-nats")
    with running(server):
        yield server


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitServer]:
    server = RabbitServer()
    with running(server):
        yield server


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeyServer]:
    server = ValkeyServer(is_durable=True)
    with running(server):
        yield server

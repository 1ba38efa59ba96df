"""What tests ask for: `postgres` is one server for the whole session, `pgbouncer` a pooler before it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.servers.pgbouncer import BEHIND, PgbouncerServer
from tests.servers.postgres import WHERE, PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running server; its URL is in the environment, where processes that a test starts find it."""
    server = PostgresServer()
    try:
        server.start()
        os.environ[WHERE] = server.url
        yield server
    finally:
        os.environ.pop(WHERE, None)
        server.stop()


@pytest.fixture(scope="session")
def pgbouncer(postgres: PostgresServer) -> Iterator[PgbouncerServer]:
    server = PgbouncerServer(postgres)
    try:
        server.start()
        os.environ[BEHIND] = f"{server.url}?direct={server.direct}"
        yield server
    finally:
        os.environ.pop(BEHIND, None)
        server.stop()

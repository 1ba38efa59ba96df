"""What tests ask for: `postgres` is one server for the whole session, `pgbouncer` a pooler before it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.servers.pgbouncer import BEHIND, PgbouncerServer
from tests.servers.postgres import WHERE, PostgresServer
from tests.servers.processes import Server, Unavailable, is_root


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running server; its URL is in the environment, where processes that a test starts find it."""
    server = PostgresServer()
    with running(server), told(WHERE, server.url):
        yield server


@pytest.fixture(scope="session")
def pgbouncer(postgres: PostgresServer) -> Iterator[PgbouncerServer]:
    server = PgbouncerServer(postgres)
    with running(server), told(BEHIND, f"{server.url}?direct={server.direct}"):
        yield server


@contextmanager
def running(server: Server) -> Iterator[None]:
    """A server that cannot be had: root could have installed it, so there it is a failure."""
    try:
        try:
            server.start()
        except Unavailable as why:
            if is_root():
                pytest.fail(str(why))
            pytest.skip(str(why))
        yield
    finally:
        server.stop()


@contextmanager
def told(name: str, value: str) -> Iterator[None]:
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name, None)

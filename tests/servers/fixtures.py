"""Fixtures for several folders: servers that run for the whole session, and programs that a bare Debian lacks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from tenure.validators import sandbox
from tests.servers.mariadb import MariadbServer
from tests.servers.pgbouncer import BEHIND, PgbouncerServer
from tests.servers.postgres import PostgresServer
from tests.servers.processes import Server, Unavailable, found_or_installed, is_root
from tests.servers.restricted import prepare
from tests.servers.store_servers import told
from tests.servers.valkey import ValkeyServer, durable, durable_redis


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running server. Its URL is in the environment, for the processes that a test starts."""
    server = PostgresServer()
    with running(server), told("postgres", server):
        yield server


@pytest.fixture(scope="session")
def restricted(postgres: PostgresServer) -> PostgresServer:
    """The server, with the roles of stores under row-level security."""
    prepare(postgres)
    return postgres


@pytest.fixture(scope="session")
def pgbouncer(postgres: PostgresServer) -> Iterator[PgbouncerServer]:
    server = PgbouncerServer(postgres)
    with running(server):
        os.environ[BEHIND] = f"{server.url}?direct={server.direct}"
        yield server
        del os.environ[BEHIND]


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """As `postgres`."""
    server = MariadbServer()
    with running(server), told("mariadb", server):
        yield server


@pytest.fixture(scope="session")
def valkey() -> Iterator[ValkeyServer]:
    """As `postgres`; it syncs every write."""
    server = durable()
    with running(server), told("valkey", server):
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[ValkeyServer]:
    """As `valkey`, with Debian's Redis."""
    server = durable_redis()
    with running(server), told("redis", server):
        yield server


@pytest.fixture(scope="session")
def bwrap() -> str:
    """The program. Skips if the machine allows no sandbox, as some containers do."""
    path = str(provided("bwrap"))
    sandbox.trouble.cache_clear()  # it may have been called before the installation
    trouble = sandbox.trouble()
    if trouble is not None:
        pytest.skip(trouble)
    return path


@pytest.fixture(scope="session")
def git() -> Path:
    return provided("git")


def provided(program: str) -> Path:
    """The path of the program. Root installs a missing one, or the test fails; for other users the test is skipped."""
    try:
        return found_or_installed(program)
    except Unavailable as why:
        missing(str(why))


@contextmanager
def running(server: Server) -> Iterator[None]:
    try:
        try:
            server.start()
        except Unavailable as why:
            missing(str(why))
        yield
    finally:
        server.stop()


def missing(why: str) -> NoReturn:
    """Fail if root runs the tests, who could have installed it; skip otherwise."""
    if is_root():
        pytest.fail(why)
    pytest.skip(why)

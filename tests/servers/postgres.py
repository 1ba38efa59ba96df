"""A PostgreSQL server of our own, durable as shipped: schemas in it for tests, databases for measurements."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

import psycopg

from tenure.stores.port import Clock
from tenure.stores.postgres import Postgres
from tenure.stores.postgres.address import parse
from tenure.stores.postgres.connection import Connection, connect
from tenure.stores.sql.connection_pool import ConnectionPool
from tests.servers import processes

WHERE = "TENURE_TEST_POSTGRES"  # the server's URL, for processes that a test starts
ROOM = 1 << 30  # bytes
SCHEMAS = 3  # used in turn: a test may open a second folder while the first is in use
# Others' transactions hold cursors back: the autovacuum of a busy machine must not decide when a test sees an event.
_SETTINGS = {"listen_addresses": "127.0.0.1", "autovacuum": "off", "max_connections": "200", "shared_buffers": "64MB"}
# For a measurement: durable and swept as shipped, with memory and log enough that neither is what is measured.
_MEASURED = {
    "autovacuum": "on", "shared_buffers": "256MB", "max_wal_size": "4GB", "fsync": "on", "synchronous_commit": "on",
    "full_page_writes": "on",
}  # fmt: skip


class PostgresServer(processes.StoreHost):
    """`url` leads to its database `postgres` through TCP, `socket_url` through its socket."""

    def __init__(self, place: Path | None = None, settings: Mapping[str, str] | None = None) -> None:
        """`place`: where its folder goes. `settings`: of the server, beyond those that tests want."""
        self.settings = {**_SETTINGS, **(settings or {})}
        self.user = processes.servant()
        # In memory commits sync as shipped, and cost nothing.
        place = place or processes.fast_folder(ROOM)
        self.folder = Path(tempfile.mkdtemp(prefix="tenure-pg-", dir=place))  # a socket's path must be short
        self.data, self.log = self.folder / "data", self.folder / "log"
        self.port = processes.free_port()
        self.url = f"postgresql://tenure@127.0.0.1:{self.port}/postgres"
        self.root = self.url
        self.socket_url = f"postgresql://tenure@/postgres?host={self.folder}&port={self.port}"

    def start(self) -> None:
        postgres = program()
        processes.give(self.folder, self.user)
        subprocess.run(
            [postgres.parent / "initdb", "-D", self.data, "-U", "tenure", "-A", "trust", "-E", "UTF8", "--locale=C",
             "--no-sync"],
            user=self.user, cwd="/", check=True, capture_output=True,
        )  # fmt: skip
        self.run()

    def run(self) -> None:
        """Start on the data that is there."""
        self.log.touch()
        settings = {**self.settings, "port": str(self.port), "unix_socket_directories": str(self.folder)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self.process = processes.start([program(), "-D", self.data, *options], self.user, self.log)
        processes.wait_until(self._answers, self.process, self.log)

    @classmethod
    def measured(cls, place: Path | None = None, settings: Mapping[str, str] | None = None) -> Self:
        """For measurements: on a real disk, every commit synced."""
        return cls(place or Path("/tmp"), {**_MEASURED, **(settings or {})})

    def database(self, name: str) -> str:
        """The URL of the database of that name."""
        return f"postgresql://tenure@127.0.0.1:{self.port}/{name}"

    def place(self, name: str) -> str:
        return f"{self.url}?schema={name}"

    def create(self, name: str) -> str:
        """Make an empty database; its URL."""
        self.ask(f'CREATE DATABASE "{name}"')
        return self.database(name)

    def drop(self, name: str) -> None:
        self.ask(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def ask(self, statement: str) -> str:
        """The first value that one statement answers, as text; nothing where it answers no rows."""
        with psycopg.connect(self.url, autocommit=True) as link:
            done = link.execute(statement.encode())
            row = done.fetchone() if done.description else None
        return "" if row is None else str(row[0])

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


def program() -> Path:
    """The server's binary, installed where it can be; its companions lie beside it. Raises processes.Unavailable."""
    return processes.found_or_installed("postgres")


def url_of(folder: Path, server: str | None = None, **more: str) -> str:
    """The URL of the folder's own schema: clean when it is first asked for, later the same again."""
    note = folder / "postgres-schema"
    if not note.exists():
        note.write_text(clean_schema())
    server = server or os.environ[WHERE]
    return f"{server}{'&' if '?' in server else '?'}{urlencode({'schema': note.read_text(), **more})}"


def open_store(folder: Path, clock: Clock | None, server: str | None = None) -> Postgres:
    """The folder's store, on connections that all tests of this process share: a new one knows nothing yet.

    What takes a microsecond on a warm connection takes a millisecond on a new one, and a suite opens hundreds.
    """
    server = server or os.environ[WHERE]
    return Postgres(url_of(folder, server), clock=clock, connections=connections(server))


@contextmanager
def placed(name: str) -> Iterator[str]:
    """The URL of a schema that is dropped at the end."""
    try:
        yield f"{os.environ[WHERE]}?schema={name}"
    finally:
        with psycopg.connect(os.environ[WHERE], autocommit=True) as link:
            link.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE'.encode())


@cache
def connections(url: str) -> ConnectionPool[Connection]:
    """One pool for each URL, for all tests of this process."""
    conninfo = parse(url).conninfo
    return ConnectionPool(lambda: connect(conninfo, 30.0), 40, 10.0, url)


_given = 0


def clean_schema(kind: str = "test") -> str:
    """Emptied, not made: twenty tables and sixty indexes would cost each test a tenth of a second."""
    global _given  # noqa: PLW0603 - one count for the session
    _given += 1
    schema = f"{kind}_{os.getpid()}_{_given % SCHEMAS}"
    empty(os.environ[WHERE], schema)
    return schema


def empty(server: str, schema: str) -> None:
    link = connections(server).take()
    try:
        tables = link.all("SELECT tablename FROM pg_tables WHERE schemaname = ?", [schema])
        link.run([(f'DELETE FROM "{schema}"."{name}"', ()) for (name,) in tables if name not in ("meta", "migration")])
    finally:
        connections(server).give(link)

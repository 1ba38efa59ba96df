"""Stores as an earlier release left them, put where a test may open them, and looked at without tenure."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import apsw
import psycopg
import pytest

from tenure.stores.port import Store
from tenure.stores.postgres import Postgres
from tenure.stores.postgres import schema as postgres_schema
from tenure.stores.sqlite import Sqlite, store_file
from tenure.stores.sqlite import schema as sqlite_schema
from tenure.stores.sqlite.store_file import place_of
from tenure.testing.clock import FakeClock
from tests.servers.postgres import PostgresServer
from tests.upgrades.make import SCHEMA

FOLDER = Path(__file__).parent
Rows = Counter[tuple[Any, ...]]


class OldStore(Protocol):
    """One store of a fixture."""

    told: dict[str, Any]
    steps: int  # migrations that it has
    clock: FakeClock  # at the instant at which the fixture was finished

    @property
    def is_current(self) -> bool:
        """It has every migration of this program."""

    def open(self, **options: Any) -> Store:
        """Open it with this program, and its clock."""

    def settle(self) -> None:
        """Mark it as being where it was last opened; without that it is a copy, and begins a new epoch."""

    def columns(self) -> dict[str, list[str]]:
        """Table or view → its columns."""

    def rows(self, table: str, columns: list[str]) -> Rows: ...

    def knowing(self, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """Be an older program, which knows so many migrations, until the patch is undone."""

    def opener(self) -> str:
        """A program that opens it, and that is gone in the middle of its first step."""


def _told(release: str, store: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / release / "told.json").read_text())[store]
    return found


class OldSqlite:
    def __init__(self, release: str, folder: Path) -> None:
        self.told = _told(release, "sqlite")
        self.steps: int = self.told.get("steps", int(release))
        self.clock = FakeClock(self.told["now"])
        self.path = folder / "store.db"
        self.path.write_bytes(gzip.decompress((FOLDER / release / "sqlite.db.gz").read_bytes()))

    @property
    def is_current(self) -> bool:
        return self.steps == len(sqlite_schema.migrations())

    def open(self, **options: Any) -> Store:
        return Sqlite(str(self.path), clock=self.clock, **options)

    def settle(self) -> None:
        self.ask("UPDATE meta SET place = ?", place_of(str(self.path)))

    def columns(self) -> dict[str, list[str]]:
        names = self.ask("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        return {name: [c for (c,) in self.ask("SELECT name FROM pragma_table_info(?)", name)] for (name,) in names}

    def rows(self, table: str, columns: list[str]) -> Rows:
        names = ", ".join(f'"{column}"' for column in columns)
        return Counter(self.ask(f'SELECT {names} FROM "{table}"'))

    def ask(self, text: str, *values: Any, path: Path | None = None) -> list[tuple[Any, ...]]:
        link = apsw.Connection(str(path or self.path))
        try:
            return link.execute(text, values).fetchall()
        finally:
            link.close()

    def knowing(self, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
        known = sqlite_schema.migrations()
        monkeypatch.setattr(sqlite_schema, "migrations", lambda: known[:steps])
        monkeypatch.setattr(store_file, "snapshot", lambda: ("", ""))

    def opener(self) -> str:
        return f"""
from tenure.stores.sqlite import Sqlite, schema
link = schema.SqliteConnection
every = link.all
link.all = lambda self, text, *values: leave() if text == schema.RECORD else every(self, text, *values)
Sqlite({str(self.path)!r})
"""


class OldPostgres:
    def __init__(self, release: str, server: PostgresServer, name: str) -> None:
        self.told = _told(release, "postgres")
        self.steps: int = self.told.get("steps", int(release))
        self.clock = FakeClock(self.told["now"])
        self.server, self.name = server, name
        self.url = f"{server.url}?schema={name}"
        text = gzip.decompress((FOLDER / release / "postgres.sql.gz").read_bytes()).decode()
        with psycopg.connect(server.url, autocommit=True) as link:
            link.execute(text.replace(SCHEMA, name).encode())

    @property
    def is_current(self) -> bool:
        return self.steps == len(postgres_schema.migrations())

    def open(self, **options: Any) -> Store:
        return Postgres(self.url, clock=self.clock, **options)

    def settle(self) -> None:
        ((here,),) = self.ask(postgres_schema.HERE.replace("?", "%s"), self.name, self.name)
        here = here.rpartition("/")[0]  # as a store of before schema 19 has it
        for table in ("meta", "epoch"):
            self.ask(f"UPDATE {self.name}.{table} SET place = %s", here)

    def columns(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for table, column in self.ask(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s", self.name
        ):
            if table not in ("task_hot", "task_base"):  # the view `task` has the columns of both
                found.setdefault(table, []).append(column)
        return found

    def rows(self, table: str, columns: list[str]) -> Rows:
        names = ", ".join(f'"{column}"::text' for column in columns)
        return Counter(self.ask(f'SELECT {names} FROM {self.name}."{table}"'))

    def ask(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.server.url, autocommit=True) as link:
            done = link.execute(text.encode(), values)
            return done.fetchall() if done.description else []

    def knowing(self, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
        known = postgres_schema.migrations()
        monkeypatch.setattr(postgres_schema, "migrations", lambda: known[:steps])

    def opener(self) -> str:
        return f"""
from tenure.stores.postgres import Postgres, schema
every = schema.Connection.run
schema.Connection.run = lambda link, asked: leave() if asked[0][0] == schema.RECORD else every(link, asked)
Postgres({self.url!r})
"""

    def drop(self) -> None:
        self.ask(f"DROP SCHEMA IF EXISTS {self.name} CASCADE")


@contextmanager
def old_store(kind: str, release: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[OldStore]:
    """A store of the fixture, of this test's own."""
    if kind == "sqlite":
        yield OldSqlite(release, folder)
        return
    old = OldPostgres(release, request.getfixturevalue("postgres"), "s_" + re.sub(r"\W", "_", folder.name)[-50:])
    try:
        yield old
    finally:
        old.drop()

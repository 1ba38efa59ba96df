"""Migrations of a file: creating one, upgrading an older one, and the exact comparison of its schema with ours."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from tenure.core.errors import SchemaMismatch
from tenure.stores.sql.migrations import Applied, Migration, pending, read_migrations
from tenure.stores.sqlite.connections import SqliteConnection
from tenure.stores.sqlite.store_file import MASTER, headed, snapshot

FOLDER = Path(__file__).parent / "migrations"

RECORD = "INSERT INTO migration (number, name, checksum, since, breaking, applied_at) VALUES (?, ?, ?, ?, ?, ?)"
META_ROW = "INSERT INTO meta (one, epoch, schema, place) VALUES (1, ?, ?, ?)"
_RESERVED = re.compile(r"CREATE TABLE sqlite_\w+\([\w,]*\);")  # only ANALYZE may create these
SET_SCHEMA = "UPDATE meta SET schema = ?"


def compare(steps: list[tuple[Any, ...]], objects: list[tuple[Any, ...]], path: str) -> bool:
    """False where migrations are pending on a file that is sound so far. Raises SchemaMismatch where it differs."""
    missing = pending(migrations(), [Applied(*step) for step in steps], path)
    expected = {(kind, name): (table, text) for kind, name, table, text in built(len(steps))}
    actual = {(kind, name): (table, text) for kind, name, table, text in objects}
    for kind, name in actual.keys() - expected.keys():
        raise SchemaMismatch(
            f"{path}: the {kind} {name!r} is not tenure's. Another program added it; nothing in it was run",
            "Restore a backup, or have a person look at it.",
        )
    for kind, name in expected.keys() - actual.keys():
        raise SchemaMismatch(f"{path}: the {kind} {name!r} is missing", "Restore a backup.")
    for key, there in actual.items():
        if there != expected[key]:
            raise SchemaMismatch(f"{path}: another program changed the {key[0]} {key[1]!r}", "Restore a backup.")
    return not missing


@cache
def migrations() -> tuple[Migration, ...]:
    return read_migrations(FOLDER)


@cache
def built(steps: int) -> list[tuple[Any, ...]]:
    """The schema after so many migrations, from a database in memory."""
    connection = SqliteConnection(apsw.Connection(":memory:"))
    try:
        for migration in migrations()[:steps]:
            connection.all(migration.text)
        return connection.all(MASTER)
    finally:
        connection.close()


def make(connection: SqliteConnection, epoch: str, place: str, now: int) -> None:
    """All migrations, in an empty file that no other process uses yet: at once where the snapshot is of these."""
    text, statistics = snapshot()
    steps = [(m.number, m.name, m.checksum, m.since) for m in migrations()]
    if text.partition("\n\n")[0] == "\n".join(headed(steps)):
        connection.execute("BEGIN IMMEDIATE")
        connection.all(_RESERVED.sub("", text) + "ANALYZE sqlite_schema;" + statistics)
        for migration in migrations():
            connection.all(RECORD, _record(migration, now))
        connection.all(META_ROW, (epoch, len(steps), place))
        connection.execute("COMMIT")
        return
    first, *others = migrations()
    _apply(connection, first, now, META_ROW, (epoch, first.number, place))
    for migration in others:
        _apply(connection, migration, now, SET_SCHEMA, (migration.number,))


def upgrade(connection: SqliteConnection, now: int) -> None:
    """Apply pending migrations. The caller holds the write lock and has looked."""
    ((number,),) = connection.all("SELECT schema FROM meta")
    for migration in migrations()[number:]:
        _apply(connection, migration, now, SET_SCHEMA, (migration.number,))


def _apply(connection: SqliteConnection, migration: Migration, now: int, noting: str, values: tuple[Any, ...]) -> None:
    """One step, its record and the number in `meta`, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.all(migration.text)
        connection.all(RECORD, _record(migration, now))
        connection.all(noting, values)
        connection.execute("COMMIT")
    except BaseException:
        if connection.raw.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _record(step: Migration, now: int) -> tuple[Any, ...]:
    return step.number, step.name, step.checksum, step.since, int(step.breaking), now

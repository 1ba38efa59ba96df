"""Making a file, bringing an older one up to date, and refusing one whose schema is not exactly ours.

`schema.sql` is the schema that the migrations make, as SQLite tells it, with their checksums above: comparing a file
with it costs no hashing and no second database, since opening is what every command does first. Whoever edits a
migration writes it anew: `python -m tenure.stores.sqlite.snapshot`. Where it is stale, the migrations decide.
"""
# ruff: noqa: PTH118, PTH120, PTH123 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.core.errors import SchemaMismatch, StoreCorrupt
from tenure.stores.sqlite.connections import SqliteConnection

if TYPE_CHECKING:
    from tenure.stores.sql.migrations import Migration

FOLDER = os.path.join(os.path.dirname(__file__), "migrations")
SNAPSHOT = os.path.join(os.path.dirname(__file__), "schema.sql")

MASTER = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY tbl_name, type DESC, name"
STEPS = "SELECT number, name, checksum, since FROM migration ORDER BY number"
META = "SELECT epoch, schema, place FROM meta"
RECORD = "INSERT INTO migration (number, name, checksum, since, breaking, applied_at) VALUES (?, ?, ?, ?, ?, ?)"
META_ROW = "INSERT INTO meta (one, epoch, schema, place) VALUES (1, ?, ?, ?)"
SET_SCHEMA = "UPDATE meta SET schema = ?"


class FoundFile(NamedTuple):
    """What an opened file says of itself."""

    epoch: str
    schema: int
    place: str


def look(link: SqliteConnection, path: str) -> FoundFile | None:
    """What the file says of itself where its schema is ours; None where migrations are to be applied.

    Raises SchemaMismatch where it is neither.
    """
    link.execute("BEGIN")  # one moment of it, whoever is upgrading
    try:
        objects = link.all(MASTER)
        names = {name for _, name, _, _ in objects}
        if not {"meta", "migration"} <= names:
            raise SchemaMismatch(
                f"{path} is a database, but not one of tenure's: it has {_listed(names)}", "Name another file."
            )
        steps, meta = link.all(STEPS), link.all(META)
    finally:
        link.execute("ROLLBACK")
    if described(steps, objects) != snapshot() and not _as_migrated(steps, objects, path):
        return None
    if len(meta) != 1 or meta[0][1] != len(steps):
        raise StoreCorrupt(f"{path}: its table meta does not say what schema it has")
    return FoundFile(*meta[0])


def _as_migrated(steps: list[tuple[Any, ...]], objects: list[tuple[Any, ...]], path: str) -> bool:
    """The slow and exact comparison; False where steps are pending on a file that is sound so far."""
    from tenure.stores.sql.migrations import Applied, pending

    missing = pending(migrations(), [Applied(*step) for step in steps], path)
    expected = {(kind, name): (table, text) for kind, name, table, text in built(len(steps))}
    actual = {(kind, name): (table, text) for kind, name, table, text in objects}
    for kind, name in actual.keys() - expected.keys():
        raise SchemaMismatch(
            f"{path}: the {kind} {name!r} is not tenure's. It was added by somebody else; nothing in it was run",
            "Restore a backup, or have a person look at it.",
        )
    for kind, name in expected.keys() - actual.keys():
        raise SchemaMismatch(f"{path}: the {kind} {name!r} is missing", "Restore a backup.")
    for key, there in actual.items():
        if there != expected[key]:
            raise SchemaMismatch(f"{path}: the {key[0]} {key[1]!r} was changed by somebody else", "Restore a backup.")
    return not missing


@cache
def migrations() -> tuple[Migration, ...]:
    from pathlib import Path

    from tenure.stores.sql.migrations import read_migrations

    return read_migrations(Path(FOLDER))


@cache
def snapshot() -> str:
    try:
        with open(SNAPSHOT, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


@cache
def built(steps: int) -> list[tuple[Any, ...]]:
    """The schema after so many migrations, from a database in memory."""
    import apsw

    link = SqliteConnection(apsw.Connection(":memory:"))
    try:
        for migration in migrations()[:steps]:
            link.all(migration.text)
        return link.all(MASTER)
    finally:
        link.close()


def described(steps: list[tuple[Any, ...]], objects: list[tuple[Any, ...]]) -> str:
    """Steps and schema as one text."""
    lines = [f"-- {name} {checksum} since {since}" for _, name, checksum, since in steps]
    for kind, name, table, text in objects:
        lines.append(f"\n-- {kind} {name} of {table}")
        if text is not None:
            lines.append(f"{text};")
    return "\n".join(lines) + "\n"


def make(link: SqliteConnection, epoch: str, place: str, now: int) -> None:
    """All of it, in a file that has nothing yet and that nobody else knows of."""
    first, *others = migrations()
    _apply(link, first, now, META_ROW, (epoch, first.number, place))
    for migration in others:
        _apply(link, migration, now, SET_SCHEMA, (migration.number,))


def upgrade(link: SqliteConnection, now: int) -> None:
    """Apply what is pending. The caller holds the turn to write, and has looked."""
    ((number,),) = link.all("SELECT schema FROM meta")
    for migration in migrations()[number:]:
        _apply(link, migration, now, SET_SCHEMA, (migration.number,))


def _apply(link: SqliteConnection, migration: Migration, now: int, noting: str, values: tuple[Any, ...]) -> None:
    """One step, its record and the number in `meta`, in one transaction."""
    link.execute("BEGIN IMMEDIATE")
    try:
        link.all(migration.text)
        record = (migration.number, migration.name, migration.checksum, migration.since)
        link.all(RECORD, (*record, int(migration.breaking), now))
        link.all(noting, values)
        link.execute("COMMIT")
    except BaseException:
        if link.connection.in_transaction:
            link.execute("ROLLBACK")
        raise


def current_snapshot() -> str:
    """What `schema.sql` must be."""
    steps = [(m.number, m.name, m.checksum, m.since) for m in migrations()]
    return described(steps, built(len(steps)))


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)[:5]) or "no tables"

"""Making the tables, bringing older ones up to date, and refusing those that are not ours.

Whoever migrates holds a lock of the transaction that nobody else takes, so that of many processes that start at once
one migrates and the others find it done. Each step is one transaction with its record: there whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tenure.core import limits
from tenure.core.errors import SchemaMismatch, StoreCorrupt, StoreUnavailable
from tenure.stores.postgres.connection import Connection
from tenure.stores.postgres.planner_statistics import beliefs
from tenure.stores.sql.migrations import Applied, Migration, pending, read_migrations

FOLDER = Path(__file__).parent / "migrations"

OLDEST = limits.POSTGRES_OLDEST

# The same in every copy that the server can tell from the original: see `place` in the how-to.
HERE = """
SELECT (SELECT system_identifier FROM pg_control_system())::text || '/'
    || (SELECT oid FROM pg_database WHERE datname = current_database())::text || '/' || ?
"""
TABLES = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(?) AND relkind IN ('r', 'p', 'v', 'm')"
RECORD = "INSERT INTO migration (number, name, checksum, since, breaking) VALUES (?, ?, ?, ?, ?)"
META_ROW = "INSERT INTO meta (epoch, schema, breaking, place) VALUES (?, ?, 0, ?)"
SET_SCHEMA = "UPDATE meta SET schema = ?, breaking = CASE WHEN ? THEN ? ELSE breaking END"
# Unqualified names in migrations are the store's; the setting ends with the transaction.
ENTER = "SELECT set_config('search_path', ?, true), set_config('lock_timeout', '10s', true)"


class FoundSchema(NamedTuple):
    """What an opened store says of itself."""

    schema: int
    is_copy: bool
    place: str


@cache
def migrations() -> tuple[Migration, ...]:
    return read_migrations(FOLDER)


def open_schema(link: Connection, schema: str, lock: int, epoch: str, *, create: bool) -> FoundSchema:
    """Bring the schema up to date, or make it; what it says of itself then.

    Raises SchemaMismatch where it is somebody else's or newer than this program, StoreAway where there is none and
    `create` is False.
    """
    if link.version < OLDEST:
        raise StoreUnavailable(
            f"the server is PostgreSQL {link.version // 10000}; tenure needs {OLDEST // 10000} or newer"
        )
    ((here,),) = link.all(HERE, [schema])
    if look(link, schema) is None or pending(migrations(), applied(link, schema), schema):
        if look(link, schema) is None and not create:
            raise StoreUnavailable(f"there is no store in the schema {schema}")
        migrate(link, schema, lock, epoch, here)
    steps = look(link, schema)
    if steps is None:
        raise StoreCorrupt(f"{schema}: migrations were applied and are not there")
    rows = link.all(f'SELECT schema, place FROM "{schema}".meta')  # noqa: S608 - a name that `address` has checked
    if len(rows) != 1:
        raise StoreCorrupt(f"{schema}: its table meta does not say what schema it has")
    return FoundSchema(rows[0][0], rows[0][1] != here, here)


def look(link: Connection, schema: str) -> int | None:
    """How many steps were applied; None where there is nothing. Raises SchemaMismatch for another program's tables."""
    names = {name for (name,) in link.all(TABLES, [schema])}
    if not names:
        return None
    if not {"meta", "migration"} <= names:
        raise SchemaMismatch(
            f"the schema {schema} has tables, but not tenure's: {', '.join(sorted(names)[:5])}", "Name another schema."
        )
    return len(applied(link, schema))


def applied(link: Connection, schema: str) -> list[Applied]:
    text = f'SELECT number, name, checksum, since FROM "{schema}".migration ORDER BY number'  # noqa: S608 - as above
    return [Applied(*row) for row in link.all(text)]


def migrate(link: Connection, schema: str, lock: int, epoch: str, place: str) -> None:
    """Apply what is pending: one transaction a step on a store that exists, one transaction for all of a new one."""
    while True:
        link.run([("BEGIN", ()), ("SELECT pg_advisory_xact_lock(?)", [lock])])
        try:
            done = look(link, schema)  # another process may have been first
            steps = pending(migrations(), applied(link, schema) if done is not None else [], schema)
            if not steps:
                return
            if done is None:
                _make(link, schema, steps, epoch, place)
            else:
                link.run([(ENTER, [schema])])
                _apply(link, steps[0])
                link.run([(SET_SCHEMA, [steps[0].number, steps[0].breaking, steps[0].number])])
            link.run([("COMMIT", ())])
        finally:
            if link.is_open and link.in_transaction:
                link.run([("ROLLBACK", ())])


def _make(link: Connection, schema: str, steps: Sequence[Migration], epoch: str, place: str) -> None:
    """All steps in the caller's transaction: the planner's beliefs are about the tables as the last one leaves them."""
    link.run([(f'CREATE SCHEMA IF NOT EXISTS "{schema}"', ()), (ENTER, [schema])])
    for step in steps:
        _apply(link, step)
    link.run([(text, ()) for text in beliefs()])
    link.run([(META_ROW, [epoch, steps[-1].number, place])])


def _apply(link: Connection, step: Migration) -> None:
    link.script(step.text)
    link.run([(RECORD, [step.number, step.name, step.checksum, step.since, step.breaking])])

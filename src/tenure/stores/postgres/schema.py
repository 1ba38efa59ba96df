"""Creating the tables, upgrading older ones, and refusing those of other programs.

A migration holds an advisory lock, so of many processes that start at once one migrates and the others find it done.
Each step is one transaction with its record: all of it, or nothing. Before it changes anything it has all tables to
itself, taken in the order in which every transaction begins to read them, `meta` first. So it waits for those that
have begun, which decide by the older rules; those that come later wait for it, find a newer schema than their
program's, and refuse. Another program may read in another order: after a deadlock the step begins again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tenure.core import limits
from tenure.core.errors import NoStore, SchemaMismatch, StoreCorrupt, StoreUnavailable
from tenure.stores.postgres import planner_statistics, row_security
from tenure.stores.postgres.connection import Connection, Rows
from tenure.stores.postgres.errors import AGAIN, LOCK_TIMEOUT, Failed
from tenure.stores.postgres.row_security import OWNER_URL, kept_on, standing
from tenure.stores.sql.migrations import Applied, Migration, pending, read_migrations

FOLDER = Path(__file__).parent / "migrations"

OLDEST = limits.POSTGRES_OLDEST

# Identifies a store: a copy has another value where the server can distinguish it. See the how-to on backups. The last
# part is missing while there is no table `meta`, and in what a process of before schema 19 has written.
HERE = """
SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
    (SELECT oid FROM pg_database WHERE datname = current_database()), ?::text,
    (SELECT oid FROM pg_class WHERE relnamespace = to_regnamespace(?) AND relname = 'meta'))
"""
TABLES = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(?) AND relkind IN ('r', 'p', 'v', 'm')"
# A table, and how many columns it has had.
SHAPES = """
SELECT relname, oid::bigint, relnatts::bigint FROM pg_class WHERE relnamespace = to_regnamespace(?) AND relkind = 'r'
"""
RECORD = "INSERT INTO migration (number, name, checksum, since, breaking) VALUES (?, ?, ?, ?, ?)"
META_ROW = "INSERT INTO meta (epoch, schema, breaking, place) VALUES (?, ?, 0, ?)"
SET_SCHEMA = "UPDATE meta SET schema = ?, breaking = CASE WHEN ? THEN ? ELSE breaking END"
# Settings end with the transaction. A step rewrites tables, whatever the role's own timeout is.
SETTINGS = "SELECT set_config('lock_timeout', ?, true), set_config('statement_timeout', '0', true)"
LOCK = "SELECT pg_advisory_xact_lock(?)"
WAIT = "30s"  # for another process that migrates
PATIENCE = "10s"  # for those that write or read
# Resolves unqualified names in migrations.
ENTER = "SELECT set_config('search_path', ?, true)"
_READ_FIRST = ("meta", "epoch", "event", "event_block")  # by every transaction
_STEP = 3600.0  # seconds that one step may take
_TRIES = 5  # of a step that met a deadlock


class FoundSchema(NamedTuple):
    schema: int
    is_copy: bool
    place: str


@cache
def migrations() -> tuple[Migration, ...]:
    return read_migrations(FOLDER)


def open_schema(
    connection: Connection,
    schema: str,
    lock: int,
    epoch: str,
    *,
    create: bool,
    owner: str | None = None,
    grants: bool = False,
) -> FoundSchema:
    """Upgrade the schema, or create it; with a connection to `owner` where the role does not own it. With `grants` the
    role may then use it, for a schema in which no policy is needed.

    Raises SchemaMismatch where it belongs to another program or is newer than this one, StoreUnavailable where there is
    none and `create` is False.
    """
    if connection.version < OLDEST:
        raise StoreUnavailable(
            f"the server is PostgreSQL {connection.version // 10000}; tenure needs {OLDEST // 10000} or newer"
        )
    if look(connection, schema) is None or pending(migrations(), applied(connection, schema), schema):
        if look(connection, schema) is None and not create:
            raise NoStore.at(f"in the schema {schema}")
        with _owning(connection, schema, owner) as owning:
            migrate(owning, schema, lock, epoch)
            if grants and owning is not connection:
                role = standing(connection, schema).role
                owning.run([(text, ()) for text in row_security.grants(owning, schema, role)])
    steps = look(connection, schema)
    if steps is None:
        raise StoreCorrupt(f"{schema}: migrations were applied, but their tables are missing")
    rows = connection.all(f'SELECT schema, place FROM "{schema}".meta')  # noqa: S608 - a name that `address` has checked
    if len(rows) != 1:
        raise StoreCorrupt(f"{schema}: its table meta must have one row (it has {len(rows)})")
    here = place_of(connection, schema)
    return FoundSchema(rows[0][0], not is_same_place(rows[0][1], here), here)


def place_of(connection: Connection, schema: str) -> str:
    ((here,),) = connection.all(HERE, [schema, schema])
    return str(here)


def is_same_place(stored: str, here: str) -> bool:
    """Whether nothing shows that the store was copied since `stored` was written: a part that is missing is unknown."""
    return stored in (here, here.rpartition("/")[0])


@contextmanager
def _owning(connection: Connection, schema: str, owner: str | None) -> Iterator[Connection]:
    """A connection that may migrate."""
    found = standing(connection, schema)
    if found.owns:
        yield connection
        return
    with row_security.owning(owner, connection) as owning:
        if owning is None and found.owner:
            raise SchemaMismatch(
                f"{schema}: an upgrade is due, and the role {found.role} does not own its tables ({found.owner} does)"
                + (f"; {row_security.ELSEWHERE}" if owner else ""),
                f"Run `tenure db upgrade` once with {OWNER_URL} set to the URL of {found.owner}.",
            )
        yield owning or connection


def look(connection: Connection, schema: str) -> int | None:
    """The number of applied steps; None where there are no tables. Raises SchemaMismatch for another program's."""
    names = {name for (name,) in connection.all(TABLES, [schema])}
    if not names:
        return None
    if not {"meta", "migration"} <= names:
        raise SchemaMismatch(
            f"the schema {schema} has tables, but not tenure's: {', '.join(sorted(names)[:5])}", "Name another schema."
        )
    return len(applied(connection, schema))


def applied(connection: Connection, schema: str) -> list[Applied]:
    text = f'SELECT number, name, checksum, since FROM "{schema}".migration ORDER BY number'  # noqa: S608 - as above
    return [Applied(*row) for row in connection.all(text)]


def migrate(connection: Connection, schema: str, lock: int, epoch: str) -> None:
    """Apply pending steps: one transaction per step on an existing store, one for all steps of a new one."""
    tries = 0
    had = connection.all(SHAPES, [schema])
    while True:
        connection.run([("BEGIN", ()), (SETTINGS, [WAIT])])
        try:
            if not _step(connection, schema, lock, epoch, had):
                return
            connection.run([("COMMIT", ())])
            tries = 0
        except Failed as error:
            tries += 1
            if error.state == LOCK_TIMEOUT:
                raise StoreUnavailable(
                    f"{schema}: others use it, or bring it to a newer version; it was left as it is",
                    "Wait for them, or stop them, and start again.",
                ) from error
            if error.state not in AGAIN or tries == _TRIES:
                raise
        finally:
            connection.roll_back()


def _step(connection: Connection, schema: str, lock: int, epoch: str, had: Rows) -> bool:
    """Whether a step was applied, in the caller's transaction. `had`: the tables before the first step."""
    connection.run([(LOCK, [lock])])
    done = look(connection, schema)  # another process may have been first
    steps = pending(migrations(), applied(connection, schema) if done is not None else [], schema)
    if not steps:
        return False
    if done is None:
        _make(connection, schema, steps, epoch)
    else:
        connection.run([(SETTINGS, [PATIENCE]), (ENTER, [schema])])
        tables = {name for name, *_ in connection.all(SHAPES, [schema])}
        names = [*(name for name in _READ_FIRST if name in tables), *sorted(tables.difference(_READ_FIRST))]
        connection.run([(f"LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE", ())])
        _apply(connection, steps[0])
        connection.run([(text, ()) for text in kept_on(connection, schema)])
        connection.run([(SET_SCHEMA, [steps[0].number, steps[0].breaking, steps[0].number])])
        if len(steps) == 1:  # the statistics are for the tables of this program
            _get_to_know(connection, had, connection.all(SHAPES, [schema]))
    return True


def _get_to_know(connection: Connection, had: Rows, has: Rows) -> None:
    """Give the planner statistics of tables that this upgrade has created, or added columns to."""
    known = {oid for _, oid, _ in had}
    changed = {name: oid in known for name, oid, columns in has if (name, oid, columns) not in had}
    if not changed:
        return
    asked = "SELECT " + ", ".join(f"EXISTS (SELECT FROM {name})" for name in changed)  # noqa: S608 - our own names
    filled = [name for name, has_rows in zip(changed, connection.all(asked)[0], strict=True) if has_rows]
    new = [name for name, was_there in changed.items() if not was_there and name not in filled]
    texts = [*(f"ANALYZE {name}" for name in filled), *planner_statistics.statements(new)]
    connection.run([(text, ()) for text in texts])


def _make(connection: Connection, schema: str, steps: Sequence[Migration], epoch: str) -> None:
    """All steps in the caller's transaction: the planner's statistics are for the tables that the last one leaves."""
    connection.run([(f'CREATE SCHEMA IF NOT EXISTS "{schema}"', ()), (ENTER, [schema])])
    for step in steps:
        _apply(connection, step)
    connection.run([(text, ()) for text in planner_statistics.statements()])
    connection.run([(META_ROW, [epoch, steps[-1].number, place_of(connection, schema)])])


def _apply(connection: Connection, step: Migration) -> None:
    connection.script(step.text, _STEP)
    connection.run([(RECORD, [step.number, step.name, step.checksum, step.since, step.breaking])])

"""Creating the tables, upgrading older ones, and refusing servers and tables that are not fit.

MariaDB commits at every statement that changes a table, so a step can be interrupted between any two of its statements.
Therefore each of them may be run again, a step is recorded after its last one, and the next opening runs an unrecorded
step from its beginning. A breaking step first writes its number into `meta`, which waits for all writers: a program
that does not know it refuses from then on, also while the step is half done.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tenure.core import limits
from tenure.core.errors import NoStore, SchemaMismatch, StoreCorrupt, StoreUnavailable
from tenure.stores.mariadb.connection import Connection
from tenure.stores.sql.migrations import Applied, Migration, pending, read_migrations

FOLDER = Path(__file__).parent / "migrations"

OLDEST = limits.MARIADB_OLDEST
PACKET = limits.MARIADB_PACKET
_VERSION = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.\d+.*MariaDB", re.IGNORECASE)
WAIT = 30  # seconds for another process that migrates

SETTINGS = """
SELECT @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog, @@innodb_doublewrite, @@max_allowed_packet,
    @@wsrep_on, @@innodb_force_recovery
"""
TABLES = "SELECT table_name, table_comment FROM information_schema.tables WHERE table_schema = DATABASE()"
# Identifies a store. Any copy of a table, by a dump or of its files, is created at another time. So is a table that a
# step alters: no step may alter this one, or an interrupted upgrade would look like a copy.
HERE = """
SELECT concat(DATE_FORMAT(create_time, '%Y-%m-%dT%H:%i:%s'), '/', table_schema) FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_name = 'migration'
"""
# A cluster's tables are created at another time on each node.
HERE_IN_CLUSTER = """
SELECT concat(variable_value, '/', DATABASE()) FROM information_schema.global_status
WHERE variable_name = 'wsrep_cluster_state_uuid'
"""
APPLIED = "SELECT number, name, checksum, since FROM migration ORDER BY number"
RECORD = "INSERT INTO migration (number, name, checksum, since, breaking) VALUES (?, ?, ?, ?, ?)"
PLACE = "SELECT place FROM meta"
META_ROW = 'INSERT IGNORE INTO meta (one, epoch, "schema", breaking, place) VALUES (1, ?, ?, 0, ?)'
CLOSE = "UPDATE meta SET breaking = greatest(breaking, ?)"
SET_SCHEMA = 'UPDATE meta SET "schema" = ?, place = ?'


class FoundSchema(NamedTuple):
    schema: int
    is_copy: bool
    place: str


class ServerSettings(NamedTuple):
    """Those that decide what a commit is worth."""

    flush_at_commit: int
    has_binlog: int
    sync_binlog: int
    doublewrite: int
    packet: int
    is_cluster: int
    force_recovery: int


_ONE_NODE = "the hosts of all nodes of the cluster in the URL (or wsrep_on = OFF)"
_NO_CLUSTER = "wsrep_on = ON (several hosts in the URL are a Galera cluster)"


@cache
def migrations() -> tuple[Migration, ...]:
    return read_migrations(FOLDER)


def statements_of(step: Migration) -> list[str]:
    lines = [line for line in step.text.splitlines() if not line.startswith("--")]
    return [text for text in (part.strip() for part in "\n".join(lines).split(";\n")) if text.rstrip(";")]


def unsafe(connection: Connection) -> list[str]:
    """What must be set otherwise before the server's answer to a commit is worth anything, with the setting to use.

    A node of a cluster is safe alone where the URL names the others: a process that knows one would go on with what
    that one has, when it comes back before it has the commits of the others.
    """
    found = ServerSettings(*connection.all(SETTINGS)[0])
    checks = {
        "innodb_flush_log_at_trx_commit = 1": found.flush_at_commit in (1, 3),
        "sync_binlog = 1": not found.has_binlog or found.sync_binlog == 1,
        "innodb_doublewrite = ON": found.doublewrite != 0,
        "innodb_force_recovery = 0": found.force_recovery == 0,
        f"max_allowed_packet = {PACKET}": found.packet >= PACKET,
        _ONE_NODE: not found.is_cluster or connection.is_of_cluster,
        _NO_CLUSTER: found.is_cluster or not connection.is_of_cluster,
    }
    return [setting for setting, is_right in checks.items() if not is_right]


def open_schema(connection: Connection, database: str, epoch: str, *, create: bool) -> FoundSchema:
    """Upgrade the tables, or create them, on a connection for this alone.

    Raises SchemaMismatch where they belong to another program or are newer than this one, StoreUnavailable where the
    server is not fit, or there are none and `create` is False.
    """
    check_server(connection)
    if _is_behind(connection, database):
        if not create and not _look(connection, database):
            raise NoStore.at(f"in the database {database}")
        migrate(connection, database, epoch)
    place, here = _place(connection), _here(connection)
    ((number,),) = connection.all('SELECT "schema" FROM meta')
    return FoundSchema(number, place != here, here)


def check_server(connection: Connection) -> None:
    version = _VERSION.match(connection.version)
    if version is None or int(version[1]) * 100 + int(version[2]) < OLDEST:
        raise StoreUnavailable(
            f"the server is {connection.version}; tenure needs MariaDB {OLDEST // 100}.{OLDEST % 100} or newer"
        )
    if wrong := unsafe(connection):
        raise StoreUnavailable(
            "the server's settings would lose acknowledged commits, or refuse some; nothing was written",
            f"Set {', '.join(wrong)} and restart it.",
        )


def migrate(connection: Connection, database: str, epoch: str) -> None:
    """Apply pending steps, one process at a time."""
    lock = f"tenure {database}"[:64]
    ((got,),) = connection.all("SELECT GET_LOCK(?, ?)", [lock, WAIT])
    if got != 1:
        raise StoreUnavailable(f"{database}: another process brings it to a newer version", "Wait for it.")
    try:
        done = _look(connection, database)  # another process may have been first
        place = _place(connection) if done else None
        is_copy = place is not None and place != _here(connection)
        for step in pending(migrations(), done or [], database):
            if step.breaking and done:
                connection.run([(CLOSE, [step.number])])
            for text in statements_of(step):
                connection.run([(text, ())])
            place = place if is_copy else _here(connection)
            connection.run(
                [
                    ("START TRANSACTION", ()),
                    (META_ROW, [epoch, step.number, place]),
                    (SET_SCHEMA, [step.number, place]),
                    (RECORD, [step.number, step.name, step.checksum, step.since, step.breaking]),
                    ("COMMIT", ()),
                ]
            )
    finally:
        if connection.is_open:
            connection.run([("DO RELEASE_LOCK(?)", [lock])])


def _is_behind(connection: Connection, database: str) -> bool:
    return bool(pending(migrations(), _look(connection, database) or [], database))


def _look(connection: Connection, database: str) -> list[Applied] | None:
    """The recorded steps; None where there are no tables. Raises SchemaMismatch for another program's."""
    tables: dict[str, str] = dict(connection.all(TABLES))
    if not tables:
        return None
    if tables.get("migration") != "tenure":
        raise SchemaMismatch(
            f"the database {database} has tables, but not tenure's: {', '.join(sorted(tables)[:5])}",
            "Name another database.",
        )
    return [Applied(*row) for row in connection.all(APPLIED)]


def _place(connection: Connection) -> str:
    rows = connection.all(PLACE)
    if len(rows) != 1:
        raise StoreCorrupt(f"its table meta must have one row (it has {len(rows)})", "Restore a backup.")
    return str(rows[0][0])


def _here(connection: Connection) -> str:
    return str(connection.all(HERE_IN_CLUSTER if connection.is_of_cluster else HERE)[0][0])

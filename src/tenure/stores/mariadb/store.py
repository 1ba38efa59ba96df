"""The store: opening, waiting, check."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from tenure.core import limits
from tenure.core.errors import Conflict, InvalidInput, SchemaMismatch, TenureError, close_all
from tenure.stores.mariadb import address, schema
from tenure.stores.mariadb import statement_texts as texts
from tenure.stores.mariadb.answers import Answer, Rows
from tenure.stores.mariadb.connection import Connection, Statement, connect
from tenure.stores.mariadb.errors import Failed, translated
from tenure.stores.mariadb.transaction import MariadbTransaction
from tenure.stores.mariadb.wake_ups import WakeUps
from tenure.stores.port import DURABLE, HOLDERS, PROCESSES, SNAPSHOTS, TENANTS, WAKE_UPS, WRITERS, Clock, ForLeader
from tenure.stores.sql import server_errors
from tenure.stores.sql.connection_pool import ConnectionPool
from tenure.stores.sql.nul import shown
from tenure.stores.sql.orphans import orphans
from tenure.stores.sql.server_errors import Lost, lost, unknown
from tenure.stores.sql.server_store import ServerStore
from tenure.stores.tenants_due import tenants_due

T = TypeVar("T")

_TRIES = 10  # of epochs of all tenants
STATEMENT = limits.STATEMENT_TIMEOUT
_STEP = 3600.0  # seconds that one statement of a migration, or of a check, may take
TABLES = """
SELECT table_name, engine, table_collation FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY table_name
"""
TRIGGERS = "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()"
LOST_SEQUENCES = 'SELECT count(*) FROM event WHERE "sequence" > (SELECT last FROM log_end)'


class Mariadb(ServerStore[Connection]):
    """Implements the port with a database of a MariaDB server. Opening creates it unless `create` is False."""

    features = frozenset({DURABLE, HOLDERS, PROCESSES, WAKE_UPS, TENANTS, WRITERS, SNAPSHOTS})

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        random: Callable[[int], bytes] = os.urandom,
        create: bool = True,
        patience: float = limits.WRITE_WAIT,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock`: the server's unless given. `patience`: seconds to wait for a connection or a project's turn."""
        self._where = where = address.parse(url)
        super().__init__(where.shown)
        self.clock = clock
        self._patience = patience
        self._random = random
        self.connections = ConnectionPool(
            lambda: connect(where, wait=patience, silence=STATEMENT), where.pool, patience, self.url
        )
        self.wake_ups = WakeUps(self._log_end, self.marks, monotonic)
        self.schema, self.is_copy, self.place = self._open(create)

    def _open(self, create: bool) -> schema.FoundSchema:
        where = self._where
        if create:
            self._aside(_make_database(where.database), database=False)
        return self._aside(
            lambda connection: schema.open_schema(connection, where.database, self._random(4).hex(), create=create)
        )

    def begin(self, tenant: str, *, write: bool) -> MariadbTransaction:
        self._check(tenant)
        return MariadbTransaction(self, tenant, write)

    def mark(self, tenant: str) -> int:
        return self.marks([tenant])[tenant]

    def marks(self, tenants: Collection[str]) -> dict[str, int]:
        ((found),) = self._run([(texts.MARKS, [json.dumps(list(tenants))])])
        return dict(found)

    def tenants_due(self, tenants: Collection[str], until: int, since: int) -> dict[str, ForLeader]:
        return tenants_due(self, tenants, until, since)

    def _log_end(self) -> int:
        ((rows),) = self._run([(texts.LOG_END, ())])
        return int(rows[0][0]) if rows else 0

    def wait(self, marks: Mapping[str, int], timeout: float) -> frozenset[str]:
        """Commits of this process wake it at once, those of others within a poll."""
        self._refuse_fork()
        if timeout <= 0:
            return frozenset(tenant for tenant, last in self.marks(list(marks)).items() if last > marks[tenant])
        return self.wake_ups.wait(marks, timeout)

    def settled_here(self) -> list[str]:
        """Every tenant gets a new epoch, not only the one that has just begun one: the copy has receipts of all."""
        found, *_ = self._with_epochs(
            (texts.TENANTS_TO_SETTLE, [self.place, self.place]),
            (texts.SETTLE_TENANTS, [self._random(16).hex(), self.place, self.place]),
            (texts.SETTLE_META, [self._random(4).hex(), self.place, self.place]),
        )
        self.is_copy = False
        return sorted(shown(tenant) for (tenant,) in found.rows())

    def begin_epochs(self, besides: str) -> list[str]:
        *_, found = self._with_epochs(
            (texts.KEEP_OWN, [besides]),
            (texts.BEGIN_TENANTS, [self._random(16).hex(), self.place, besides]),
            (texts.BEGIN_META, [self._random(4).hex(), self.place]),
            (texts.OTHER_TENANTS, [besides, besides]),
        )
        return sorted(shown(tenant) for (tenant,) in found.rows())

    def _with_epochs(self, *changes: Statement) -> list[Answer]:
        """The answers of statements that begin epochs. No writer has read one that ends here: it waits for all."""

        def run(connection: Connection) -> list[Answer]:
            turns: list[Statement] = [(texts.ALL_TURNS, ())] if connection.is_of_cluster else []
            begin: list[Statement] = [(texts.BEGIN_WRITE, ()), *turns, (texts.META_ALONE, ())]
            try:
                return connection.run([*begin, *changes, ("COMMIT", ())])[len(begin) : -1]
            except Lost as error:
                raise unknown(f"the connection was lost at the commit ({error})", self.url) from error

        for _ in range(_TRIES):
            with suppress(Conflict):  # with a writer that has begun to hold more projects, here or at another node
                return self.use(run)
        return self.use(run)

    def backup(self, target: str) -> None:
        raise InvalidInput(
            "a MariaDB store is backed up with MariaDB's own tools",
            "mariadb-dump --single-transaction copies one snapshot of it; see the how-to on MariaDB.",
        )

    def check(self) -> list[str]:
        return self._aside(self._faults)

    def unsafe_settings(self) -> list[str]:
        """Settings of the server with which acknowledged commits can be lost: they were right when it was opened."""
        return [f"it needs {setting}" for setting in self._aside(schema.unsafe)]

    def _faults(self, connection: Connection) -> list[str]:
        found = [f"the server's setting is not safe: it needs {setting}" for setting in schema.unsafe(connection)]
        found += [f"trigger {name} is not tenure's" for (name,) in connection.all(TRIGGERS)]
        for name, engine, collation in connection.all(TABLES):
            if engine != "InnoDB" or collation != "utf8mb4_nopad_bin":
                found.append(f"table {name} is of {engine} and {collation}, not of InnoDB and utf8mb4_nopad_bin")
            for *_, kind, text in connection.all(f'CHECK TABLE "{name}"'):
                if (kind, text) != ("status", "OK"):
                    found.append(f"table {name}: {text}")
        for what, statement in orphans().items():
            ((count,),) = connection.all(statement)
            if count:
                found.append(f"{count} rows of {what} name a task that does not exist")
        ((count,),) = connection.all(LOST_SEQUENCES)
        if count:
            found.append(f"{count} events lie behind the end of the log")
        return found

    def close(self) -> None:
        if self._process == os.getpid():
            close_all(self.wake_ups.close, self.connections.close)

    def _aside(self, ask: Callable[[Connection], T], *, database: bool = True) -> T:
        """The result of `ask` on a separate connection, where a statement may take long."""
        self._refuse_fork()
        connection = connect(self._where, wait=self._patience, silence=_STEP, database=database)
        try:
            return ask(connection)
        except Failed as error:
            raise translated(error, self.url) from error
        except Lost as error:
            raise lost(error, self.url) from error
        finally:
            connection.close()

    def _run(self, statements: Sequence[Statement]) -> list[Rows]:
        self._refuse_fork()
        return [answer.found for answer in self.use(lambda connection: connection.run(statements), again=True)]

    def _breaking(self, error: server_errors.Failed, connection: Connection) -> int | None:
        """`meta`, read alone, shows it: every schema has it."""
        if not isinstance(self._translated(error), SchemaMismatch):
            return None
        ((breaking, _),) = connection.all(texts.META)
        return int(breaking)

    def _translated(self, error: server_errors.Failed) -> TenureError:
        assert isinstance(error, Failed)
        return translated(error, self.url)


def _make_database(name: str) -> Callable[[Connection], object]:
    """A user who may not create databases may use one that exists."""
    known = "SELECT 1 FROM information_schema.schemata WHERE schema_name = ?"
    make = f'CREATE DATABASE IF NOT EXISTS "{name}" CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin'
    return lambda connection: connection.all(known, [name]) or connection.run([(make, ())])

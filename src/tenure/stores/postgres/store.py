"""The store: opening, waiting, check."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

from tenure.core import limits
from tenure.core.errors import InvalidInput, SchemaMismatch, StoreUnavailable, TenureError
from tenure.core.events import Event
from tenure.stores.fast_path import Call, Look
from tenure.stores.fast_path import Rows as FastRows
from tenure.stores.port import DURABLE, FAST_PATH, PROCESSES, SNAPSHOTS, TENANTS, WAKE_UPS, WRITERS, Clock
from tenure.stores.postgres import address, event_blocks, hot_functions, schema, statement_texts
from tenure.stores.postgres.connection import Answer, Connection, Rows, Statement
from tenure.stores.postgres.connection_pool import ConnectionPool
from tenure.stores.postgres.errors import ABOUT_TABLES, Failed, Lost, lost, translated
from tenure.stores.postgres.notifications import Listener, Notifier, Seen
from tenure.stores.postgres.places import misplaced
from tenure.stores.postgres.transaction import PostgresTransaction
from tenure.stores.postgres.values import reader
from tenure.stores.sql.codec import Codec
from tenure.stores.sql.orphans import orphans
from tenure.stores.sql.statements import event_table

T = TypeVar("T")

STATEMENT = limits.STATEMENT_TIMEOUT
IDLE = limits.WRITE_IDLE
_START = 0.5  # seconds that the first waiter waits for the listening thread

BROKEN = """
SELECT 'index ' || i.indexrelid::regclass || ' is not valid' FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indrelid WHERE c.relnamespace = to_regnamespace(?) AND NOT i.indisvalid
UNION ALL
SELECT 'trigger ' || t.tgname || ' on ' || t.tgrelid::regclass || ' is not tenure''s' FROM pg_trigger AS t
JOIN pg_class AS c ON c.oid = t.tgrelid WHERE c.relnamespace = to_regnamespace(?) AND NOT t.tgisinternal
"""


class Postgres:
    """Implements the port with a schema of a PostgreSQL database. Opening creates it unless `create` is False."""

    features = frozenset({DURABLE, PROCESSES, WAKE_UPS, TENANTS, WRITERS, FAST_PATH, SNAPSHOTS})

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        random: Callable[[int], bytes] = os.urandom,
        create: bool = True,
        patience: float = limits.WRITE_WAIT,
        monotonic: Callable[[], float] = time.monotonic,
        connections: ConnectionPool | None = None,
    ) -> None:
        """`clock`: the server's unless given. `patience`: seconds to wait for a connection, and for a project's lock.

        `connections`: a pool that is shared with other stores in the same database; closing this store leaves it open.
        """
        where = address.parse(url)
        self.url = where.shown
        self.clock = clock
        self.monotonic = monotonic
        self.queries = statement_texts.queries_of(where.schema)
        self.timeouts = [f"{int(seconds * 1000)}ms" for seconds in (STATEMENT, patience, IDLE)]
        self._random = random
        self._schema_name = where.schema
        self._process = os.getpid()
        self._closed = False
        self.schema = len(schema.migrations())  # once it is open: that of the store when it was opened
        self.epoch_lock = self.lock_key("epoch")
        self.floor_lock = self.lock_key("floor") & 0x7FFFFFFF  # the first of two numbers: see `log_cursor`
        self.channel = f"tenure_{self.lock_key('channel') & 0xFFFFFFFF:08x}"
        self._readers: dict[type[Any], Callable[[Sequence[Any]], Any]] = {}
        self.notifier = Notifier()
        self._shares = connections is not None
        self.connections = connections or ConnectionPool(where.conninfo, where.pool, patience, STATEMENT, self.url)
        direct = where.direct or where.conninfo
        self.listener = Listener(direct, self.channel, self.queries.marks, self.notifier, STATEMENT)
        try:
            self.schema, self.is_copy, self.place = self._open(create)
        except BaseException:
            self.close()
            raise

    def _open(self, create: bool) -> schema.FoundSchema:
        lock, epoch = self.lock_key("migrate"), self._random(4).hex()
        return self.use(
            lambda connection: schema.open_schema(connection, self._schema_name, lock, epoch, create=create)
        )

    def begin(self, tenant: str, *, write: bool) -> PostgresTransaction:
        if not tenant:
            raise InvalidInput("a transaction needs the name of a tenant")
        self._refuse_fork()
        return PostgresTransaction(self, tenant, write)

    def look(self, tenant: str, project: str, agents: Collection[str]) -> Look | None:
        self._refuse_fork()

        def run(statements: list[Statement]) -> list[Answer]:
            return self.use(lambda connection: connection.run(statements), again=True)

        return hot_functions.look(self, tenant, project, agents, run)

    def call(self, tenant: str, calls: Sequence[Call]) -> list[FastRows]:
        self._refuse_fork()
        return hot_functions.call(self, tenant, calls)

    def mark(self, tenant: str) -> int:
        heard = self.notifier.mark(tenant)
        if heard is not None:
            return heard
        ((last, snapshot),) = self._read(self.queries.mark, [tenant])
        self.notifier.remember(tenant, last, snapshot)
        return int(last)

    def wait(self, marks: Mapping[str, int], timeout: float) -> frozenset[str]:
        """The server's notification wakes it; commits of this process wake it earlier, a poll at the latest."""
        until = self.monotonic() + timeout
        notifier = self.notifier
        seen = {tenant: notifier.seen(tenant, mark) for tenant, mark in marks.items()}
        changed = notifier.changed(seen)
        if changed:
            return changed
        if timeout > 0:
            self.listener.start(min(timeout, _START))
        changed = frozenset(tenant for tenant, at in seen.items() if at.calls is None and self._has_news(tenant, at))
        if changed:
            return changed
        with notifier.waiter(marks) as waiter:
            while not (changed := notifier.changed(seen)):
                left = until - self.monotonic()
                if left <= 0:
                    break
                waiter.wait(left)
        return changed

    def _has_news(self, tenant: str, at: Seen) -> bool:
        if at.snapshot is None:
            ((last, _),) = self._read(self.queries.mark, [tenant])
            return bool(last > at.mark)
        ((last, unseen),) = self._read(self.queries.news, [tenant, at.mark - statement_texts.FAR_BACK, at.text])
        return bool(last > at.mark or unseen)

    def announce(self, tenant: str, sequence: int, transaction: int) -> None:
        """Wake the tenant's waiters in this process."""
        self.notifier.post(tenant, sequence, transaction)

    def notice(self, tenant: str, sequence: int, transaction: int) -> Statement:
        """The statement that wakes the tenant's waiters in other processes."""
        return statement_texts.NOTIFY, [self.channel, f"{sequence} {transaction} {tenant}"]

    def notify(self, connection: Connection, tenant: str, sequence: int, transaction: int) -> None:
        """Wake them after the commit. If this fails, their next poll finds it."""
        with suppress(Lost):
            connection.post(self.notice(tenant, sequence, transaction))

    def settled_here(self) -> None:
        """Every tenant gets a new epoch, not only the one that has just begun one: the copy has receipts of all."""
        settle: list[Statement] = [
            (statement_texts.BEGIN_WRITE, ()),
            (statement_texts.LOCK, [[self.epoch_lock]]),
            (self.queries.settle_meta, [self._random(4).hex(), self.place, self.place]),
            (self.queries.settle_tenants, [self._random(16).hex(), self.place, self.place]),
            ("COMMIT", ()),
        ]
        self.use(lambda connection: connection.run(settle))
        self.is_copy = False

    def backup(self, target: str) -> None:
        raise InvalidInput(
            "a PostgreSQL store is backed up with PostgreSQL's own tools",
            "pg_dump --schema copies one snapshot of it; see the how-to on PostgreSQL.",
        )

    def check(self) -> list[str]:
        found = [str(line) for (line,) in self._read(BROKEN, [self._schema_name, self._schema_name])]
        for what, text in orphans(self.queries.dialect.schema).items():
            ((count,),) = self._read(text)
            if count:
                found.append(f"{count} rows of {what} name a task that does not exist")
        for what, text in misplaced(self.queries.dialect.schema).items():
            ((count,),) = self._read(text)
            if count:
                found.append(f"{count} entries of {what} are not as their tasks are")
        return found

    def close(self) -> None:
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        self.listener.close()
        if not self._shares:
            self.connections.close()

    def lock_key(self, *names: str) -> int:
        """A lock's number: 64 bits of a hash. Two names that collide would only wait for each other."""
        name = "\x00".join(("tenure", self._schema_name, *names)).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)

    def reader(self, kind: type[Any]) -> Callable[[Sequence[Any]], Any]:
        """Makes a row of this kind from a row of the server."""
        found = self._readers.get(kind)
        if found is None:
            dialect = self.queries.dialect
            codec: Codec[Any] = event_table(dialect).codec if kind is Event else Codec(kind)
            found = self._readers[kind] = reader(codec)
        return found

    @cached_property
    def block_reader(self) -> Callable[[Sequence[Any]], Event]:
        return event_blocks.reader()

    def _read(self, text: str, values: Sequence[Any] = ()) -> Rows:
        self._refuse_fork()
        return self.use(lambda connection: connection.all(text, values), again=True)

    def use(self, ask: Callable[[Connection], T], *, again: bool = False) -> T:
        """The result of `ask` on a connection; on a second one where the first was lost and it may run `again`."""
        connection = self.connections.take()
        try:
            try:
                return ask(connection)
            except Lost:
                if not again:
                    raise
                connection = self.connections.replaced(connection)
                return ask(connection)
        except Failed as error:
            raise self.explained(error, connection) from error
        except Lost as error:
            raise lost(error, self.url) from error
        finally:
            self.connections.give(connection)

    def explained(self, error: Failed, connection: Connection | None) -> TenureError:
        """Our error for a failed statement. It may fail only because a newer program has changed the tables.

        `meta`, read alone, shows it: every schema has it.
        """
        if error.state[:2] in ABOUT_TABLES and connection is not None and connection.is_open:
            with suppress(Failed, Lost, ValueError):
                if connection.in_transaction:
                    connection.run([("ROLLBACK", ())])
                ((breaking,),) = connection.all(self.queries.breaking)
                if breaking > self.schema:
                    return self.upgraded(breaking)
        return translated(error, self.url)

    def upgraded(self, breaking: int) -> SchemaMismatch:
        return SchemaMismatch(
            f"{self.url} was brought to schema {breaking} while this process ran with {self.schema}",
            "Start again with the newer version.",
        )

    def _refuse_fork(self) -> None:
        if self._process != os.getpid():
            raise StoreUnavailable(
                f"{self.url} was open when this process was forked, and a connection cannot be shared",
                "Start processes with spawn, or close the store before forking.",
            )

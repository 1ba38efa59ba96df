"""The store: opening, waiting, check."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tenure.core import limits
from tenure.core.errors import InvalidInput, MoveRefused, TenureError, close_all
from tenure.stores.fast_path import Call, Look
from tenure.stores.fast_path import Rows as FastRows
from tenure.stores.port import (
    DURABLE,
    FAST_PATH,
    HOLDERS,
    KEEPS_SEALS,
    PROCESSES,
    SCHEMAS,
    SNAPSHOTS,
    TENANTS,
    WAKE_UPS,
    WRITERS,
    Clock,
    ForLeader,
)
from tenure.stores.postgres import address, hot_functions, row_security, schema, statement_texts
from tenure.stores.postgres.connection import Answer, Connection, Rows, Statement, connect
from tenure.stores.postgres.errors import ABOUT_TABLES, Failed, translated
from tenure.stores.postgres.notifications import Listener, Notifier, Seen
from tenure.stores.postgres.places import misplaced
from tenure.stores.postgres.transaction import PostgresTransaction
from tenure.stores.sql import server_errors
from tenure.stores.sql.connection_pool import ConnectionPool
from tenure.stores.sql.nul import shown
from tenure.stores.sql.orphans import orphans
from tenure.stores.sql.server_errors import Lost, unknown
from tenure.stores.sql.server_store import ServerStore

STATEMENT = limits.STATEMENT_TIMEOUT
IDLE = limits.WRITE_IDLE
_START = 0.5  # seconds that the first waiter waits for the listening thread

BROKEN = """
SELECT 'index ' || i.indexrelid::regclass || ' is not valid' FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indrelid WHERE c.relnamespace = to_regnamespace(?) AND NOT i.indisvalid
UNION ALL
SELECT 'trigger ' || t.tgname || ' on ' || t.tgrelid::regclass || ' is not tenure''s' FROM pg_trigger AS t
JOIN pg_class AS c ON c.oid = t.tgrelid WHERE c.relnamespace = to_regnamespace(?) AND NOT t.tgisinternal
    AND t.tgname <> 'check_epoch'
"""
IS_STANDBY = "SELECT pg_is_in_recovery()"
AGE = """
SELECT CASE WHEN pg_is_in_recovery()
    THEN greatest(0, extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()))::float8 ELSE 0 END
"""


class Postgres(ServerStore[Connection]):
    """Implements the port with a schema of a PostgreSQL database. Opening creates it unless `create` is False."""

    features: frozenset[str] = frozenset(
        {DURABLE, PROCESSES, WAKE_UPS, TENANTS, SCHEMAS, WRITERS, FAST_PATH, HOLDERS, SNAPSHOTS}
    )

    def __init__(
        self,
        url: str,
        *,
        clock: Clock | None = None,
        random: Callable[[int], bytes] = os.urandom,
        create: bool = True,
        patience: float = limits.WRITE_WAIT,
        monotonic: Callable[[], float] = time.monotonic,
        connections: ConnectionPool[Connection] | None = None,
        owner: str | None = None,
        grants: bool = False,
    ) -> None:
        """`clock`: the server's unless given. `patience`: seconds to wait for a connection, and for a project's lock.

        `connections`: a pool that is shared with other stores in the same database; closing this store leaves it open.
        `owner`: the URL of the role that owns the tables, for migrations, where that of `url` owns nothing.
        `grants`: what the owner creates or upgrades, the role of `url` may use.
        """
        self._url, self._grants, self._patience = url, grants, patience
        where = address.parse(url)
        super().__init__(where.shown)
        self.clock = clock
        self.monotonic = monotonic
        self.queries = statement_texts.queries_of(where.schema)
        self.timeouts = [f"{int(seconds * 1000)}ms" for seconds in (STATEMENT, patience, IDLE)]
        self._random = random
        self._schema_name = where.schema
        self._closed = False
        self._owner = owner
        self.is_standby = False
        self.is_scoped = False  # by policies, which show one tenant at a time
        self.schema = len(schema.migrations())  # once it is open: that of the store when it was opened
        self.epoch_lock = self.lock_key("epoch")
        self.floor_lock = self.lock_key("floor") & 0x7FFFFFFF  # the first of two numbers: see `log_cursor`
        self.channel = f"tenure_{self.lock_key('channel') & 0xFFFFFFFF:08x}"
        self.notifier = Notifier()
        self.last_events: dict[tuple[str, str], int] = {}  # of a project: the last that a fast call has appended
        self._shares = connections is not None
        self.connections = connections or ConnectionPool(
            lambda: connect(where.conninfo, STATEMENT), where.pool, patience, self.url
        )
        direct = where.direct or where.conninfo
        self.listener = Listener(direct, self.channel, self.queries, self.floor_lock, self.notifier, STATEMENT)
        try:
            self.schema, self.is_copy, self.place = self._open(create)
        except BaseException:
            self.close()
            raise

    def _open(self, create: bool) -> schema.FoundSchema:
        lock, epoch = self.lock_key("migrate"), self._random(4).hex()

        def opened(connection: Connection) -> schema.FoundSchema:
            name = self._schema_name
            found = schema.open_schema(
                connection, name, lock, epoch, create=create, owner=self._owner, grants=self._grants
            )
            standing = row_security.standing(connection, name)
            row_security.refuse_unsafe(standing, self.url)
            self.is_scoped = standing.policies
            self.is_standby = bool(connection.all(IS_STANDBY)[0][0])
            if self.is_scoped:
                self.features |= {KEEPS_SEALS}
            return found

        return self.use(opened)

    def age(self) -> float | None:
        ((seconds,),) = self._read(AGE)
        return None if seconds is None else float(seconds)

    def in_schema(self, name: str) -> Postgres:
        """One tenant's own tables, so without policies. Its connections are this store's: close it before this one."""
        return Postgres(
            address.in_schema(self._url, name), clock=self.clock, random=self._random, patience=self._patience,
            monotonic=self.monotonic, connections=self.connections, owner=self._owner, grants=True,
        )  # fmt: skip

    def standing(self) -> row_security.Standing:
        """What the role of this store is to its tables."""
        return self.use(lambda connection: row_security.standing(connection, self._schema_name), again=True)

    def policy_findings(self) -> list[str]:
        """The faults of the policies, and of what this role may do."""
        name, role = self._schema_name, self.standing().role
        return self.use(lambda connection: row_security.findings(connection, name, role), again=True)

    def begin(self, tenant: str, *, write: bool) -> PostgresTransaction:
        self._check(tenant)
        return PostgresTransaction(self, tenant, write)

    def look(self, tenant: str, project: str, agents: Collection[str]) -> Look | None:
        self._refuse_fork()

        def run(statements: list[Statement]) -> list[Answer]:
            return self._ask(tenant, statements)

        return hot_functions.look(self, tenant, project, agents, run)

    def call(self, tenant: str, calls: Sequence[Call]) -> list[FastRows]:
        self._refuse_fork()
        return hot_functions.call(self, tenant, calls)

    def mark(self, tenant: str) -> int:
        heard = self.notifier.mark(tenant)
        if heard is not None:
            return heard
        ((last, snapshot),) = self._read(self.queries.mark, [tenant], tenant)
        self.notifier.remember({tenant: last}, snapshot)
        return int(last)

    def marks(self, tenants: Collection[str]) -> dict[str, int]:
        found = self._read(self.queries.marks, [list(tenants)])
        marks = {shown(tenant): int(last) for tenant, last, _ in found}
        if found:
            self.notifier.remember(marks, found[0][2])
        return marks

    def tenants_due(self, tenants: Collection[str], until: int, since: int) -> dict[str, ForLeader]:
        found = self._read(self.queries.tenants_due, [list(tenants), until, since])
        return {shown(tenant): ForLeader(at, is_changed) for tenant, at, is_changed in found}

    def wait(self, marks: Mapping[str, int], timeout: float) -> frozenset[str]:
        """The server's notification wakes it; commits of this process wake it earlier, a poll at the latest."""
        until = self.monotonic() + timeout
        notifier = self.notifier
        seen = notifier.seen(marks)
        changed = notifier.changed(seen)
        if changed:
            return changed
        if timeout > 0:
            self.listener.start(min(timeout, _START))
        unheard = {tenant: at for tenant, at in seen.items() if at.calls is None}
        if unheard:
            heard = notifier.heard(unheard)  # before the query
            changed = self._changed(unheard)
            if changed:
                return changed
            notifier.keep(heard)
            seen |= heard
        with notifier.waiter(marks) as waiter:
            while not (changed := notifier.changed(seen)):
                left = until - self.monotonic()
                if left <= 0:
                    break
                waiter.wait(left)
        return changed

    def _changed(self, seen: Mapping[str, Seen]) -> frozenset[str]:
        asked = [list(seen), [at.mark for at in seen.values()], [at.text or None for at in seen.values()]]
        found = self._read(self.queries.changed, [*asked, statement_texts.FAR_BACK])
        return frozenset(shown(tenant) for (tenant,) in found)

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

    def settled_here(self) -> list[str]:
        """Every tenant gets a new epoch, not only the one that has just begun one: the copy has receipts of all."""
        settle = (self.queries.settle_epochs, [self._random(4).hex(), self._random(16).hex()])
        found = self._with_epochs(settle).rows_apart()
        self.is_copy = False
        return sorted(shown(tenant) for (tenant,) in found)

    def begin_epochs(self, besides: str) -> list[str]:
        begin = (self.queries.begin_epochs, [besides, self._random(4).hex(), self._random(16).hex()])
        return sorted(shown(tenant) for (tenant,) in self._with_epochs(begin).rows_apart())

    def _with_epochs(self, change: Statement) -> Answer:
        """The answer of a statement that begins epochs. No writer has read one that ends here: it waits for all."""
        lock: Statement = (statement_texts.LOCK, [[self.epoch_lock]])

        def run(connection: Connection) -> Answer:
            try:
                return connection.run([(statement_texts.BEGIN_WRITE, ()), lock, change, ("COMMIT", ())])[2]
            except Lost as error:
                raise unknown(f"the connection was lost at the commit ({error})", self.url) from error

        return self.use(run)

    def clear_log_as_owner(self, tenant: str, connection: Connection) -> None:
        """In another transaction, on a connection of the owner: the role may delete nothing of a log.

        The tenant is frozen here and in use elsewhere. If what follows fails, the next try clears nothing more.
        """
        with row_security.owning(self._owner, connection) as owning:
            if owning is None:
                raise MoveRefused(
                    f"{self.url}: the role may not delete the log that tenant {tenant} left here when it moved away"
                    + (f"; {row_security.ELSEWHERE}" if self._owner else ""),
                    f"set {row_security.OWNER_URL} to the URL of the tables' owner for this process, and move it again",
                )
            named: Statement = ("SELECT set_config('tenure.tenant', $1, true)", [tenant])
            owning.run([("BEGIN", ()), named, (self.queries.clear_log, [tenant]), ("COMMIT", ())])

    def backup(self, target: str) -> None:
        raise InvalidInput(
            "a PostgreSQL store is backed up with PostgreSQL's own tools",
            "pg_dump --schema copies one snapshot of it; see the how-to on PostgreSQL.",
        )

    def check(self) -> list[str]:
        found = [str(line) for (line,) in self._read(BROKEN, [self._schema_name, self._schema_name])]
        for what, text in orphans(self.queries.dialect.schema).items():
            if count := self._counted(text):
                found.append(f"{count} rows of {what} name a task that does not exist")
        for what, text in misplaced(self.queries.dialect.schema).items():
            if count := self._counted(text):
                found.append(f"{count} entries of {what} are not as their tasks are")
        return found

    def _counted(self, text: str) -> int:
        """The count of a statement over all tenants: one after another where policies show one at a time."""
        if not self.is_scoped:
            return int(self._read(text)[0][0])
        tenants = [shown(name) for (name,) in self._read(self.queries.tenants)]
        return sum(int(self._read(text, (), tenant)[0][0]) for tenant in tenants)

    def close(self) -> None:
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        close_all(self.listener.close, *(() if self._shares else (self.connections.close,)))

    def lock_key(self, *names: str) -> int:
        """A lock's number: 64 bits of a hash. Two names that collide would only wait for each other."""
        name = "\x00".join(("tenure", self._schema_name, *names)).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big", signed=True)

    def _read(self, text: str, values: Sequence[Any] = (), tenant: str | None = None) -> Rows:
        """The rows of one statement, of this tenant where it reads a tenant's rows."""
        self._refuse_fork()
        if tenant is not None:
            return self._ask(tenant, [(text, values)])[0].rows_apart()
        return self.use(lambda connection: connection.all(text, values), again=True)

    def _ask(self, tenant: str, statements: Sequence[Statement]) -> list[Answer]:
        """Statements that read, after the one that sets their tenant; sent together, they are one transaction."""
        scoped = [(statement_texts.SCOPE, [tenant]), *statements]
        return self.use(lambda connection: connection.run(scoped), again=True)[1:]

    def _breaking(self, error: server_errors.Failed, connection: Connection) -> int | None:
        """`meta`, read alone, shows it: every schema has it."""
        assert isinstance(error, Failed)
        if error.state[:2] not in ABOUT_TABLES:
            return None
        if connection.in_transaction:
            connection.run([("ROLLBACK", ())])
        ((breaking,),) = connection.all(self.queries.breaking)
        return int(breaking)

    def _translated(self, error: server_errors.Failed) -> TenureError:
        assert isinstance(error, Failed)
        return translated(error, self.url)

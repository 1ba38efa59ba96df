"""One transaction and its queries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import apsw
import msgspec

from tenure.core.clock import Kept, accepted, refusal, store_time
from tenure.core.errors import Bug, Conflict, InvalidInput, SchemaMismatch, StoreCorrupt, TenureError
from tenure.core.events import Event
from tenure.core.filters import Where
from tenure.core.records import KINDS, Row, Task
from tenure.stores.port import Asked, Change, Head
from tenure.stores.sql.codec import named_bad
from tenure.stores.sql.statements import (
    MANY,
    Dialect,
    Statement,
    Write,
    event_table,
    grouped,
    head_of,
    table_of,
    writes,
)
from tenure.stores.sqlite.connections import Connections, SqliteConnection
from tenure.stores.sqlite.errors import (
    BAD_VALUES,
    Moved,
    at_commit,
    bad_value,
    is_spent,
    moved,
    moved_at_commit,
    translated,
)

if TYPE_CHECKING:
    from tenure.stores.sqlite.store import Sqlite

R = TypeVar("R", bound=Row)
S = TypeVar("S", bound=msgspec.Struct)

# The text search excludes nearly all rows before any JSON is parsed, and the first term allows the index of tagged
# tasks; the last one is exact.
DIALECT = Dialect(
    contains="({} <> '[]' AND instr({}, ?) > 0 AND EXISTS (SELECT 1 FROM json_each({}) AS item WHERE item.value = ?))"
)

# Read under the write lock, so that neither the epoch nor the last event can change before the commit.
HEAD = """
SELECT epoch, schema, (SELECT time FROM event ORDER BY sequence DESC LIMIT 1),
    boot, clock_offset, ahead_at, ahead_uptime FROM meta
"""

# A loose index scan: one step in task_ready from each lane's first task to the next lane's, however long a lane is.
LANES = """
WITH RECURSIVE found (row) AS (
    SELECT (SELECT rowid FROM task WHERE tenant = ?1 AND project = ?2 AND lane IS NOT NULL
            ORDER BY lane, band, rank, sequence, id LIMIT 1)
    UNION ALL
    SELECT (SELECT rowid FROM task WHERE tenant = ?1 AND project = ?2
            AND lane > (SELECT lane FROM task WHERE rowid = found.row)
            ORDER BY lane, band, rank, sequence, id LIMIT 1)
    FROM found WHERE found.row IS NOT NULL
)
SELECT lane, band, rank, sequence, id, plain FROM found JOIN task ON task.rowid = found.row
"""

# Both read the index task_ready alone.
READY = """
SELECT band, rank, sequence, id, plain FROM task
WHERE tenant = ? AND project = ? AND lane = ? ORDER BY band, rank, sequence, id LIMIT ?
"""
READY_AFTER = """
SELECT band, rank, sequence, id, plain FROM task
WHERE tenant = ? AND project = ? AND lane = ? AND (band, rank, sequence, id) > (?, ?, ?, ?)
ORDER BY band, rank, sequence, id LIMIT ?
"""
DUE = "WHERE tenant = ? AND project = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?"
# As LANES, over the projects with due tasks. An index across projects would cost every claim one more page.
DUE_PROJECTS = """
WITH RECURSIVE found (project) AS (
    SELECT min(project) FROM task WHERE tenant = ?1 AND due_at IS NOT NULL
    UNION ALL
    SELECT (SELECT min(project) FROM task WHERE tenant = ?1 AND project > found.project AND due_at IS NOT NULL)
    FROM found WHERE found.project IS NOT NULL
)
SELECT project FROM found WHERE project IS NOT NULL
"""
NEXT_DUE = "SELECT min(due_at) FROM task WHERE tenant = ? AND project = ? AND due_at IS NOT NULL"
SET_EPOCH = "UPDATE meta SET epoch = ?"
SET_CLOCK = "UPDATE meta SET boot = ?, clock_offset = ?, ahead_at = ?, ahead_uptime = ?"
SET_PLACE = "UPDATE meta SET place = ?"


class SqliteTransaction:
    """Implements the port. After a failed save or append it cannot commit, whatever the caller catches."""

    __slots__ = (
        "_connection",
        "_connections",
        "_ended",
        "_failed",
        "_last",
        "_store",
        "_tenant",
        "_write",
        "behind",
        "epoch",
        "jump",
        "now",
    )

    now: int
    epoch: str
    behind: int
    jump: int

    def __init__(self, store: Sqlite, connections: Connections, tenant: str, write: bool) -> None:
        self._store = store
        self._connections = connections
        self._ended: str | None = None  # the previous epoch, where this transaction begins another
        self._tenant = tenant
        self._write = write
        self._connection: SqliteConnection = _ENDED
        self._failed: TenureError | None = None
        self._last = 0  # the highest appended sequence

    def __enter__(self) -> SqliteTransaction:
        store = self._store
        if self._write:
            store.turn.acquire(store.patience, store.monotonic)
        connection = None
        try:
            connection = self._connections.take()
            at = store.clock()  # before a reader's snapshot: no lease that was renewed looks expired
            connection.execute("BEGIN IMMEDIATE" if self._write else "BEGIN")
            if self._write:
                at = store.clock()  # once the lock is held, however long that took
            if (change := self._connections.change()) is not None:
                raise moved(change)
            ((self.epoch, schema, last, *known),) = connection.execute(HEAD).fetchall()
            if schema != store.schema:
                raise SchemaMismatch(
                    f"{store.path} was brought to schema {schema} while this process ran with {store.schema}",
                    "Start it again with the newer version.",
                )
            kept = Kept(*known)
            self.now, after, self.jump = store_time(kept, at, last)
            self.behind = max(0, self.now - at.wall)
            if self._write and after != kept and not self.jump:
                connection.execute(SET_CLOCK, after)
        except BaseException as error:
            if connection is not None:
                self._end(connection, "ROLLBACK", error)
            if self._write:
                store.turn.release()
            if isinstance(error, Moved):
                store.lose(self._connections, error.change)
            if isinstance(error, apsw.Error):
                raise translated(error, store.path) from error
            raise
        self._connection = connection
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        store, connection = self._store, self._connection
        self._connection = _ENDED
        good = kind is None and self._failed is None
        try:
            if not self._write or not good:
                self._end(connection, "ROLLBACK", self._failed and self._failed.__cause__)
            else:
                try:
                    connection.execute("COMMIT")
                except BaseException as failure:
                    self._end(connection, "ROLLBACK", failure)
                    if isinstance(failure, apsw.Error):
                        raise at_commit(failure, store.path) from failure
                    raise
                self._connections.give(connection)
                if (change := self._connections.change()) is not None:  # it may have gone to a file without a name
                    store.lose(self._connections, change)
                    raise moved_at_commit(change)
        finally:
            if self._write:
                store.turn.release()
        if kind is None and self._failed is not None:
            raise self._failed
        if good and self._last:
            store.announce(self._last, self.epoch, self._ended)

    def load(self, kind: type[R], keys: Collection[tuple[str, str]]) -> list[R]:
        table = table_of(kind, DIALECT)
        if len(keys) == 1:
            return self._rows(table.loading_one(self._tenant, next(iter(keys))), table.codec.decode)
        rows: list[R] = []
        for statement in table.loading(self._tenant, keys):
            rows += self._rows(statement, table.codec.decode)
        return rows

    def find(
        self,
        kind: type[R],
        where: Where,
        *,
        order: str = "id",
        after: tuple[Any, str] | None = None,
        limit: int | None = None,
    ) -> list[R]:
        table = table_of(kind, DIALECT)
        return self._rows(table.finding(self._tenant, where, order, after, limit), table.codec.decode)

    def count(self, kind: type[Row], where: Where, by: str) -> dict[Any, int]:
        return grouped(kind, by, self._read(table_of(kind, DIALECT).counting(self._tenant, where, by)), DIALECT)

    def sums(self, kind: type[Row], where: Where, by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
        rows = self._read(table_of(kind, DIALECT).summing(self._tenant, where, by, fields))
        return grouped(kind, by, ((row[0], row[1:]) for row in rows), DIALECT)

    def tally(self, kind: type[Row], where: Where, most: int) -> int:
        ((number,),) = self._read(table_of(kind, DIALECT).tallying(self._tenant, where, most))
        return int(number)

    def lanes(self, project: str, depth: int = 1) -> dict[str, list[Head]]:
        heads = {lane: head_of(row) for lane, *row in self._read((LANES, [self._tenant, project]))}
        if depth == 1:
            return {lane: [head] for lane, head in heads.items()}
        return {lane: self.ready(project, lane, limit=depth) for lane in heads}

    def ready(self, project: str, lane: str, *, after: Head | None = None, limit: int = 1) -> list[Head]:
        if after is None:
            rows = self._read((READY, [self._tenant, project, lane, limit]))
        else:
            rows = self._read((READY_AFTER, [self._tenant, project, lane, *after[:4], limit]))
        return [head_of(row) for row in rows]

    def due(self, project: str | None, until: int, limit: int) -> list[Task]:
        tasks = table_of(Task, DIALECT)
        projects = [project]
        if project is None:
            projects = [name for (name,) in self._read((DUE_PROJECTS, [self._tenant]))]
        found: list[Task] = []
        for name in projects:
            found += self._rows((f"{tasks.select} {DUE}", [self._tenant, name, until, limit]), tasks.codec.decode)
        if len(projects) > 1:
            found.sort(key=lambda task: (task.due_at, task.id))
        return found[:limit]

    def next_due(self, project: str) -> int | None:
        ((earliest,),) = self._read((NEXT_DUE, [self._tenant, project]))
        found: int | None = earliest
        return found

    def is_due(self, project: str) -> bool:
        first = self.next_due(project)
        return first is not None and first <= self.now

    def save(self, changes: Sequence[Change], *, last: bool = False) -> None:
        self._must_write()
        changed = self._connection.raw.changes
        at: list[Row] = []  # the row that is being written

        def values_of(some: Iterable[Write]) -> Iterator[Sequence[Any]]:
            for _, values, row in some:
                at[:] = (row,)
                yield values  # continues once they are written
                if changed() != 1:
                    raise Conflict(f"{_name(at)} is not as it was loaded")

        try:
            for text, some in groupby(writes(changes, self._tenant, DIALECT), itemgetter(0)):
                self._connection.executemany(text, values_of(some))
        except apsw.ConstraintError as error:
            self._fail(Conflict(f"{_name(at)}: {error}"), error)
        except (*BAD_VALUES, apsw.Error, TenureError) as error:
            self._refuse(error)

    def append(self, events: Sequence[Event]) -> None:
        self._must_write()
        table = event_table(DIALECT)
        tenant, values = self._tenant, table.values
        try:
            if len(events) == 1:
                self._connection.execute(table.insert, values(tenant, events[0]))
            elif len(events) < MANY:
                self._connection.executemany(table.insert, [values(tenant, event) for event in events])
            else:
                self._connection.executemany(table.insert, table.many(tenant, events))
        except apsw.ConstraintError as error:
            self._fail(Conflict(f"event: {error}"), error)
        except (*BAD_VALUES, apsw.Error) as error:
            self._refuse(error)
        if events:
            self._last = self._connection.raw.last_insert_rowid()

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        table = event_table(DIALECT)
        found = self._rows(table.finding(self._tenant, where, after, limit, last), table.codec.decode)
        return found[::-1] if last else found

    def drop_events(self, project: str, tasks: Collection[str]) -> None:
        self._must_write()
        for statement in event_table(DIALECT).dropping(self._tenant, project, tasks):
            self._read(statement)

    def clear_log(self) -> None:
        raise InvalidInput(f"{self._store.url} keeps one tenant, which does not move")

    def expect(self, queries: Sequence[Asked]) -> None:
        """Does nothing: a query needs no round trip."""

    def lock(self, name: str, projects: Collection[str]) -> None:
        pass  # there is one writer

    def set_epoch(self, epoch: str) -> None:
        self._must_write()
        self._read((SET_EPOCH, [epoch]))
        self._ended = self._ended or self.epoch
        self.epoch = epoch

    def accept_clock(self) -> int:
        self.jump = 0
        self._must_write()
        at = self._store.clock()
        self._read((SET_CLOCK, [*accepted(at)]))
        before, self.now = self.now, at.wall
        return max(0, before - at.wall)

    def move_to(self, place: str) -> None:
        """Record the file's device and inode."""
        self._must_write()
        self._read((SET_PLACE, [place]))

    def _rows(self, statement: Statement, decode: Callable[[Sequence[Any]], S]) -> list[S]:
        """Each row is decoded before the next is read: many wide ones at once are costly for the garbage collector."""
        rows: list[S] = []
        row: Sequence[Any] = ()
        try:
            for row in self._execute(statement):
                rows.append(decode(row))
        except msgspec.MsgspecError as error:
            raise StoreCorrupt(
                f"{self._store.path}: row {named_bad((row,), decode)} cannot be read: {error}"
            ) from error
        except apsw.Error as error:
            self._refuse(error)
        return rows

    def _read(self, statement: Statement) -> list[tuple[Any, ...]]:
        try:
            rows: list[tuple[Any, ...]] = self._execute(statement).fetchall()
        except apsw.Error as error:
            self._refuse(error)
        return rows

    def _execute(self, statement: Statement) -> apsw.Cursor:
        try:
            cursor: apsw.Cursor = self._connection.execute(*statement)
        except (*BAD_VALUES, apsw.Error) as error:
            self._refuse(error)
        return cursor

    def _must_write(self) -> None:
        if not self._write:
            raise Bug("a read transaction cannot write")
        if self.jump:
            self._fail(refusal(self.jump, self._store.path), None)

    def _refuse(self, error: Exception) -> NoReturn:
        if isinstance(error, TenureError):
            self._fail(error, error.__cause__)
        if isinstance(error, apsw.Error):
            self._fail(translated(error, self._store.path), error)
        self._fail(bad_value(error), error)

    def _fail(self, error: TenureError, cause: BaseException | None) -> NoReturn:
        """From here on the transaction can only roll back."""
        self._failed = error
        raise error from cause

    def _end(self, connection: SqliteConnection, how: str, why: BaseException | None) -> None:
        """Return the connection to the pool; close it after an I/O error, or where it cannot roll back."""
        if is_spent(why):
            connection.close()
            return
        try:
            if connection.raw.in_transaction:
                connection.execute(how)
        except apsw.Error:
            connection.close()
        else:
            self._connections.give(connection)


def _name(rows: Sequence[Row]) -> str:
    return f"{KINDS[type(rows[0])].table} {rows[0].id}" if rows else "a row"


class _Ended(SqliteConnection):
    """The connection of a transaction that has ended: others may use the real one by now."""

    __slots__ = ()

    def __init__(self) -> None:
        self.execute = self.executemany = self._refuse

    @property
    def raw(self) -> apsw.Connection:  # type: ignore[override]  # there is none
        self._refuse()

    def _refuse(self, *_: Any) -> NoReturn:
        raise Bug("this transaction has ended")


_ENDED = _Ended()

"""How a transaction begins, queries and ends, with few round trips.

A transaction begins with its first query, sent together with everything that a beginning needs; queries that are known
beforehand (`expect`) are sent together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

import msgspec

from tenure.core.errors import Bug, Conflict, SchemaMismatch, StoreCorrupt, TenureError
from tenure.core.events import Event
from tenure.stores.mariadb import statement_texts as texts
from tenure.stores.mariadb.connection import Answer, Connection, Rows, Statement, rendered
from tenure.stores.mariadb.errors import BAD_VALUES, DEADLOCK, Failed, Lost, at_commit, bad_value, lost, unknown
from tenure.stores.sql.statements import event_table, marks

if TYPE_CHECKING:
    from tenure.stores.mariadb.store import Mariadb

S = TypeVar("S", bound=msgspec.Struct)
_Asked = tuple[str, tuple[Any, ...]]
_TRIES = 5  # of a beginning that met a deadlock: two may create the same project's turn
_TOGETHER = 256 * 1024  # characters of rows in one INSERT
_log = event_table(texts.DIALECT)
_names = [column.name for column in _log.codec.columns]
_sequence = _names.index("sequence")
_INSERT_EVENTS = 'INSERT INTO "event" ("tenant", "' + '", "'.join(_names) + '") VALUES '  # noqa: S608 - names of a struct's fields
_EVENT = f"({marks(_sequence + 1)}, LAST_INSERT_ID() - ?, {marks(len(_names) - _sequence - 1)})"


class Write(msgspec.Struct, frozen=True):
    """A statement that must touch so many rows; otherwise one of `what` is not as it was loaded."""

    statement: Statement
    count: int
    what: str


class Pipeline:
    """A transaction without its verbs. After a failure it cannot commit, whatever the caller catches.

    A write transaction has the turn of each project from its first access on: its reads stay true until the commit,
    including those of absent rows.
    """

    jump = 0  # there is no second clock to compare the server's with

    def __init__(self, store: Mariadb, tenant: str, write: bool) -> None:
        self._store = store
        self._tenant = tenant
        self._write = write
        self._connection: Connection | None = None
        self._began = False
        self._held: set[str] = set()  # projects
        self._to_hold: dict[str, None] = {}  # from the beginning on
        self._failed: TenureError | None = None
        self._wrote = False
        self._later: list[Write] = []  # sent before the commit, or before the next query
        self._events: list[Event] = []  # appended right before the commit
        self._last = 0  # the sequence of the last event
        self._now = 0
        self._behind = 0  # how far the server's clock is behind
        self._epoch = ""
        self._noting: list[Statement] | None = None  # while `expect` collects queries
        self._ahead: dict[_Asked, Answer] = {}  # answers to expected queries; a write makes them void

    def __enter__(self) -> Self:
        self._connection = self._store.connections.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection = self._connection
        assert connection is not None
        try:
            if kind is None and self._failed is None and (self._wrote or self._later or self._events):
                self._commit()
        finally:
            self._connection = None
            if connection.is_open and connection.in_transaction:
                _roll_back(connection)
            self._store.connections.give(connection)
        if kind is None and self._failed is not None:
            raise self._failed
        if kind is None and self._last:
            self._store.wake_ups.post(self._tenant, self._last)

    @property
    def now(self) -> int:
        self._enter(())
        return self._now

    @property
    def behind(self) -> int:
        self._enter(())
        return self._behind

    @property
    def epoch(self) -> str:
        self._enter(())
        return self._epoch

    # --- expected queries ---

    def expect(self, ask: Callable[[Self], object]) -> None:
        """Send the queries of `ask` in one round trip, with the beginning if needed, and keep the answers."""
        noted: list[Statement] = []
        self._noting = noted
        try:
            ask(self)
        finally:
            self._noting = None
        answers = self._run(noted) if self._began else self._begin(along=noted)
        for (text, values), answer in zip(noted, answers, strict=True):
            self._ahead[text, tuple(values)] = answer

    # --- beginning ---

    def _enter(self, projects: Iterable[str]) -> None:
        """Begin, and take the turns of these projects, by name: the order is the same for every transaction."""
        if self._noting is not None:
            self._to_hold.update(dict.fromkeys(projects))
        elif not self._write:
            self._begin()
        elif not self._began:
            self._to_hold.update(dict.fromkeys(projects))
            self._begin()
        else:
            missing = [project for project in projects if project not in self._held]
            if missing:
                self._run([self._turns(missing)])
                self._held.update(missing)

    def _turns(self, projects: Iterable[str]) -> Statement:
        rows = [(self._tenant, project) for project in sorted(projects)]
        return texts.TURN + ", ".join([texts.TURN_ROW] * len(rows)) + texts.TURN_TAKEN, [v for row in rows for v in row]

    def _begin(self, along: Sequence[Statement] = ()) -> list[Answer]:
        """Begin unless it has begun; returns the answers to the statements `along`."""
        if self._began:
            return []
        store = self._store
        given = store.clock() if store.clock is not None and not self._write else 0
        clock: Statement = (texts.CLOCK, ())
        head: Statement = (texts.HEAD, [self._tenant, self._tenant])
        if self._write:
            turns = [self._turns(self._to_hold)] if self._to_hold else []
            start = [(texts.BEGIN_WRITE, ()), *turns, (texts.META_SHARED, ()), head, clock]
        else:
            start = [clock, (texts.SNAPSHOT, ()), (texts.BEGIN_READ, ()), (texts.META, ()), head]
        answers = self._first([*start, *along])
        began = answers[: len(start)]
        ((now,),) = began[start.index(clock)].rows
        meta, ((own_epoch, end, last),) = began[start.index(head) - 1].rows, began[start.index(head)].rows
        if len(meta) != 1 or end is None:
            self._fail(SchemaMismatch(f"{store.url}: another program emptied its table meta", "Restore a backup."))
        breaking, epoch = meta[0]
        if breaking > store.schema:
            self._fail(store.upgraded(breaking))
        self._epoch = own_epoch or epoch
        if store.clock is not None:
            now = store.clock() if self._write else given
        self._now = now if last is None or now > last else last
        self._behind = self._now - now
        self._began = True
        self._held.update(self._to_hold)
        return answers[len(start) :]

    def _first(self, start: list[Statement]) -> list[Answer]:
        """The first round trip. An idle connection may have been lost long ago: then a new one is tried."""
        assert self._connection is not None, "this transaction has ended"
        for _ in range(_TRIES):
            try:
                return self._connection.run(start)
            except Lost:
                self._connection = self._store.connections.replaced(self._connection)
                break
            except Failed as error:
                if error.code != DEADLOCK:
                    self._refuse(error)
            except BAD_VALUES as error:
                self._refuse(error)
        return self._run(start)

    # --- ending ---

    def _commit(self) -> None:
        """The sequences, the events and COMMIT in one round trip: a failure before COMMIT prevents it."""
        connection, url = self._connection, self._store.url
        assert connection is not None
        self._send_later()
        appending: list[Statement] = []
        try:
            appending = self._appending()
            answers = connection.run([*appending, ("COMMIT", ())])
        except Failed as error:
            is_commit = error.place == len(appending)
            self._failed = at_commit(error, url) if is_commit else self._store.explained(error, connection)
            raise self._failed from error
        except Lost as error:
            self._failed = unknown(f"the connection was lost at the commit ({error})", url)
            raise self._failed from error
        except BAD_VALUES as error:
            self._failed = bad_value(error)
            raise self._failed from error
        if appending:
            self._last = answers[0].last

    def _appending(self) -> list[Statement]:
        """Statements that take the sequences of the events so far and insert them."""
        events, self._events = self._events, []
        if not events:
            return []
        statements: list[Statement] = [(texts.TAKE_SEQUENCES, [len(events)])]
        left = len(events)
        rows = []
        for event in events:
            left -= 1
            values = _log.codec.encode(event)
            values[_sequence] = left
            rows.append(rendered(_EVENT, [self._tenant, *values]))
        statements += [(text, ()) for text, _ in together(_INSERT_EVENTS, rows)]
        return statements

    def _append_now(self) -> None:
        """Before a query of the log: from here on no other transaction appends until this one ends."""
        try:
            appending = self._appending()
        except BAD_VALUES as error:
            self._refuse(error)
        if appending:
            self._last = self._run(appending)[0].last
            self._wrote = True

    # --- statements ---

    def _rows(self, statement: Statement, read: Callable[[Sequence[Any]], S]) -> list[S]:
        rows = self._read(*statement)
        try:
            return [read(row) for row in rows]
        except msgspec.MsgspecError as error:
            raise StoreCorrupt(f"{self._store.url}: a row cannot be read: {error}") from error

    def _read(self, text: str, values: Sequence[Any]) -> Rows:
        if self._noting is not None:
            self._noting.append((text, values))
            return ()
        if self._ahead:
            answer = self._ahead.get((text, tuple(values)))
            if answer is not None and self._failed is None:
                return answer.rows
        return self._run([(text, values)])[0].rows

    def _run(self, statements: Sequence[Statement]) -> list[Answer]:
        if self._failed is not None:
            raise self._failed
        if self._connection is None:
            raise Bug("this transaction has ended")
        self._send_later()
        try:
            return self._connection.run(statements)
        except (*BAD_VALUES, Failed, Lost) as error:
            self._refuse(error)

    def _send_later(self) -> None:
        later, self._later = self._later, []
        if later:
            self._send(later)

    def _send(self, writes: Sequence[Write]) -> None:
        self._wrote = True
        for write, answer in zip(writes, self._run([write.statement for write in writes]), strict=True):
            if answer.touched != write.count:
                self._fail(Conflict(f"{write.what} is not as it was loaded"))

    def _must_write(self) -> None:
        if not self._write:
            raise Bug("a read transaction cannot write")
        self._ahead.clear()

    def _refuse(self, error: Exception) -> NoReturn:
        url = self._store.url
        if isinstance(error, Lost):
            self._fail(lost(error, url), error)
        if isinstance(error, Failed):
            self._fail(self._store.explained(error, self._connection), error)
        self._fail(bad_value(error), error)

    def _fail(self, error: TenureError, cause: BaseException | None = None) -> NoReturn:
        """From here on the transaction can only roll back."""
        self._failed = error
        raise error from cause


def together(head: str, rows: Iterable[str]) -> Iterator[tuple[str, int]]:
    """INSERT statements of many rows each, with their number."""
    some: list[str] = []
    size = 0
    for row in rows:
        if some and size + len(row) > _TOGETHER:
            yield head + ", ".join(some), len(some)
            some, size = [], 0
        some.append(row)
        size += len(row)
    if some:
        yield head + ", ".join(some), len(some)


def _roll_back(connection: Connection) -> None:
    try:
        connection.run([("ROLLBACK", ())])
    except (Failed, Lost):
        connection.close()  # the server rolls back by itself

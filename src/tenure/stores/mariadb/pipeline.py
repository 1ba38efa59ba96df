"""How a transaction begins, queries and ends, with few round trips.

See `stores/sql/pipeline.py` for what it shares with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from tenure.core.errors import SchemaMismatch, TenureError
from tenure.core.events import Event
from tenure.stores.mariadb import statement_texts as texts
from tenure.stores.mariadb.answers import Answer
from tenure.stores.mariadb.connection import Connection, Statement, rendered
from tenure.stores.mariadb.errors import DEADLOCK, Failed, at_commit
from tenure.stores.sql import pipeline
from tenure.stores.sql.server_errors import BAD_VALUES, Lost, bad_value, unknown
from tenure.stores.sql.statements import event_table, marks

if TYPE_CHECKING:
    from tenure.stores.mariadb.store import Mariadb

_TRIES = 5  # of a beginning that met a deadlock: two may create the same project's turn
_TOGETHER = 256 * 1024  # characters of rows in one INSERT
_log = event_table(texts.DIALECT)
_names = [column.name for column in _log.codec.columns]
_sequence = _names.index("sequence")
_INSERT_EVENTS = 'INSERT INTO "event" ("tenant", "' + '", "'.join(_names) + '") VALUES '  # noqa: S608 - names of a struct's fields
_EVENT = f"({marks(_sequence + 1)}, LAST_INSERT_ID() - ?, {marks(len(_names) - _sequence - 1)})"


class Write(msgspec.Struct, frozen=True):
    """A change or deletion must touch one row; otherwise the row is not as it was loaded. An insertion touches all."""

    text: str  # with its values
    is_counted: bool


class Pipeline(pipeline.Pipeline[Connection, Answer]):
    """A transaction without its verbs. A writer has the turn of each project."""

    def __init__(self, store: Mariadb, tenant: str, write: bool) -> None:
        super().__init__(store.url, texts.DIALECT, tenant, write)
        self._store = store
        self._later: list[Write] = []  # sent before the commit, or before the next query
        self._events: list[Event] = []  # appended right before the commit
        self._last = 0  # the sequence of the last event
        self._first_due: dict[str, int | None] = {}  # of each project that it held from the beginning on

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
            try:
                if connection.is_open and connection.in_transaction:
                    _roll_back(connection)
            finally:
                self._store.connections.give(connection)
        if kind is None and self._failed is not None:
            raise self._failed
        if kind is None and self._last:
            self._store.wake_ups.post(self._tenant, self._last)

    # --- beginning ---

    def _hold(self, missing: Sequence[str]) -> None:
        (answer,) = self._run([self._turns(missing)])
        self._note_new_turns(answer, len(missing))

    def _note_new_turns(self, answer: Answer, turns: int) -> None:
        """In a cluster a new epoch ends writers by their turns, and does not know one that is being made."""
        if self._is_of_cluster and answer.touched < 2 * turns:  # one that is made counts once, others twice
            self._run([self._turns([texts.FIRST_TURN])])

    @property
    def _is_of_cluster(self) -> bool:
        return self._connection is not None and self._connection.is_of_cluster

    def _turns(self, projects: Iterable[str]) -> Statement:
        rows = [(self._tenant, project) for project in sorted(projects)]
        return texts.TURN + ", ".join([texts.TURN_ROW] * len(rows)) + texts.TURN_TAKEN, [v for row in rows for v in row]

    def _begin(self, along: Sequence[Statement] = ()) -> list[Answer]:
        if self._began:
            return []
        store = self._store
        given = store.clock() if store.clock is not None and not self._write else 0
        clock: Statement = (texts.CLOCK, ())
        head: Statement = (texts.HEAD, [self._tenant, self._tenant])
        if self._write:
            turns = [self._turns(self._to_hold)] if self._to_hold else []
            start = [(texts.BEGIN_WRITE, ()), *turns, (texts.META_SHARED, ()), head, clock]
            dues = [(texts.NEXT_DUE, [self._tenant, project]) for project in self._to_hold]
        else:
            start, dues = [clock, (texts.SNAPSHOT, ()), (texts.BEGIN_READ, ()), (texts.META, ()), head], []
        answers = self._first([*start, *dues, *along])
        began = answers[: len(start)]
        ((now,),) = began[start.index(clock)].rows()
        meta, ((own_epoch, end, last),) = began[start.index(head) - 1].rows(), began[start.index(head)].rows()
        if len(meta) != 1 or end is None:
            self._fail(SchemaMismatch(f"{store.url}: another program emptied its table meta", "Restore a backup."))
        breaking, epoch = meta[0]
        if breaking > store.schema:
            self._fail(store.upgraded(breaking))
        if store.clock is not None:
            now = store.clock() if self._write else given
        self._learn(now, last, own_epoch or epoch)
        for project, answer in zip(self._to_hold, answers[len(start) : len(start) + len(dues)], strict=False):
            self._first_due[project] = answer.found[0][0] if answer.found else None
        if self._write and self._to_hold:
            self._note_new_turns(began[1], len(self._to_hold))
        return answers[len(start) + len(dues) :]

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
        """The last writes, the events and COMMIT in one round trip: a failure before COMMIT prevents it."""
        connection, url = self._connection, self._store.url
        assert connection is not None
        before: list[Statement] = []
        try:
            writes = list(blocks(self._later))
            appending = self._appending()
            before = [*writes, *appending]
            answers = connection.run([*before, ("COMMIT", ())])
        except Failed as error:
            is_commit = error.place == len(before)
            self._failed = at_commit(error, url) if is_commit else self._store.explained(error, connection)
            raise self._failed from error
        except Lost as error:
            self._failed = unknown(f"the connection was lost at the commit ({error})", url)
            raise self._failed from error
        except BAD_VALUES as error:
            self._failed = bad_value(error)
            raise self._failed from error
        if appending:
            self._last = answers[len(writes)].last

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
        statements += [(text, ()) for text in together(_INSERT_EVENTS, rows)]
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

    def _run(self, statements: Sequence[Statement]) -> list[Answer]:
        connection = self._usable()
        self._send_later()
        try:
            return connection.run(statements)
        except (*BAD_VALUES, Failed, Lost) as error:
            self._refuse(error)

    def _send_later(self) -> None:
        later, self._later = self._later, []
        if later:
            self._send(later)

    def _send(self, writes: Sequence[Write]) -> None:
        self._wrote = True
        self._run(list(blocks(writes)))

    def _explained(self, error: Exception) -> TenureError:
        assert isinstance(error, Failed)
        return self._store.explained(error, self._connection)


def blocks(writes: Iterable[Write]) -> Iterator[Statement]:
    """The writes in a few blocks, each with one answer: reading two hundred costs more than some of the writes.

    A block fails, and with it everything that is sent after it, unless each change has touched its row.
    """
    some: list[str] = []
    counted = size = 0
    for write in writes:
        if some and size + len(write.text) > _TOGETHER:
            yield _block(some, counted), ()
            some, counted, size = [], 0, 0
        some.append(f"{write.text};{texts.COUNT_TOUCHED}" if write.is_counted else f"{write.text};")
        counted += write.is_counted
        size += len(write.text)
    if some:
        yield _block(some, counted), ()


def _block(some: list[str], counted: int) -> str:
    if not counted:
        return f"BEGIN NOT ATOMIC {''.join(some)} END"
    return f"BEGIN NOT ATOMIC {texts.TOUCHED} {''.join(some)} {texts.ALL_TOUCHED % counted} END"


def together(head: str, rows: Iterable[str]) -> Iterator[str]:
    """INSERT statements of many rows each."""
    some: list[str] = []
    size = 0
    for row in rows:
        if some and size + len(row) > _TOGETHER:
            yield head + ", ".join(some)
            some, size = [], 0
        some.append(row)
        size += len(row)
    if some:
        yield head + ", ".join(some)


def _roll_back(connection: Connection) -> None:
    try:
        connection.run([("ROLLBACK", ())])
    except (Failed, Lost):
        connection.close()  # the server rolls back by itself

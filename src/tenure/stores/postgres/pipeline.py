"""How a transaction begins, queries and ends, with few round trips.

A round trip costs more than most queries. So a transaction begins with its first query, sent together with everything
that a beginning needs, and queries that are known beforehand (`expect`) are sent together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

import msgspec

from tenure.core.errors import Bug, SchemaMismatch, StoreCorrupt, TenureError
from tenure.stores.postgres import statement_texts
from tenure.stores.postgres.connection import Answer, Connection, Rows, Statement
from tenure.stores.postgres.errors import BAD_VALUES, Failed, Lost, bad_value, lost, unknown
from tenure.stores.postgres.log_cursor import settled
from tenure.stores.postgres.values import shown

if TYPE_CHECKING:
    from tenure.stores.postgres.store import Postgres

S = TypeVar("S", bound=msgspec.Struct)
_Asked = tuple[str, tuple[Any, ...]]


class Pipeline:
    """A transaction without its verbs. After a failure it cannot commit, whatever the caller catches.

    A write transaction holds the lock of each project from its first access on: its reads stay true until the commit,
    including those of absent rows.
    """

    def __init__(self, store: Postgres, tenant: str, write: bool) -> None:
        self._store = store
        self._queries = store.queries
        self._dialect = store.queries.dialect
        self._tenant = tenant
        self._write = write
        self._connection: Connection | None = None
        self._began = False
        self._held: set[str] = set()  # projects
        self._to_hold: dict[str, None] = {}  # from the beginning on
        self._has_floor = False
        self._follows = False  # it continues in the log from a cursor: see `log_cursor`
        self._settled: int | None = None  # the last sequence that it may see then
        self._failed: TenureError | None = None
        self._wrote = False
        self._later: list[Statement] = []  # sent with the commit, or before the next query
        self._appends = 0  # the number of the statement among these that appends the last event; 0: none
        self._last: tuple[int, int] | None = None  # sequence and transaction of the last event
        self._now = 0
        self._behind = 0  # how far the server's clock is behind
        self._is_due: dict[str, bool] = {}  # by project: does it have due tasks?
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
        self._connection = None
        try:
            if kind is None and self._failed is None and (self._wrote or self._later):
                self._commit(connection)
            elif connection.is_open and connection.in_transaction:
                connection.post(("ROLLBACK", ()))
        except Lost:
            pass  # before a commit: the server rolls back by itself
        finally:
            self._store.connections.give(connection)
        if kind is None and self._failed is not None:
            raise self._failed
        if self._last is not None:
            self._store.announce(self._tenant, *self._last)

    @property
    def now(self) -> int:
        self._enter(())
        return self._now

    @property
    def behind(self) -> int:
        self._enter(())
        return self._behind

    @property
    def jump(self) -> int:
        return 0  # there is no second clock to compare the server's with

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
        if self._began:
            answers = self._run(noted)
        else:
            answers = self._begin(along=noted)
        for (text, values), answer in zip(noted, answers, strict=True):
            self._ahead[_asked(text, values)] = answer

    # --- beginning ---

    def _enter(self, projects: Iterable[str]) -> None:
        """Begin, and hold these projects, in the order of their locks, which is the same for every transaction."""
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
                self._run([(statement_texts.LOCK, [sorted(self._locks("project", missing))])])
                self._held.update(missing)

    def _locks(self, what: str, projects: Iterable[str]) -> list[int]:
        return [self._store.lock_key(what, self._tenant, project) for project in projects]

    def _begin(self, along: Sequence[Statement] = ()) -> list[Answer]:
        """Begin unless it has begun; returns the answers to the statements `along`."""
        if self._began:
            return []
        store, texts = self._store, self._queries
        given = store.clock() if store.clock is not None and not self._write else 0
        projects = list(self._to_hold) if self._write else []
        start: list[Statement]
        if not self._write:
            start = [(statement_texts.BEGIN_READ, ()), (texts.head_for_reading, [self._tenant])]
        else:
            start = [
                (statement_texts.BEGIN_WRITE, ()),
                (
                    statement_texts.SETTINGS,
                    [*store.timeouts, sorted(self._locks("project", projects)), store.epoch_lock],
                ),
                (texts.head_of_projects, [projects, self._tenant]) if projects else (texts.head, [self._tenant]),
            ]
        if self._follows:
            end, floors = self._first([(texts.drawn, ()), (statement_texts.FLOORS, [store.floor_lock])])
            self._settled = settled(end.rows()[0][0], (floor for (floor,) in floors.rows()))
        answers = self._first([*start, *along])
        rows = answers[len(start) - 1].rows()
        if len(rows) != 1:
            self._fail(SchemaMismatch(f"{store.url}: another program emptied its table meta", "Restore a backup."))
        breaking, self._epoch, last, now, due = rows[0][-5:]
        if breaking > store.schema:
            self._fail(store.upgraded(breaking))
        if store.clock is None:
            self._is_due = dict.fromkeys(projects, False) | dict.fromkeys(map(shown, due or ()), True)
        else:
            now = store.clock() if self._write else given
        self._now = now if last is None or now > last else last
        self._behind = self._now - now
        self._began = True
        self._held.update(projects)
        return answers[len(start) :]

    def _first(self, start: list[Statement]) -> list[Answer]:
        """The first round trip. An idle connection may have been lost long ago: then a new one is tried."""
        assert self._connection is not None, "this transaction has ended"
        try:
            return self._connection.run(start)
        except Lost:
            self._connection = self._store.connections.replaced(self._connection)
        except (*BAD_VALUES, Failed) as error:
            self._refuse(error)
        return self._run(start)

    # --- ending ---

    def _commit(self, connection: Connection) -> None:
        """The remaining statements and COMMIT in one round trip: a failure before COMMIT prevents it.

        The notification goes along where its payload is already known; otherwise it is sent after, without waiting.
        """
        connection.notices.clear()
        url = self._store.url
        call = None if self._appends or self._last is None else self._store.notice(self._tenant, *self._last)
        try:
            answers = connection.run([*self._later, ("COMMIT", ())], aside=call)
        except Failed as error:
            self._failed = self._store.explained(error, connection)
            if connection.is_open and connection.in_transaction:
                connection.run([("ROLLBACK", ())])
            raise self._failed from error
        except Lost as error:
            raise unknown(f"the connection was lost at the commit ({error})", url) from error
        except BAD_VALUES as error:
            self._failed = bad_value(error)
            connection.run([("ROLLBACK", ())])
            raise self._failed from error
        if answers[-1].tag != b"COMMIT":
            raise Bug(f"{url}: COMMIT was answered with {answers[-1].tag!r}")
        # The only possible warning: the wait for the synchronous standby was interrupted, and the server reports
        # success.
        warnings = [notice.message for notice in connection.notices if notice.severity == "WARNING"]
        if warnings:
            raise unknown(f"committed on this server alone: {warnings[0]}", url)
        self._note_last(answers)
        if call is None and self._last is not None:
            self._store.notify(connection, self._tenant, *self._last)

    def _floor(self) -> list[Statement]:
        """To be sent before the first sequence is drawn: see `log_cursor`."""
        is_first, self._has_floor = not self._has_floor, True
        return [(self._queries.floor, [self._store.floor_lock])] if is_first else []

    def _note_last(self, answers: Sequence[Answer]) -> None:
        if self._appends:
            ((sequence, transaction),) = answers[self._appends - 1].rows()
            self._last = (sequence, int(transaction))
            self._appends = 0

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
            return []
        if self._ahead:
            answer = self._ahead.get(_asked(text, values))
            if answer is not None and self._failed is None:
                return answer.rows()
        return self._run([(text, values)])[0].rows()

    def _run(self, statements: Sequence[Statement]) -> list[Answer]:
        if self._failed is not None:
            raise self._failed
        if self._connection is None:
            raise Bug("this transaction has ended")
        first, self._later = self._later, []
        try:
            answers = self._connection.run([*first, *statements] if first else statements)
        except (*BAD_VALUES, Failed, Lost) as error:
            self._refuse(error)
        if first:
            self._wrote = True
            self._note_last(answers)
        return answers[len(first) :]

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


def _asked(text: str, values: Sequence[Any]) -> _Asked:
    return text, tuple(tuple(value) if type(value) is list else value for value in values)

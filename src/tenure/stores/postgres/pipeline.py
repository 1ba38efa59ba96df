"""How a transaction begins, queries and ends, with few round trips.

See `stores/sql/pipeline.py` for what it shares with others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tenure.core.errors import Bug, SchemaMismatch, TenureError
from tenure.stores.postgres import statement_texts
from tenure.stores.postgres.connection import Answer, Connection, Statement
from tenure.stores.postgres.errors import Failed
from tenure.stores.postgres.log_cursor import settled
from tenure.stores.sql import pipeline
from tenure.stores.sql.nul import shown
from tenure.stores.sql.server_errors import BAD_VALUES, Lost, bad_value, unknown

if TYPE_CHECKING:
    from tenure.stores.postgres.store import Postgres


class Pipeline(pipeline.Pipeline[Connection, Answer]):
    """A transaction without its verbs. A writer holds the lock of each project."""

    def __init__(self, store: Postgres, tenant: str, write: bool) -> None:
        super().__init__(store.url, store.queries.dialect, tenant, write)
        self._store = store
        self._queries = store.queries
        self._due_text = store.queries.due
        self._has_floor = False
        self._follows = False  # it continues in the log from a cursor: see `log_cursor`
        self._settled: int | None = None  # the last sequence that it may see then
        self._later: list[Statement] = []  # sent with the commit, or before the next query
        self._appends = 0  # the number of the statement among these that appends the last event; 0: none
        self._last: tuple[int, int] | None = None  # sequence and transaction of the last event
        self._is_due: dict[str, bool] = {}  # by project: does it have due tasks?
        self._drops = False  # blocks of due times that outlived their tasks: see `narrow_rows`

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
            if kind is None and self._failed is None and (self._wrote or self._later or self._drops):
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

    # --- beginning ---

    def _hold(self, missing: Sequence[str]) -> None:
        self._run([(statement_texts.LOCK, [sorted(self._locks("project", missing))])])

    def _locks(self, what: str, projects: Iterable[str]) -> list[int]:
        return [self._store.lock_key(what, self._tenant, project) for project in projects]

    def _begin(self, along: Sequence[Statement] = ()) -> list[Answer]:
        if self._began:
            return []
        store, texts = self._store, self._queries
        given = store.clock() if store.clock is not None and not self._write else 0
        projects = list(self._to_hold) if self._write else []
        start: list[Statement]
        if not self._write:
            start = [
                (statement_texts.BEGIN_READ, ()),
                (statement_texts.READ_SETTINGS, [self._tenant]),
                (texts.head_for_reading, [self._tenant]),
            ]
        else:
            start = [
                (statement_texts.BEGIN_WRITE, ()),
                (
                    statement_texts.SETTINGS,
                    [self._tenant, *store.timeouts, sorted(self._locks("project", projects)), store.epoch_lock],
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
        breaking, epoch, last, now, due = rows[0][-5:]
        if breaking > store.schema:
            self._fail(store.upgraded(breaking))
        if store.clock is None:
            self._is_due = dict.fromkeys(projects, False) | dict.fromkeys(map(shown, due or ()), True)
        else:
            now = store.clock() if self._write else given
        self._learn(now, last, epoch)
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
            connection.roll_back()
            raise self._failed from error
        except Lost as error:
            raise unknown(f"the connection was lost at the commit ({error})", url) from error
        except BAD_VALUES as error:
            self._failed = bad_value(error)
            connection.roll_back()
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

    def _run(self, statements: Sequence[Statement]) -> list[Answer]:
        connection = self._usable()
        first, self._later = self._later, []
        try:
            answers = connection.run([*first, *statements] if first else statements)
        except (*BAD_VALUES, Failed, Lost) as error:
            self._refuse(error)
        if first:
            self._wrote = True
            self._note_last(answers)
        return answers[len(first) :]

    def _explained(self, error: Exception) -> TenureError:
        assert isinstance(error, Failed)
        return self._store.explained(error, self._connection)

"""One transaction. It begins with its first question, so that everything a beginning needs is one round trip."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from tenure.core.errors import Bug, Conflict, SchemaMismatch, StoreCorrupt, TenureError
from tenure.core.events import Event
from tenure.core.filters import Where
from tenure.core.records import Row, Task
from tenure.stores.port import Change, Head
from tenure.stores.postgres import log, queries
from tenure.stores.postgres.cursors import first_running
from tenure.stores.postgres.failures import BAD_VALUES, UNIQUE, Failed, Lost, bad_value, lost, translated, unknown
from tenure.stores.postgres.link import Answer, Link, Rows, Statement
from tenure.stores.postgres.values import shown
from tenure.stores.postgres.writing import writes
from tenure.stores.sql.statements import event_table, table_of

if TYPE_CHECKING:
    from tenure.stores.postgres.store import Postgres

R = TypeVar("R", bound=Row)
S = TypeVar("S", bound=msgspec.Struct)


class PostgresTransaction:
    """Fulfils the port. Once anything has failed it cannot commit, whatever the caller catches.

    A write transaction holds the lock of each project that it touches from its first touch on: there is one writer a
    project, so that what was read stays true until the commit, rows that are not there yet included.
    """

    def __init__(self, store: Postgres, tenant: str, write: bool) -> None:
        self._store = store
        self._queries = store.queries
        self._dialect = store.queries.dialect
        self._tenant = tenant
        self._write = write
        self._link: Link | None = None
        self._began = False
        self._held: set[str] = set()  # projects
        self._failed: TenureError | None = None
        self._wrote = False
        self._log: list[Statement] = []  # events that go with the commit, or before the next question
        self._last: tuple[int, int] | None = None  # of the last event: sequence and transaction
        self._now = 0
        self._epoch = ""

    def __enter__(self) -> PostgresTransaction:
        self._link = self._store.connections.take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        link = self._link
        assert link is not None
        self._link = None
        try:
            if kind is None and self._failed is None and (self._wrote or self._log):
                self._commit(link)
            elif link.is_open and link.in_transaction:
                link.run([("ROLLBACK", ())])
        except Lost:
            pass  # before a commit: the server takes back by itself what it was not told to keep
        finally:
            self._store.connections.give(link)
        if kind is None and self._failed is not None:
            raise self._failed
        if self._last is not None:
            self._store.announce(*self._last)

    @property
    def now(self) -> int:
        self._begin()
        return self._now

    @property
    def epoch(self) -> str:
        self._begin()
        return self._epoch

    # --- reading ---

    def load(self, kind: type[R], keys: Collection[tuple[str, str]]) -> list[R]:
        if not keys:
            return []
        self._enter({project for project, _ in keys})
        table = table_of(kind, self._dialect)
        rows: list[R] = []
        for statement in table.loading(self._tenant, keys):
            rows += self._rows(statement, self._store.reader(kind))
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
        self._enter_asked(where)
        statement = table_of(kind, self._dialect).finding(self._tenant, where, order, after, limit)
        return [] if statement is None else self._rows(statement, self._store.reader(kind))

    def count(self, kind: type[Row], where: Where, by: str) -> dict[Any, int]:
        self._enter_asked(where)
        statement = table_of(kind, self._dialect).counting(self._tenant, where, by)
        return {} if statement is None else {_value(by): n for by, n in self._read(*statement)}

    def sums(self, kind: type[Row], where: Where, by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
        self._enter_asked(where)
        statement = table_of(kind, self._dialect).summing(self._tenant, where, by, fields)
        if statement is None:
            return {}
        rows = self._read(*statement)
        return {_value(row[0]): tuple(None if n is None else int(n) for n in row[1:]) for row in rows}

    def tally(self, kind: type[Row], where: Where, most: int) -> int:
        self._enter_asked(where)
        statement = table_of(kind, self._dialect).tallying(self._tenant, where, most)
        if statement is None:
            return 0
        ((number,),) = self._read(*statement)
        return int(number)

    def lanes(self, project: str) -> dict[str, Head]:
        self._enter((project,))
        rows = self._read(self._queries.lanes, [self._tenant, project])
        return {shown(lane): Head(band, rank, sequence, shown(id)) for lane, band, rank, sequence, id in rows}

    def ready(self, project: str, lane: str, *, after: Head | None = None, limit: int = 1) -> list[Head]:
        self._enter((project,))
        if after is None:
            rows = self._read(self._queries.ready, [self._tenant, project, lane, limit])
        else:
            rows = self._read(self._queries.ready_after, [self._tenant, project, lane, *after, limit])
        return [Head(band, rank, sequence, shown(id)) for band, rank, sequence, id in rows]

    def due(self, project: str | None, until: int, limit: int) -> list[Task]:
        tasks = table_of(Task, self._dialect)
        if project is not None:
            projects = [project]
            self._enter(projects)
        else:
            projects = [shown(name) for (name,) in self._read(self._queries.due_projects, [self._tenant])]
        found: list[Task] = []
        for name in projects:
            statement = (f"{tasks.select} {queries.DUE}", [self._tenant, name, until, limit])
            found += self._rows(statement, self._store.reader(Task))
        if len(projects) > 1:
            found.sort(key=lambda task: (task.due_at, task.id))
        return found[:limit]

    def next_due(self, project: str) -> int | None:
        self._enter((project,))
        rows = self._read(self._queries.next_due, [self._tenant, project])
        return rows[0][0] if rows else None

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        """Across projects, oldest first, only those that no running transaction can still get before: see cursors."""
        self._enter_asked(where)
        statement = log.finding(self._tenant, where, after, limit, last, self._dialect)
        if statement is None:
            return []
        text, values = statement
        if not last and not isinstance(where.get("project"), str):
            before = first_running(self._read, self._store.epoch_lock)
            if before is not None:
                text = text.replace(' AND "sequence" > ', f" AND {queries.FINISHED}" + ' AND "sequence" > ', 1)
                values = [*values[:-2], str(before), *values[-2:]]
        found = self._rows((text, values), self._store.reader(Event))
        return found[::-1] if last else found

    # --- writing ---

    def save(self, changes: Sequence[Change]) -> None:
        self._must_write()
        try:
            planned = list(writes(changes, self._tenant, self._dialect))
        except TenureError as error:
            self._fail(error)
        if not planned:
            return
        self._enter({write.row.project for write in planned})
        self._wrote = True
        for write, answer in zip(planned, self._run([(w.text, w.values) for w in planned]), strict=True):
            if answer.touched != 1:
                self._fail(Conflict(f"{write.table} {write.row.id} is not as it was loaded"))

    def append(self, events: Sequence[Event]) -> None:
        self._must_write()
        if events:
            self._enter({event.project for event in events})
            table = event_table(self._dialect)
            text = f'{table.insert} RETURNING "sequence", "xid"::text'
            self._log += [(text, table.values(self._tenant, event)) for event in events]

    def lock(self, name: str, projects: Collection[str]) -> None:
        """One lock a project, whatever it is for: see the package."""
        if self._write:
            self._enter(projects)

    def set_epoch(self, epoch: str) -> None:
        """Waits for every writer of the store, since each of them has read the epoch that ends here."""
        self._must_write()
        self._begin()
        place = self._store.place
        self._run([(queries.LOCK, [self._store.epoch_lock]), (self._queries.set_epoch, [self._tenant, epoch, place])])
        self._wrote = True
        self._epoch = epoch

    # --- beginning and ending ---

    def _enter_asked(self, where: Where) -> None:
        project = where.get("project")
        if isinstance(project, str):
            self._enter((project,))
        else:
            self._begin()

    def _enter(self, projects: Iterable[str]) -> None:
        """Begin, and hold these projects; several in the order of their locks, which is the same for everybody."""
        if not self._write:
            self._begin()
            return
        missing = [project for project in projects if project not in self._held]
        if not self._began:
            self._begin(missing)
        elif missing:
            self._run([(queries.LOCK, [key]) for key in self._keys(missing)])
            self._held.update(missing)

    def _keys(self, projects: Iterable[str]) -> list[int]:
        return sorted({self._store.lock_key("project", self._tenant, project) for project in projects})

    def _begin(self, projects: Sequence[str] = ()) -> None:
        if self._began:
            return
        store, texts = self._store, self._queries
        given = store.clock() if store.clock is not None and not self._write else 0
        start: list[Statement]
        if not self._write:
            start = [(queries.BEGIN_READ, ()), (texts.head_for_reading, [self._tenant])]
        else:
            start = [(queries.BEGIN_WRITE, ()), (queries.SETTINGS, store.timeouts)]
            start += [(queries.LOCK, [key]) for key in self._keys(projects)]
            # Shared, and after the projects': whoever puts a new epoch in force holds those, and waits for this one.
            start.append((queries.SHARE, [store.epoch_lock]))
            if projects:
                start.append((texts.head_of_projects, [list(projects), *[self._tenant] * 3]))
            else:
                start.append((texts.head, [self._tenant]))
        rows = self._first(start)[-1].rows()
        if len(rows) != 1:
            self._fail(SchemaMismatch(f"{store.url}: its table meta was emptied by somebody else", "Restore a backup."))
        breaking, self._epoch, last, now = rows[0][-4:]
        if breaking > store.schema:
            self._fail(
                SchemaMismatch(
                    f"{store.url} was brought to schema {breaking} while this process ran with {store.schema}",
                    "Start it again with the newer version.",
                )
            )
        if store.clock is not None:
            now = store.clock() if self._write else given
        self._now = now if last is None or now > last else last
        self._began = True
        self._held.update(projects)

    def _first(self, start: list[Statement]) -> list[Answer]:
        """The first round trip. An idle connection may have died long ago: then it is tried with a new one."""
        assert self._link is not None, "this transaction has ended"
        try:
            return self._link.run(start)
        except Lost:
            self._link = self._store.connections.replaced(self._link)
        except (*BAD_VALUES, Failed) as error:
            self._refuse(error)
        return self._run(start)

    def _commit(self, link: Link) -> None:
        """Events and COMMIT in one round trip: what fails before it keeps it from being run."""
        link.notices.clear()
        url = self._store.url
        try:
            answers = link.run([*self._log, ("COMMIT", ())])
        except Failed as error:
            self._failed = _taken(error, "event") if error.state == UNIQUE else translated(error, url)
            if link.is_open and link.in_transaction:
                link.run([("ROLLBACK", ())])
            raise self._failed from error
        except Lost as error:
            raise unknown(f"the connection was lost at the commit ({error})", url) from error
        except BAD_VALUES as error:
            self._failed = bad_value(error)
            link.run([("ROLLBACK", ())])
            raise self._failed from error
        if answers[-1].tag != b"COMMIT":
            raise Bug(f"{url}: COMMIT was answered with {answers[-1].tag!r}")
        # The one thing that warns here: a wait for the synchronous standby was cut short, and the server says success.
        warnings = [notice.message for notice in link.notices if notice.severity == "WARNING"]
        if warnings:
            raise unknown(f"committed on this server alone: {warnings[0]}", url)
        if self._log:
            self._note_last(answers[-2])
        if self._last is not None:
            self._store.notify(link, *self._last)

    def _note_last(self, answer: Answer) -> None:
        ((sequence, transaction),) = answer.rows()
        self._last = (sequence, int(transaction))

    # --- statements ---

    def _rows(self, statement: Statement, read: Callable[[Sequence[Any]], S]) -> list[S]:
        rows = self._read(*statement)
        try:
            return [read(row) for row in rows]
        except msgspec.MsgspecError as error:
            raise StoreCorrupt(f"{self._store.url}: a row cannot be read: {error}") from error

    def _read(self, text: str, values: Sequence[Any]) -> Rows:
        return self._run([(text, values)])[0].rows()

    def _run(self, statements: Sequence[Statement]) -> list[Answer]:
        if self._failed is not None:
            raise self._failed
        if self._link is None:
            raise Bug("this transaction has ended")
        untold, self._log = self._log, []
        try:
            answers = self._link.run([*untold, *statements] if untold else statements)
        except (*BAD_VALUES, Failed, Lost) as error:
            self._refuse(error)
        if untold:
            self._wrote = True
            self._note_last(answers[len(untold) - 1])
        return answers[len(untold) :]

    def _must_write(self) -> None:
        if not self._write:
            raise Bug("a reading transaction cannot write")

    def _refuse(self, error: Exception) -> NoReturn:
        url = self._store.url
        if isinstance(error, Lost):
            self._fail(lost(error, url), error)
        if isinstance(error, Failed):
            self._fail(translated(error, url), error)
        self._fail(bad_value(error), error)

    def _fail(self, error: TenureError, cause: BaseException | None = None) -> NoReturn:
        """From here on the transaction can only end without a trace."""
        self._failed = error
        raise error from cause


def _taken(error: Failed, what: str) -> Conflict:
    return Conflict(f"{what}: {error.message}")


def _value(by: Any) -> Any:
    return shown(by) if isinstance(by, str) else by

"""What the transactions of database servers share: when they begin, queries sent together, and the verbs of plain SQL.

A round trip costs more than most queries. So a transaction begins with its first query, sent together with everything
that a beginning needs, and queries that are known beforehand (`expect`) are sent together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Generic, NoReturn, Protocol, TypeVar

import msgspec

from tenure.core.errors import Bug, StoreCorrupt, TenureError
from tenure.core.filters import Where
from tenure.core.records import Row, Task
from tenure.stores.port import Asked, Head
from tenure.stores.sql.codec import named_bad
from tenure.stores.sql.connection_pool import Pooled
from tenure.stores.sql.nul import reader, shown
from tenure.stores.sql.server_errors import BAD_VALUES, Lost, bad_value, lost, servers_clock
from tenure.stores.sql.statements import Dialect, grouped, head_of, table_of

R = TypeVar("R", bound=Row)
S = TypeVar("S", bound=msgspec.Struct)
C = TypeVar("C", bound=Pooled)
A = TypeVar("A", bound="Rowed")
Statement = tuple[str, Sequence[Any]]
_Key = tuple[str, tuple[Any, ...]]


class Rowed(Protocol):
    """An answer to a statement."""

    def rows(self) -> Sequence[tuple[Any, ...]]: ...


class Pipeline(Generic[C, A]):
    """A transaction without the verbs that differ. After a failure it cannot commit, whatever the caller catches.

    A write transaction has each project to itself from its first access on: its reads stay true until the commit,
    including those of absent rows.
    """

    jump = 0  # there is no second clock to compare the server's with

    def __init__(self, url: str, dialect: Dialect, tenant: str, write: bool) -> None:
        self._url = url
        self._dialect = dialect
        self._tenant = tenant
        self._write = write
        self._connection: C | None = None
        self._began = False
        self._held: set[str] = set()  # projects
        self._to_hold: dict[str, None] = {}  # from the beginning on
        self._failed: TenureError | None = None
        self._wrote = False
        self._now = 0
        self._behind = 0  # how far the server's clock is behind
        self._epoch = ""
        self._noting: list[Statement] | None = None  # while `expect` collects queries
        self._ahead: dict[_Key, A] = {}  # answers to expected queries; a write makes them void

    # --- of each server ---

    def _begin(self, along: Sequence[Statement] = ()) -> list[A]:
        """Begin unless it has begun; returns the answers to the statements `along`."""
        raise NotImplementedError

    def _hold(self, missing: Sequence[str]) -> None:
        """Wait for more projects, in the order that every transaction has."""
        raise NotImplementedError

    def _run(self, statements: Sequence[Statement]) -> list[A]:
        raise NotImplementedError

    def _explained(self, error: Exception) -> TenureError:
        """Our error for a statement that the server refused."""
        raise NotImplementedError

    def _due_projects(self, until: int) -> list[str]:
        """The projects with due tasks."""
        raise NotImplementedError

    _due_text: str  # behind a SELECT of tasks: those of one project that are due, in order

    def _added_up(self, statement: Statement) -> Sequence[tuple[Any, ...]]:
        """The rows of a statement that counts or adds up."""
        return self._read(*statement)

    # --- what every transaction knows ---

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

    def _learn(self, clock: int, last: int | None, epoch: str) -> None:
        """It has begun. Time does not run back: `last` is the time of the tenant's last event."""
        self._epoch = epoch
        self._now = clock if last is None or clock > last else last
        self._behind = self._now - clock
        self._began = True
        self._held.update(self._to_hold)

    # --- queries ---

    def expect(self, queries: Sequence[Asked]) -> None:
        """Send them in one round trip, with the beginning if needed, and keep the answers."""
        noted: list[Statement] = []
        self._noting = noted
        try:
            for asked in queries:
                getattr(self, asked.query)(*asked.arguments, **asked.options)
        finally:
            self._noting = None
        answers = self._run(noted) if self._began else self._begin(along=noted)
        for (text, values), answer in zip(noted, answers, strict=True):
            self._ahead[_asked(text, values)] = answer

    def _enter(self, projects: Iterable[str]) -> None:
        """Begin, and hold these projects, in an order that is the same for every transaction."""
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
                self._hold(missing)
                self._held.update(missing)

    def _enter_asked(self, where: Where) -> None:
        project = where.get("project")
        self._enter((project,) if isinstance(project, str) else ())

    def load(self, kind: type[R], keys: Collection[tuple[str, str]]) -> list[R]:
        if not keys:
            return []
        self._enter({project for project, _ in keys})
        rows: list[R] = []
        for statement in table_of(kind, self._dialect).loading(self._tenant, keys):
            rows += self._rows(statement, reader(kind))
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
        return self._rows(statement, reader(kind))

    def count(self, kind: type[Row], where: Where, by: str) -> dict[Any, int]:
        self._enter_asked(where)
        rows = self._added_up(table_of(kind, self._dialect).counting(self._tenant, where, by))
        return grouped(kind, by, ((_value(value), number) for value, number in rows), self._dialect)

    def sums(self, kind: type[Row], where: Where, by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
        self._enter_asked(where)
        rows = self._added_up(table_of(kind, self._dialect).summing(self._tenant, where, by, fields))
        pairs = ((_value(row[0]), tuple(None if n is None else int(n) for n in row[1:])) for row in rows)
        return grouped(kind, by, pairs, self._dialect)

    def tally(self, kind: type[Row], where: Where, most: int) -> int:
        self._enter_asked(where)
        rows = self._read(*table_of(kind, self._dialect).tallying(self._tenant, where, most))
        return int(rows[0][0]) if rows else 0

    def due(self, project: str | None, until: int, limit: int) -> list[Task]:
        self._enter(() if project is None else (project,))
        projects = self._due_projects(until) if project is None else [project]
        text = f"{table_of(Task, self._dialect).select} {self._due_text}"
        found: list[Task] = []
        for name in projects:
            found += self._rows((text, [self._tenant, name, until, limit]), reader(Task))
        if len(projects) > 1:
            found.sort(key=lambda task: (task.due_at, task.id))
        return found[:limit]

    def lock(self, name: str, projects: Collection[str]) -> None:
        """One lock per project, whatever `name` is. Before the first query they are only noted."""
        if self._write and not self._began:
            self._to_hold.update(dict.fromkeys(projects))
        elif self._write:
            self._enter(projects)

    def accept_clock(self) -> int:
        raise servers_clock(self._url)

    def _rows(self, statement: Statement, read: Callable[[Sequence[Any]], S]) -> list[S]:
        rows = self._read(*statement)
        try:
            return [read(row) for row in rows]
        except msgspec.MsgspecError as error:
            raise StoreCorrupt(f"{self._url}: row {named_bad(rows, read)} cannot be read: {error}") from error

    def _read(self, text: str, values: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
        if self._noting is not None:
            self._noting.append((text, values))
            return []
        if self._ahead:
            answer = self._ahead.get(_asked(text, values))
            if answer is not None and self._failed is None:
                return answer.rows()
        return self._run([(text, values)])[0].rows()

    def _usable(self) -> C:
        """The connection of a transaction that has neither failed nor ended."""
        if self._failed is not None:
            raise self._failed
        if self._connection is None:
            raise Bug("this transaction has ended")
        return self._connection

    # --- failures ---

    def _must_write(self) -> None:
        if not self._write:
            raise Bug("a read transaction cannot write")
        self._ahead.clear()

    def _refuse(self, error: Exception) -> NoReturn:
        """`error`: Lost, one of BAD_VALUES, or of a statement that failed on the server."""
        if isinstance(error, Lost):
            self._fail(lost(error, self._url), error)
        if isinstance(error, BAD_VALUES):
            self._fail(bad_value(error), error)
        self._fail(self._explained(error), error)

    def _fail(self, error: TenureError, cause: BaseException | None = None) -> NoReturn:
        """From here on the transaction can only roll back."""
        self._failed = error
        raise error from cause


def shown_head(row: Sequence[Any]) -> Head:
    """A task's position in its lane."""
    head = head_of(row)
    return head._replace(id=shown(head.id)) if "\x01" in head.id else head


def _value(by: Any) -> Any:
    return shown(by) if isinstance(by, str) else by


def _asked(text: str, values: Sequence[Any]) -> _Key:
    return text, tuple(tuple(value) if type(value) is list else value for value in values)

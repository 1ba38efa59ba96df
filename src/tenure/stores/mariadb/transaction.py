"""The verbs of the port, each one query or a few."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

from tenure.core.errors import InvalidInput, TenureError
from tenure.core.events import Event
from tenure.core.filters import Where
from tenure.core.records import KINDS, Row, Task
from tenure.stores.mariadb import statement_texts as texts
from tenure.stores.mariadb.connection import Statement, rendered
from tenure.stores.mariadb.errors import BAD_VALUES
from tenure.stores.mariadb.pipeline import Pipeline, Write, together
from tenure.stores.mariadb.statement_texts import DIALECT
from tenure.stores.port import Change, Head
from tenure.stores.sql.statements import conditions, event_table, grouped, head_of, joined, table_of, writes

R = TypeVar("R", bound=Row)


class MariadbTransaction(Pipeline):
    """Implements the port."""

    # --- reading ---

    def load(self, kind: type[R], keys: Collection[tuple[str, str]]) -> list[R]:
        if not keys:
            return []
        self._enter({project for project, _ in keys})
        table = table_of(kind, DIALECT)
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
        self._enter_asked(where)
        table = table_of(kind, DIALECT)
        return self._rows(table.finding(self._tenant, where, order, after, limit), table.codec.decode)

    def count(self, kind: type[Row], where: Where, by: str) -> dict[Any, int]:
        self._enter_asked(where)
        return grouped(kind, by, self._read(*table_of(kind, DIALECT).counting(self._tenant, where, by)), DIALECT)

    def sums(self, kind: type[Row], where: Where, by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
        self._enter_asked(where)
        rows = self._read(*table_of(kind, DIALECT).summing(self._tenant, where, by, fields))
        pairs = ((row[0], tuple(None if n is None else int(n) for n in row[1:])) for row in rows)
        return grouped(kind, by, pairs, DIALECT)

    def tally(self, kind: type[Row], where: Where, most: int) -> int:
        self._enter_asked(where)
        rows = self._read(*table_of(kind, DIALECT).tallying(self._tenant, where, most))
        return int(rows[0][0]) if rows else 0

    def lanes(self, project: str, depth: int = 1) -> dict[str, list[Head]]:
        """Two round trips: which lanes there are, then their names and first tasks."""
        self._enter((project,))
        here = [self._tenant, project]
        rows = self._read(texts.LANES, here * 2)
        found = rows[0][0] if rows else b""
        hashes = [found[at : at + _HASH] for at in range(0, len(found), _HASH)]
        if not hashes:
            return {}
        answers = self._run(
            [
                statement
                for lane in hashes
                for statement in ((texts.LANE, [*here, lane]), (texts.READY, [*here, lane, depth]))
            ]
        )
        lanes = {
            name.rows[0][0]: [head_of(row) for row in heads.rows]
            for name, heads in zip(answers[::2], answers[1::2], strict=True)
        }
        return dict(sorted(lanes.items()))

    def ready(self, project: str, lane: str, *, after: Head | None = None, limit: int = 1) -> list[Head]:
        self._enter((project,))
        values: list[Any] = [self._tenant, project, lane_hash(lane)]
        if after is None:
            rows = self._read(texts.READY, [*values, limit])
        else:
            place = after[:4]
            beyond = [value for length in range(1, 5) for value in place[:length]]
            rows = self._read(texts.READY_AFTER, [*values, *beyond, limit])
        return [head_of(row) for row in rows]

    def due(self, project: str | None, until: int, limit: int) -> list[Task]:
        tasks = table_of(Task, DIALECT)
        if project is not None:
            projects = [project]
            self._enter(projects)
        else:
            self._enter(())
            projects = [name for (name,) in self._read(texts.PROJECTS, [self._tenant])]
            answers = self._run([(texts.NEXT_DUE, [self._tenant, name]) for name in projects])
            firsts = [answer.rows for answer in answers]
            projects = [name for name, first in zip(projects, firsts, strict=True) if first and first[0][0] <= until]
        found: list[Task] = []
        for name in projects:
            statement = (f"{tasks.select} {texts.DUE}", [self._tenant, name, until, limit])
            found += self._rows(statement, tasks.codec.decode)
        if len(projects) > 1:
            found.sort(key=lambda task: (task.due_at, task.id))
        return found[:limit]

    def next_due(self, project: str) -> int | None:
        self._enter((project,))
        rows = self._read(texts.NEXT_DUE, [self._tenant, project])
        return rows[0][0] if rows else None

    def is_due(self, project: str) -> bool:
        first = self.next_due(project)
        return first is not None and first <= self._now

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        self._enter_asked(where)
        if self._events:
            self._append_now()
        found = self._rows(log_query(self._tenant, where, after, limit, last), event_table(DIALECT).codec.decode)
        return found[::-1] if last else found

    # --- writing ---

    def save(self, changes: Sequence[Change], *, last: bool = False) -> None:
        self._must_write()
        try:
            planned = list(writes(changes, self._tenant, DIALECT))
            statements = list(_together(planned))
        except TenureError as error:
            self._fail(error)
        except BAD_VALUES as error:
            self._refuse(error)
        if not planned:
            return
        self._enter({row.project for *_, row in planned})
        if last:
            self._later += statements
        else:
            self._send_later()
            self._send(statements)

    def append(self, events: Sequence[Event]) -> None:
        self._must_write()
        if events:
            self._enter({event.project for event in events})
            self._events += events

    def drop_events(self, project: str, tasks: Collection[str]) -> None:
        self._must_write()
        last = self.events({"project": project}, limit=1, last=True)
        if not last or not tasks:
            return
        for start in range(0, len(wanted := list(dict.fromkeys(tasks))), _AT_ONCE):
            clauses, values = conditions(
                event_table(DIALECT).codec,
                {"project": project, "task": tuple(wanted[start : start + _AT_ONCE])},
                DIALECT,
            )
            text = f'DELETE FROM "event" WHERE {joined(clauses)} AND "sequence" <> ?'  # noqa: S608 - our own names
            self._run([(text, [self._tenant, *values, last[0].sequence])])
        self._wrote = True

    def lock(self, name: str, projects: Collection[str]) -> None:
        """One turn per project, whatever `name` is. Before the first query they are only noted.

        `log` needs nothing: sequences are in the order of commits.
        """
        if self._write and not self._began:
            self._to_hold.update(dict.fromkeys(projects))
        elif self._write:
            self._enter(projects)

    def set_epoch(self, epoch: str) -> None:
        """Waits for every writer of the store, since each of them has read the epoch that ends here."""
        self._must_write()
        self._enter(())
        self._run([(texts.META_ALONE, ()), (texts.SET_EPOCH, [self._tenant, epoch, self._store.place])])
        self._wrote = True
        self._epoch = epoch

    def accept_clock(self) -> int:
        raise InvalidInput(
            f"{self._store.url}: its time is the server's, and continues once that has reached the last event's time",
            "Correct the server's clock.",
        )

    def _enter_asked(self, where: Where) -> None:
        project = where.get("project")
        self._enter((project,) if isinstance(project, str) else ())


_AT_ONCE = 256  # tasks of one DELETE
_HASH = 32  # bytes of a lane's hash
_LOG_INDEXES = (
    ("task", "event_version"),
    ("session", "event_session"),
    ("causation_id", "event_causation"),
    ("project", "event_project"),
)


def log_query(tenant: str, where: Where, after: int, limit: int, last: bool) -> Statement:
    """With its index: the planner would walk all of the log for a project with many events."""
    index = "PRIMARY"
    if isinstance(where.get("project"), str):
        index = next(index for field, index in _LOG_INDEXES if isinstance(where.get(field), (str, tuple)))
    text, values = event_table(DIALECT).finding(tenant, where, after, limit, last)
    return text.replace('FROM "event"', f'FROM "event" FORCE INDEX ({index})', 1), values


def lane_hash(lane: str) -> bytes:
    """As the column `lane_hash` is made."""
    return hashlib.sha256(lane.encode()).digest()


def _together(planned: Sequence[tuple[str, list[Any], Row]]) -> Iterator[Write]:
    """The statements in their order; of consecutive insertions into one table few of many rows each."""
    for text, some in groupby(planned, lambda one: one[0]):
        rows = list(some)
        what = KINDS[type(rows[0][2])].table
        head, found, row_text = text.partition(" VALUES ")
        if text.startswith("INSERT") and found:
            rendered_rows = (rendered(row_text, values) for _, values, _ in rows)
            for joint, number in together(f"{head} VALUES ", rendered_rows):
                yield Write((joint, ()), number, what)
        else:
            for _, values, row in rows:
                yield Write((text, values), 1, f"{what} {row.id}")

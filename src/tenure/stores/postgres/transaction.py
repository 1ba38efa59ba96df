"""The verbs of the port, each one query or a few."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tenure.core.errors import Conflict, InvalidInput, TenureError
from tenure.core.events import Event
from tenure.core.filters import Where
from tenure.core.records import Agent, Claim, Row, Session, Task
from tenure.stores.fast_path import Asking, Completed, Completion, Grant, Granted, Holders, Known, Renewal, Renewed
from tenure.stores.port import Change, Head
from tenure.stores.postgres import event_blocks, hot_statements, log_statements, statement_texts
from tenure.stores.postgres.connection import Answer, Rows
from tenure.stores.postgres.pipeline import Pipeline
from tenure.stores.postgres.values import shown
from tenure.stores.sql.statements import event_table, table_of, writes

if TYPE_CHECKING:
    from tenure.stores.postgres.store import Postgres

R = TypeVar("R", bound=Row)


class PostgresTransaction(Pipeline):
    """Implements the port and the fast path."""

    def __init__(self, store: Postgres, tenant: str, write: bool) -> None:
        super().__init__(store, tenant, write)
        self._hot = hot_statements.hot_of(self._dialect)
        self._deleted: dict[tuple[str, str], set[int]] = {}  # project and task → events of claims that were deleted

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
        return self._rows(statement, self._store.reader(kind))

    def count(self, kind: type[Row], where: Where, by: str) -> dict[Any, int]:
        self._enter_asked(where)
        rows = self._read(*table_of(kind, self._dialect).counting(self._tenant, where, by))
        return {_value(by): n for by, n in rows}

    def sums(self, kind: type[Row], where: Where, by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
        self._enter_asked(where)
        rows = self._read(*table_of(kind, self._dialect).summing(self._tenant, where, by, fields))
        return {_value(row[0]): tuple(None if n is None else int(n) for n in row[1:]) for row in rows}

    def tally(self, kind: type[Row], where: Where, most: int) -> int:
        self._enter_asked(where)
        rows = self._read(*table_of(kind, self._dialect).tallying(self._tenant, where, most))
        return int(rows[0][0]) if rows else 0

    def lanes(self, project: str, depth: int = 1) -> dict[str, list[Head]]:
        self._enter((project,))
        found: dict[str, list[Head]] = {}
        for lane, *head in self._read(self._queries.lanes, [self._tenant, project, depth]):
            found.setdefault(shown(lane), []).append(_head(head))
        return found

    def ready(self, project: str, lane: str, *, after: Head | None = None, limit: int = 1) -> list[Head]:
        self._enter((project,))
        if after is None:
            rows = self._read(self._queries.ready, [self._tenant, project, lane, limit])
        else:
            rows = self._read(self._queries.ready_after, [self._tenant, project, lane, *after[:4], limit])
        return [_head(row) for row in rows]

    def due(self, project: str | None, until: int, limit: int) -> list[Task]:
        tasks = table_of(Task, self._dialect)
        if project is not None:
            projects = [project]
            self._enter(projects)
        else:
            projects = [shown(name) for (name,) in self._read(self._queries.due_projects, [self._tenant])]
        found: list[Task] = []
        for name in projects:
            statement = (f"{tasks.select} {statement_texts.DUE}", [self._tenant, name, until, limit])
            found += self._rows(statement, self._store.reader(Task))
        if len(projects) > 1:
            found.sort(key=lambda task: (task.due_at, task.id))
        return found[:limit]

    def next_due(self, project: str) -> int | None:
        self._enter((project,))
        rows = self._read(self._queries.next_due, [self._tenant, project])
        return rows[0][0] if rows else None

    def is_due(self, project: str) -> bool:
        self._enter((project,))
        known = self._is_due.get(project)
        if known is None or self._wrote or self._later:
            rows = self._read(self._queries.is_due, [self._tenant, project, self._now])
            return bool(rows and rows[0][0])
        return known

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        self._enter_asked(where)
        single = log_statements.finding(self._tenant, where, after, limit, last, self._dialect)
        packed = event_blocks.finding(self._tenant, where, after, limit, last, self._dialect)
        found = self._rows(single, self._store.reader(Event)) + self._rows(packed, self._store.block_reader)
        found.sort(key=lambda event: event.sequence)
        if self._settled is not None and not last:
            found = [event for event in found if event.sequence <= self._settled]
        return found[-limit:] if last and limit else found[:limit]

    # --- writing ---

    def save(self, changes: Sequence[Change], *, last: bool = False) -> None:
        self._must_write()
        try:
            planned = list(writes(changes, self._tenant, self._dialect))
        except TenureError as error:
            self._fail(error)
        if not planned:
            return
        self._enter({row.project for *_, row in planned})
        self._note_events_of(change.before for change in changes if change.after is None)
        statements = [(text, values) for text, values, _ in planned]
        if last:
            self._later += statements
        else:
            self._run(statements)
            self._wrote = True

    def append(self, events: Sequence[Event]) -> None:
        self._must_write()
        if events:
            self._enter({event.project for event in events})
            table = event_table(self._dialect)
            text = f'{table.insert} RETURNING "sequence", "xid"::text'
            self._later += self._floor()
            self._later += [(text, table.values(self._tenant, event)) for event in events]
            self._appends = len(self._later)

    def drop_events(self, project: str, tasks: Collection[str]) -> None:
        self._must_write()
        self._enter((project,))
        last = self.events({"project": project}, limit=1, last=True)
        if last and tasks:
            text, values = log_statements.dropping(self._tenant, project, tasks, last[0].sequence, self._dialect)
            self._run([(text, values)])
            self._drop_from_blocks(project, tasks, last[0].sequence)
            self._wrote = True

    def _note_events_of(self, rows: Iterable[Row | None]) -> None:
        """Keep the sequences that deleted claims have: their tasks' events are dropped after them."""
        tasks: dict[str, list[str]] = {}
        for row in rows:
            if isinstance(row, Claim):
                tasks.setdefault(row.project, []).append(row.task)
        for project, some in tasks.items():
            for task, at in self._places(project, some):
                self._deleted.setdefault((project, task), set()).add(at)

    def _places(self, project: str, tasks: Collection[str]) -> Rows:
        """Pairs of a task and the sequence of one of its events in blocks."""
        text = event_blocks.OF_TASKS.replace("{s}", self._dialect.schema)
        return self._run([(text, [self._tenant, project, list(dict.fromkeys(tasks))])])[0].rows()

    def _drop_from_blocks(self, project: str, tasks: Collection[str], last: int) -> None:
        gone = {at for _, at in self._places(project, tasks)}
        gone |= {at for task in tasks for at in self._deleted.get((project, task), ())}
        gone.discard(last)
        if not gone:
            return
        empty, delete = (
            text.replace("{s}", self._dialect.schema) for text in (event_blocks.EMPTY, event_blocks.DELETE)
        )
        (answer,) = self._run([(empty, [sorted(gone), self._tenant])])
        emptied = [last for last, is_empty in answer.rows() if is_empty]
        if emptied:
            self._run([(delete, [emptied, self._tenant])])

    # --- the fast path: see stores/fast_path.py ---

    def holders(self, project: str, receipts: Sequence[tuple[str, int]]) -> Holders:
        tasks = self.find(Task, {"project": project, "ref": tuple(ref for ref, _ in receipts)})
        given = [self._tenant, project, *hot_statements.columns(receipts)]

        def read(text: str, kind: type[R]) -> list[R]:
            return self._rows((text, given), self._store.reader(kind))

        texts = self._hot
        return Holders(tasks, read(texts.claims, Claim), read(texts.agents, Agent), read(texts.sessions, Session))

    def known(self, project: str, asking: Sequence[Asking], most: int) -> dict[int, Known]:
        self._enter((project,))
        rows = self._read(self._hot.known, [self._tenant, project, *hot_statements.columns(asking), most])
        return {
            n - 1: Known(agent_seen, session_seen, (*skills,), [_named(task) for task in held or ()])
            for n, agent_seen, session_seen, *skills, held in rows
        }

    def grant(self, grants: Sequence[Grant], *, last: bool) -> Granted:
        answers = self._write_fast((self._hot.grant_each, self._hot.grant), grants, last)
        read = self._store.grant_reader
        if not last:
            missing = len(grants) - sum(answer.count for answer in answers)
            if missing:
                self._fail(Conflict(f"{missing} of {len(grants)} tasks were claimed by others"))

        def rows() -> list[list[Any]]:
            found = {row[0]: row for answer in answers for row in answer.rows_apart()}
            return [read(found[g.task][:-4]) for g in grants]

        return Granted(rows, is_usual=last or all(answer.first()[-3] == b"f" for answer in answers))

    def complete(self, completions: Sequence[Completion], heard: int, *, last: bool) -> Callable[[], list[Completed]]:
        texts = (self._hot.complete_each, self._hot.complete)
        answers = self._checked(self._write_fast(texts, completions, last, behind=(heard,)), last)
        return lambda: [Completed(*row[:-4]) for answer in answers for row in answer.rows_apart()]

    def renew(
        self, renewals: Sequence[Renewal], most_mail: int, heard: int, *, last: bool
    ) -> Callable[[], list[Renewed]]:
        found = self._write_fast((self._hot.renew,) * 2, renewals, last, before=(most_mail,), behind=(heard,))
        answers = self._checked(found, last)
        return lambda: [Renewed(*row[:-4]) for answer in answers for row in answer.rows_apart()]

    def _checked(self, answers: list[Answer], last: bool) -> list[Answer]:
        """Another transaction that shares the project may have written the same row first."""
        for answer in answers if not last else ():
            if answer.count and int(answer.first()[-3] or 0) != answer.count:
                self._fail(Conflict("another transaction changed the same row first"))
        return answers

    def _write_fast(
        self,
        texts: tuple[str, str],
        given: Sequence[Any],
        last: bool,
        *,
        before: Sequence[int] = (),
        behind: Sequence[int] = (),
    ) -> list[Answer]:
        """Rows whose last two columns are the last event's sequence, if any, and the transaction.

        One statement per project, all in one round trip; with `last` in that of the commit, which brings the answers.
        The first text is for a few rows, the second for many. `before` and `behind` are the values that all rows share,
        around the parameter `last`.
        """
        self._must_write()
        by_project: dict[str, list[Any]] = {}
        for row in given:
            by_project.setdefault(row.project, []).append(row)
        self._enter(by_project)
        shared = [self._tenant, self._now, self._epoch]
        statements = []
        for project, rows in by_project.items():
            values = [*shared, project, *hot_statements.columns(rows)[1:], *before, last, *behind]
            statements.append((texts[len(rows) > hot_statements.FEW], values))
        if last:
            return self._leave_to_commit(statements, len(given))
        answers = self._run([*self._floor(), *statements])[-len(statements) :]
        self._wrote |= any(answer.count for answer in answers)
        self._note_events(answers)
        return answers

    def lock(self, name: str, projects: Collection[str]) -> None:
        """One lock per project, whatever `name` is, unless it is shared: see the package.

        Before the first query they are only noted.
        """
        self._follows |= name == "log" and not self._write
        self._shares |= name == "share"
        if self._write and not self._began:
            self._to_hold.update(dict.fromkeys(projects))
            self._to_claim.update(dict.fromkeys(projects if name == "claim" else ()))
        elif self._write:
            self._enter(projects)

    def accept_clock(self) -> int:
        raise InvalidInput(
            f"{self._store.url}: its time is the server's, and continues once that has reached the last event's time",
            "Correct the server's clock.",
        )

    def set_epoch(self, epoch: str) -> None:
        """Waits for every writer of the store, since each of them has read the epoch that ends here."""
        self._must_write()
        self._begin()
        lock = (statement_texts.LOCK, [[self._store.epoch_lock]])
        self._run([lock, (self._queries.set_epoch, [self._tenant, epoch, self._store.place])])
        self._wrote = True
        self._epoch = epoch

    def _enter_asked(self, where: Where) -> None:
        project = where.get("project")
        self._enter((project,) if isinstance(project, str) else ())


def _head(row: Sequence[Any]) -> Head:
    band, rank, sequence, id, plain = row
    return Head(band, rank, sequence, shown(id), plain)


def _named(task: str) -> tuple[str, str]:
    """Id and key of a task, which contain no space."""
    id, _, key = task.partition(" ")
    return id, key


def _value(by: Any) -> Any:
    return shown(by) if isinstance(by, str) else by

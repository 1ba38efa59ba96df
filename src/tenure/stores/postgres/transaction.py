"""The verbs of the port, each a question or a few."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tenure.core.errors import Conflict, TenureError
from tenure.core.events import Event
from tenure.core.filters import Where
from tenure.core.records import Agent, Claim, Row, Session, Task
from tenure.stores.fused import Asking, Completed, Completion, Grant, Granted, Holders, Known, Renewal, Renewed
from tenure.stores.port import Change, Head
from tenure.stores.postgres import hot, log, queries
from tenure.stores.postgres.cursors import first_running
from tenure.stores.postgres.journeys import Journeys
from tenure.stores.postgres.link import Answer
from tenure.stores.postgres.values import shown
from tenure.stores.postgres.writing import writes
from tenure.stores.sql.statements import event_table, table_of

if TYPE_CHECKING:
    from tenure.stores.postgres.store import Postgres

R = TypeVar("R", bound=Row)


class PostgresTransaction(Journeys):
    """Fulfils the port."""

    def __init__(self, store: Postgres, tenant: str, write: bool) -> None:
        super().__init__(store, tenant, write)
        self._hot = hot.hot_of(self._dialect)

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
        rows = self._read(*statement)
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

    def save(self, changes: Sequence[Change], *, last: bool = False) -> None:
        self._must_write()
        try:
            planned = list(writes(changes, self._tenant, self._dialect))
        except TenureError as error:
            self._fail(error)
        if not planned:
            return
        self._enter({write.row.project for write in planned})
        statements = [(write.text, write.values) for write in planned]
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
            self._later += [(text, table.values(self._tenant, event)) for event in events]
            self._tells = len(self._later)

    def drop_events(self, project: str, tasks: Collection[str]) -> None:
        self._must_write()
        self._enter((project,))
        statements = list(event_table(self._dialect).dropping(self._tenant, project, tasks))
        if statements:
            self._run(statements)
            self._wrote = True

    # --- the hot three: see stores/fused.py ---

    def holders(self, project: str, receipts: Sequence[tuple[str, int]]) -> Holders:
        tasks = self.find(Task, {"project": project, "ref": tuple(ref for ref, _ in receipts)})
        given = [self._tenant, project, *hot.columns(receipts)]

        def read(text: str, kind: type[R]) -> list[R]:
            return self._rows((text, given), self._store.reader(kind))

        texts = self._hot
        return Holders(tasks, read(texts.claims, Claim), read(texts.agents, Agent), read(texts.sessions, Session))

    def known(self, project: str, asking: Sequence[Asking], most: int) -> dict[int, Known]:
        self._enter((project,))
        rows = self._read(self._hot.known, [self._tenant, project, *hot.columns(asking), most])
        return {
            n - 1: Known(agent_seen, session_seen, (*skills,), [_named(task) for task in held or ()])
            for n, agent_seen, session_seen, *skills, held in rows
        }

    def grant(self, grants: Sequence[Grant]) -> Granted:
        answer = self._fused(self._hot.grant, grants, {g.project for g in grants})
        if answer.count != len(grants):
            self._fail(Conflict(f"{len(grants) - answer.count} of {len(grants)} tasks are not to be had"))
        read = self._store.told_reader

        def rows() -> list[list[Any]]:
            found = {(row[0], row[1]): row for row in answer.rows_apart()}
            return [read(found[g.project, g.task][1:-3]) for g in grants]

        return Granted(rows, is_plain=answer.first()[-3] == b"f")

    def complete(self, completions: Sequence[Completion]) -> list[Completed]:
        answer = self._fused(self._hot.complete, completions, {c.project for c in completions})
        return [Completed(*row[:-2]) for row in answer.rows()]

    def renew(self, renewals: Sequence[Renewal], most_mail: int) -> list[Renewed]:
        answer = self._fused(self._hot.renew, renewals, {r.project for r in renewals}, most_mail)
        return [Renewed(*row[:-2]) for row in answer.rows()]

    def _fused(self, text: str, given: Sequence[Any], projects: set[str], *more: int) -> Answer:
        """Rows of which the last two columns are the last event's sequence, if any, and the transaction."""
        self._must_write()
        self._enter(projects)
        (answer,) = self._run([(text, [self._tenant, self._now, self._epoch, *hot.columns(given), *more])])
        if answer.count:
            self._wrote = True
            *_, sequence, transaction = answer.first()
            if sequence is not None and transaction is not None:
                self._last = (int(sequence), int(transaction))
        return answer

    def lock(self, name: str, projects: Collection[str]) -> None:
        """One lock a project, whatever it is for: see the package. Before the first question they are only noted."""
        if self._write and not self._began:
            self._to_hold.update(dict.fromkeys(projects))
        elif self._write:
            self._enter(projects)

    def set_epoch(self, epoch: str) -> None:
        """Waits for every writer of the store, since each of them has read the epoch that ends here."""
        self._must_write()
        self._begin()
        place = self._store.place
        self._run([(queries.LOCK, [[self._store.epoch_lock]]), (self._queries.set_epoch, [self._tenant, epoch, place])])
        self._wrote = True
        self._epoch = epoch

    def _enter_asked(self, where: Where) -> None:
        project = where.get("project")
        self._enter((project,) if isinstance(project, str) else ())


def _head(row: Sequence[Any]) -> Head:
    band, rank, sequence, id, plain = row
    return Head(band, rank, sequence, shown(id), plain)


def _named(task: str) -> tuple[str, str]:
    """Id and key of a task, which have no space in them."""
    id, _, key = task.partition(" ")
    return id, key


def _value(by: Any) -> Any:
    return shown(by) if isinstance(by, str) else by

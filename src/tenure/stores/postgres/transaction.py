"""The verbs of the port, each one query or a few."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tenure.core.errors import StoreCorrupt, TenureError
from tenure.core.events import Event
from tenure.core.filters import Where, matches
from tenure.core.records import Agent, Claim, Result, Row, Session, Task
from tenure.stores.fast_path import Call, Holders, Look
from tenure.stores.fast_path import Rows as FastRows
from tenure.stores.port import Change, Head
from tenure.stores.postgres import event_blocks, hot_functions, log_statements, statement_texts
from tenure.stores.postgres.connection import Rows, Statement
from tenure.stores.postgres.errors import Failed
from tenure.stores.postgres.pipeline import Pipeline
from tenure.stores.sql.nul import reader, shown
from tenure.stores.sql.pipeline import shown_head
from tenure.stores.sql.server_errors import BAD_VALUES, Lost
from tenure.stores.sql.statements import MANY, event_table, writes

if TYPE_CHECKING:
    from tenure.stores.postgres.store import Postgres

R = TypeVar("R", bound=Row)


class PostgresTransaction(Pipeline):
    """Implements the port."""

    def __init__(self, store: Postgres, tenant: str, write: bool) -> None:
        super().__init__(store, tenant, write)
        self._deleted: dict[tuple[str, str], set[int]] = {}  # project and task → events of claims that were deleted

    # --- reading ---

    def _added_up(self, statement: Statement) -> Sequence[tuple[Any, ...]]:
        """Those who write only count what a few keys lead to."""
        if self._write or self._noting is not None:
            return self._read(*statement)
        return self._run([(statement_texts.FREELY, ()), statement, (statement_texts.BY_KEYS, ())])[1].rows()

    def lanes(self, project: str, depth: int = 1) -> dict[str, list[Head]]:
        self._enter((project,))
        found: dict[str, list[Head]] = {}
        for lane, *head in self._read(self._queries.lanes, [self._tenant, project, depth]):
            found.setdefault(shown(lane), []).append(shown_head(head))
        return dict(sorted(found.items()))

    def ready(self, project: str, lane: str, *, after: Head | None = None, limit: int = 1) -> list[Head]:
        self._enter((project,))
        if after is None:
            rows = self._read(self._queries.ready, [self._tenant, project, lane, limit])
        else:
            rows = self._read(self._queries.ready_after, [self._tenant, project, lane, *after[:4], limit])
        return [shown_head(row) for row in rows]

    def _due_projects(self, until: int) -> list[str]:
        return [shown(name) for (name,) in self._read(self._queries.due_projects, [self._tenant])]

    def next_due(self, project: str) -> int | None:
        self._enter((project,))
        self._drops = self._write  # also where nothing else is written: no block is passed twice
        rows = self._read(self._queries.next_due, [self._tenant, project, self._write])
        return rows[0][0] if rows else None

    def is_due(self, project: str) -> bool:
        self._enter((project,))
        known = self._is_due.get(project)
        if known is None or self._wrote or self._later:
            text = self._queries.has_due if self._write else self._queries.is_due
            rows = self._read(text, [self._tenant, project, self._now])
            return bool(rows and rows[0][0])
        return known

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        self._enter_asked(where)
        made = {name: where[name] for name in event_blocks.MADE & where.keys()}
        single = log_statements.finding(self._tenant, where, after, limit, last, self._dialect)
        packed = event_blocks.finding(self._tenant, where, after, limit, last, self._dialect)
        # Both lists may be as long as the limit. So they are merged as rows, and only the returned ones become events.
        found = [(row[0], reader(Event), row) for row in self._read(*single)]
        found += [(row[0], event_blocks.reader(), row) for row in self._read(*packed)]
        found.sort(key=itemgetter(0))
        if self._settled is not None and not last:
            found = [one for one in found if one[0] <= self._settled]
        if made:
            events = [event for one in found if matches(event := self._event(*one), made)]
            return events[-limit:] if last and limit else events[:limit]
        return [self._event(*one) for one in (found[-limit:] if last and limit else found[:limit])]

    def _event(self, sequence: int, read: Callable[[Sequence[Any]], Event], row: Sequence[Any]) -> Event:
        try:
            return read(row)
        except (msgspec.MsgspecError, ValueError, TypeError, LookupError) as error:  # of what the program never wrote
            raise StoreCorrupt(f"{self._store.url}: event {sequence} cannot be read: {error!r}") from error

    def holders(self, project: str, receipts: Sequence[tuple[str, int]]) -> Holders:
        tasks = self.find(Task, {"project": project, "ref": tuple(ref for ref, _ in receipts)})
        given = [self._tenant, project, [ref for ref, _ in receipts], [generation for _, generation in receipts]]

        def read(text: str, kind: type[R]) -> list[R]:
            return self._rows((text, given), reader(kind))

        texts = self._queries
        claims = read(texts.claims_of, Claim)
        return Holders(tasks, claims, read(texts.agents_of, Agent), read(texts.sessions_of, Session))

    # --- the fast path, within a transaction ---

    def look(self, project: str) -> Look | None:
        return hot_functions.look(self._store, self._tenant, project, (), self._run)

    def call(self, call: Call) -> FastRows:
        """A savepoint keeps what the transaction holds where the call is refused."""
        self._must_write()
        self._enter((call.project,))
        assert self._connection is not None
        assert not self._later, "it is the first that this transaction writes"
        call_it = hot_functions.statement(self._store, self._tenant, call, self._now)
        try:
            answer = self._connection.run([("SAVEPOINT hot", ()), call_it])[1]
        except Failed as error:
            unusual = hot_functions.unusual(error, 1)
            if unusual is None or not self._connection.in_transaction:
                self._refuse(error)
            self._run([("ROLLBACK TO SAVEPOINT hot", ())])
            raise unusual from None
        except (*BAD_VALUES, Lost) as error:
            self._refuse(error)
        self._wrote = self._has_floor = True
        self._last = hot_functions.last_event(answer)
        return answer.rows_apart

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
        statements = [*self._giving_rows(changes), *((text, values) for text, values, _ in planned)]
        self._note_events_of(change.before for change in changes if change.after is None)
        if last:
            self._later += statements
        else:
            self._run(statements)
            self._wrote = True

    def _giving_rows(self, changes: Sequence[Change]) -> list[Statement]:
        """Claims and results that are about to change get separate rows: see `narrow_rows.py`."""
        tasks: dict[str, dict[str, None]] = {}
        for before, after in ((change.before, change.after) for change in changes):
            row: Any = before or after
            if isinstance(before, Task):
                # before its first claim a task has neither
                if before.generation and (not isinstance(after, Task) or _of_claim(before) != _of_claim(after)):
                    tasks.setdefault(row.project, {})[row.id] = None
            elif isinstance(row, (Claim, Result)) and (before is not None or getattr(after, "accepted", False)):
                tasks.setdefault(row.project, {})[row.task] = None
        return [(self._queries.give_rows, [self._tenant, project, list(ids)]) for project, ids in tasks.items()]

    def append(self, events: Sequence[Event]) -> None:
        self._must_write()
        if events:
            self._enter({event.project for event in events})
            table = event_table(self._dialect)
            self._later += self._floor()
            if len(events) < MANY:
                text = f'{table.insert} RETURNING "sequence", "xid"::text'
                self._later += [(text, table.values(self._tenant, event)) for event in events]
            else:
                self._later.append(log_statements.appending(self._tenant, events, self._dialect))
            self._appends = len(self._later)

    def drop_events(self, project: str, tasks: Collection[str]) -> None:
        self._must_write()
        self._enter((project,))
        if tasks:
            gone = {at for _, at in self._places(project, tasks)}
            gone |= {at for task in tasks for at in self._deleted.get((project, task), ())}
            dropped = [self._tenant, project, list(dict.fromkeys(tasks)), sorted(gone)]
            self._run([(self._queries.drop_events, dropped)])
            self._wrote = True

    def clear_log(self) -> None:
        self._must_write()
        self._begin()
        if self._run([(self._queries.may_clear_log, ())])[0].rows()[0][0]:
            self._run([(self._queries.clear_log, [self._tenant])])
        else:
            assert self._connection is not None
            self._store.clear_log_as_owner(self._tenant, self._connection)
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

    def lock(self, name: str, projects: Collection[str]) -> None:
        self._follows |= name == "log" and not self._write
        super().lock(name, projects)

    def set_epoch(self, epoch: str) -> None:
        """Waits for every writer of the store, since each of them has read the epoch that ends here."""
        self._must_write()
        self._begin()
        lock = (statement_texts.LOCK, [[self._store.epoch_lock]])
        self._run([lock, (self._queries.set_epoch, [self._tenant, epoch, self._store.place])])
        self._wrote = True
        self._epoch = epoch


def _of_claim(task: Task) -> tuple[Any, ...]:
    """What a claim without a separate row has from its task's."""
    return task.generation, task.run, task.attempts, task.agent, task.session

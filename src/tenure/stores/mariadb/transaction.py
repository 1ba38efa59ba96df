"""The verbs of the port, each one query or a few."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

from tenure.core.claims import claim_id
from tenure.core.errors import TenureError
from tenure.core.events import Event
from tenure.core.filters import Where
from tenure.core.records import Agent, Claim, Row, Session, Task
from tenure.stores.fast_path import Holders
from tenure.stores.mariadb import statement_texts as texts
from tenure.stores.mariadb.connection import Statement, rendered
from tenure.stores.mariadb.pipeline import Pipeline, Write, together
from tenure.stores.mariadb.statement_texts import DIALECT
from tenure.stores.port import Change, Head
from tenure.stores.sql.nul import hidden, reader, shown
from tenure.stores.sql.pipeline import shown_head
from tenure.stores.sql.server_errors import BAD_VALUES
from tenure.stores.sql.statements import conditions, event_table, joined, writes

R = TypeVar("R", bound=Row)


class MariadbTransaction(Pipeline):
    """Implements the port."""

    # --- reading ---

    def lanes(self, project: str, depth: int = 1) -> dict[str, list[Head]]:
        self._enter((project,))
        here = [self._tenant, project]
        lanes: dict[str, list[Head]] = {}
        for lane, *head in self._read(texts.LANES, [*here, *here, depth, *here]):
            lanes.setdefault(shown(lane), []).append(shown_head(head))
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
        return [shown_head(row) for row in rows]

    def _due_projects(self, until: int) -> list[str]:
        projects = [shown(name) for (name,) in self._read(texts.PROJECTS, [self._tenant])]
        answers = self._run([(texts.NEXT_DUE, [self._tenant, name]) for name in projects])
        firsts = [answer.found for answer in answers]
        return [name for name, first in zip(projects, firsts, strict=True) if first and first[0][0] <= until]

    _due_text = texts.DUE

    def next_due(self, project: str) -> int | None:
        self._enter((project,))
        rows = self._read(texts.NEXT_DUE, [self._tenant, project])
        return rows[0][0] if rows else None

    def is_due(self, project: str) -> bool:
        self._enter((project,))
        if project in self._first_due and not (self._wrote or self._later):
            first = self._first_due[project]
        else:
            first = self.next_due(project)
        return first is not None and first <= self._now

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        self._enter_asked(where)
        if self._events:
            self._append_now()
        found = self._rows(log_query(self._tenant, where, after, limit, last), reader(Event))
        return found[::-1] if last else found

    def holders(self, project: str, receipts: Sequence[tuple[str, int]]) -> Holders:
        tasks = self.find(Task, {"project": project, "ref": tuple(ref for ref, _ in receipts)})
        if len(receipts) == 1:
            given = [self._tenant, project, *receipts[0]]

            def read(kind: type[R]) -> list[R]:
                return self._rows((texts.of_receipt(kind), given), reader(kind))

            return Holders(tasks, read(Claim), read(Agent), read(Session))
        ids = {task.ref: task.id for task in tasks}
        named = [claim_id(ids[ref], generation) for ref, generation in receipts if ref in ids]
        claims = self.load(Claim, [(project, id) for id in named])
        agents = self.load(Agent, {(project, claim.agent) for claim in claims})
        return Holders(tasks, claims, agents, self.load(Session, {(project, claim.session) for claim in claims}))

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

    def clear_log(self) -> None:
        self._must_write()
        self._begin()
        self._run([('DELETE FROM "event" WHERE tenant = ?', [self._tenant])])
        self._wrote = True

    def set_epoch(self, epoch: str) -> None:
        """Waits for every writer of the store, since each of them has read the epoch that ends here."""
        self._must_write()
        self._enter(())
        if self._is_of_cluster:
            self._run([self._turns([texts.FIRST_TURN]), (texts.TURNS_OF_TENANT, [self._tenant])])
        self._run([(texts.META_ALONE, ()), (texts.SET_EPOCH, [self._tenant, epoch, self._store.place])])
        self._wrote = True
        self._epoch = epoch


_AT_ONCE = 256  # tasks of one DELETE
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
    return hashlib.sha256(hidden(lane).encode()).digest()


def _together(planned: Sequence[tuple[str, Sequence[Any], Row]]) -> Iterator[Write]:
    """The statements in their order; of consecutive insertions into one table few of many rows each."""
    for text, some in groupby(planned, lambda one: one[0]):
        rows = list(some)
        head, found, row_text = text.partition(" VALUES ")
        if text.startswith("INSERT") and found:
            rendered_rows = (rendered(row_text, values) for _, values, _ in rows)
            for joint in together(f"{head} VALUES ", rendered_rows):
                yield Write(joint, is_counted=False)
        else:
            for _, values, _ in rows:
                yield Write(rendered(text, values), is_counted=True)

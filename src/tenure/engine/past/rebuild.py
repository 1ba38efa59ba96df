"""The rows of a project at an earlier moment, and a query on them. The package explains how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from tenure.core import archive, former_names, lifecycle, roles, settle
from tenure.core.budgets import AGENT, DAG, PROJECT, TENANT
from tenure.core.events import Event
from tenure.core.moments import parse_moment
from tenure.core.records import (
    KINDS,
    Agent,
    Archived,
    Body,
    Budget,
    Claim,
    Edge,
    Leader,
    Project,
    Row,
    Session,
    Task,
    Usage,
    Validation,
    replace,
)
from tenure.engine.archive.totals import ARCHIVED, fold
from tenure.engine.past import past_budgets
from tenure.engine.past.log import PastLog, past_log
from tenure.engine.past.transaction import PastTransaction
from tenure.engine.runtime.effects import Report, settle_due
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.rows import ROWS_A_PAGE, row_pages
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verify.replay import Fields, apply, row_of, tables_of
from tenure.stores.port import Transaction

R = TypeVar("R", bound=Row)
T = TypeVar("T")
Key = tuple[str, str]
_KIND_OF = {kind.table: row for row, kind in KINDS.items()}


def read_past(engine: Engine, project: str, at: str, ask: Callable[[UnitOfWork], T]) -> T:
    """The answer of `ask` on the project's rows as they were at the moment that `at` names."""
    work = rebuilt(engine, project, at).work
    settle_due(work, (project,), Report())
    return ask(work)


def rebuilt(engine: Engine, project: str, at: str) -> Past:
    moment = parse_moment(at)

    def read(tx: Transaction) -> Past:
        if not tx.load(Project, ((project, project),)):
            raise roles.no_project(project)
        return Past(engine, tx, project, past_log(tx, project, moment))

    return engine.read(read)


class Past:
    """The rows as they were stored at the moment, and a unit of work on them."""

    def __init__(self, engine: Engine, tx: Transaction, project: str, log: PastLog) -> None:
        self._tx, self._project, self._log = tx, project, log
        fields: Fields = {}
        apply(log.events, fields)
        returned = self._returned(fields)
        archived = {row.id: row for row in (*log.archived, *returned)}
        self._drop_loose_edges(fields, archived)
        tables = tables_of(fields, archived.values())
        self.rows: dict[type[Row], dict[Key, Any]] = {
            kind: dict(rows) if KINDS[kind].logged else {} for kind, rows in tables.items()
        }
        self.rows[Archived] = {(row.project, row.id): row for row in archived.values()}
        self._add_bodies()
        self._add_presence()
        self._mark_funded()
        epoch = self._bring_up_tasks() or tx.epoch
        past: Any = PastTransaction(self.rows, log.events, log.now, epoch)
        self.work = UnitOfWork(past, engine.random, replace(engine.context, counts=None))
        self._add_usage({row.id for row in returned})
        past_budgets.count(self.work, tx, project, log)

    # --- the archive ---

    def _returned(self, fields: Fields) -> list[Archived]:
        """Tasks that were in the archive then and returned since: their rows leave the tables for one there."""
        found: dict[str, tuple[Event, int]] = {}
        for event in self._log.later:
            if event.kind == "archive.returned" and event.project == self._project:
                for id, since in event.details.get("moved", {}).items():
                    found.setdefault(id, (event, since))
        then = {id: pair for id, pair in found.items() if pair[1] <= self._log.now}
        for key in [key for key, values in fields.items() if _owner(key, values) in then]:
            del fields[key]
        logs = {one.row.id: one.events for one in self._log.moved}
        rows = {id: self._rows_of(id, event) for id, (event, _) in then.items()}
        tasks = {id: next(row for row in rows[id] if isinstance(row, Task)) for id in then}
        parents = [*(task.parent for task in tasks.values()), *(row.parent for row in self._log.archived)]
        children = Counter(parents)  # which no event has
        made = []
        for id, (_, since) in then.items():
            task = replace(tasks[id], children=children[id])
            rest = [row for row in rows[id] if not isinstance(row, Task)]
            made.append(archive.archived(task, [task, *rest], logs.get(id, ())[: task.version], since))
        return made

    def _rows_of(self, task: str, event: Event) -> list[Row]:
        """The rows of a task, as the event states them."""
        return [
            _stated(table, self._project, id, values)
            for table, id, values in event.patch
            if values is not None and _owner((table, self._project, id), values) == task
        ]

    def _drop_loose_edges(self, fields: Fields, archived: Mapping[str, Archived]) -> None:
        """An edge to a task that retention has deleted since."""
        table, of_task = KINDS[Edge].table, KINDS[Task].table
        for key in [key for key in fields if key[0] == table]:
            needs = fields[key]["needs"]  # type: ignore[index]  # only a task's fields are another type
            if needs not in archived and (of_task, key[1], needs) not in fields:
                del fields[key]

    def _add_bodies(self) -> None:
        self._keep(body for page in self._pages(Body) for body in page)
        self._keep(body for one in self._log.moved for body in archive.bodies_in(one.row))

    # --- what the log does not have ---

    def _add_presence(self) -> None:
        """Agents and sessions were last seen with their last event; leaders led until the next one."""
        seen: dict[tuple[type[Row], str], int] = {}
        for event in self._log.events:
            if event.agent is not None:
                seen[Agent, event.agent] = event.time
            if event.session is not None:
                seen[Session, event.session] = event.time
        self._keep(replace(row, last_seen=seen.get((Agent, row.id), row.registered_at)) for row in self._of(Agent))
        sessions = self._of(Session)
        self._keep(replace(row, last_activity=seen.get((Session, row.id), row.created_at)) for row in sessions)
        self._keep(replace(row, until=self._led_until(row)) for row in self._of(Leader) if not row.is_lost)
        taken = [row for row in self._of(Validation) if row.holder is not None]
        self._keep(replace(row, until=self._log.now + 1) for row in taken)

    def _led_until(self, row: Leader) -> int:
        for event in self._log.later:
            if event.kind.startswith("leader.") and event.project == row.project:
                ended: int = event.details.get("ended_at", event.time)  # of a lease that ran out
                return ended
        current = self._tx.load(Leader, ((row.project, row.id),))
        return current[0].until if current else 0

    def _mark_funded(self) -> None:
        scopes = {row.scope for row in self._of(Budget)}
        funded = tuple(scope for scope in (TENANT, PROJECT, DAG, AGENT) if scope in scopes)
        self._keep(replace(row, funded=funded) for row in self._of(Project))

    def _bring_up_tasks(self) -> str | None:
        """Derived columns and leases of the tasks; returns the epoch of those that are held, which is the store's."""
        held = [task for task in self._of(Task) if task.state in lifecycle.HELD]
        ends = self._lease_ends(held)
        for task in self._of(Task):
            lease = {"lease_until": ends.get((task.id, task.generation)), "lease": None}
            self._keep((settle.stamp(replace(task, **lease), self._log.now),))
        return held[0].claim_epoch if held else None

    def _lease_ends(self, held: Iterable[Task]) -> dict[tuple[str, int], int]:
        """When the leases of claims ended that were over by then, whether or not anybody had settled it."""
        ends: dict[tuple[str, int], int] = {}
        for event in self._log.later:
            if event.kind == "task.lease_expired" and event.details.get("lease_until") is not None:
                ends[event.task or "", event.generation or 0] = event.details["lease_until"]
        for task in self._tx.load(Task, [(task.project, task.id) for task in held]):
            if task.state in lifecycle.HELD and task.lease_until is not None:
                ends[task.id, task.generation] = task.lease_until
        return {key: end for key, end in ends.items() if end <= self._log.now}

    # --- usage ---

    def _add_usage(self, returned: set[str]) -> None:
        """Usage that had been reported, of tasks in their tables then; of the others their sums."""
        now, work = self._log.now, self.work
        own: list[Usage] = []
        back: list[Usage] = []
        for page in self._pages(Usage):
            self._keep(row for row in page if row.task == ARCHIVED)
            own += [row for row in page if row.task != ARCHIVED and row.task not in returned]
            back += [row for row in page if row.task in returned]
        since = [one.row for one in self._log.moved if one.row.id not in returned]  # went there after the moment
        moved = [row for one in since for row in archive.rows_in(one) if isinstance(row, Usage)]
        fold(work, moved, -1)
        fold(work, back, 1)
        claims = self.rows[Claim]
        known = [row for row in (*own, *moved) if (row.project, f"{row.task}@{row.generation}") in claims]
        self._keep(row for row in known if row.at <= now)

    def _of(self, kind: type[R]) -> list[R]:
        return list(self.rows[kind].values())

    def _keep(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.rows[type(row)][row.project, row.id] = row

    def _pages(self, kind: type[R]) -> Iterable[list[R]]:
        return row_pages(self._tx, kind, {"project": self._project}, ROWS_A_PAGE)


def _owner(key: tuple[str, str, str], values: Any) -> str | None:
    """The task that a row belongs to, if it moves to the archive with one."""
    field = archive.OWNED.get(_KIND_OF[key[0]])
    if field is None:
        return None
    return key[2] if field == "id" else values.get(field)


def _stated(table: str, project: str, id: str, values: Mapping[str, Any]) -> Row:
    kind = _KIND_OF[table]
    return row_of(kind, (project, id), former_names.task_of(values) if kind is Task else values)

"""A sink in Redis that also mirrors the state of agents and tasks to keys (`keys = true`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import budgets, lifecycle, limits, priority, team
from tenure.core.budgets import PROJECT, TASK, budget_id
from tenure.core.errors import close_all
from tenure.core.filters import Present
from tenure.core.instants import format_instant
from tenure.core.money import NANO
from tenure.core.records import Agent, Budget, Project, Session, Task, Usage
from tenure.engine.budgets.budget_guard import used
from tenure.sinks.port import Message, Sink

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine
    from tenure.sinks.redis_keys import OfProject, RuntimeKeys, Snapshot
    from tenure.stores.port import Head, Transaction

EVERY = 60.0  # seconds between snapshots
SOON = 1.0  # between two readings of the queues and alerts that events have changed
READY = 1000  # tasks of each lane
HELD = limits.REDIS_HELD


class KeyedSink:
    """Passes everything on to the sink; keys follow what it has acknowledged."""

    def __init__(self, sink: Sink, keys: RuntimeKeys, engine: Engine, monotonic: Callable[[], float]) -> None:
        self._sink, self._keys, self._engine, self._monotonic = sink, keys, engine, monotonic
        self._identity: str | None = None
        self._replace_at = self._reorder_at = 0.0
        self._reordered: set[str] = set()  # projects whose queues have changed since they were read
        self._are_alerts_due = False

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        sent = self._sink.send(messages, timeout)
        reordered, has_alerts = self._keys.apply(messages[:sent])
        self._reordered |= reordered
        self._are_alerts_due |= has_alerts
        self._follow(self._monotonic())
        return sent

    def identity(self) -> str:
        """Also the moment for a snapshot: at the start, after a loss, and every minute."""
        identity = self._sink.identity()
        now = self._monotonic()
        if identity != self._identity or now >= self._replace_at:
            self._keys.replace(snapshot(self._engine))
            self._identity, self._replace_at = identity, now + EVERY
            self._reordered, self._are_alerts_due = set(), False
        else:
            self._follow(now)
        return identity

    def _follow(self, now: float) -> None:
        """Show what events have changed without saying how, at most once in a while."""
        if not (self._reordered or self._are_alerts_due) or now < self._reorder_at:
            return
        projects, tenant = sorted(self._reordered), self._engine.tenant
        if projects:
            self._keys.replace_queues(tenant, self._engine.read(lambda tx: {one: queues(tx, one) for one in projects}))
        if self._are_alerts_due:
            self._keys.replace_alerts(tenant, self._engine.read(alerts))
        self._reorder_at = now + SOON
        self._reordered, self._are_alerts_due = set(), False

    def rewound(self) -> None:
        if hasattr(self._sink, "rewound"):
            self._sink.rewound()
        self._replace_at = 0.0

    def lag(self) -> int | None:
        return self._sink.lag()

    def close(self) -> None:
        close_all(self._keys.close, self._sink.close)


def snapshot(engine: Engine) -> Snapshot:
    """The state of the tenant, read in one transaction."""
    from tenure.sinks.redis_keys import Snapshot

    def ask(tx: Transaction) -> Snapshot:
        projects = {project.id: _of_project(tx, project.id) for project in tx.find(Project, {})}
        return Snapshot(engine.tenant, tx.now, projects, alerts(tx))

    return engine.read(ask)


def _of_project(tx: Transaction, project: str) -> OfProject:
    from tenure.sinks.redis_keys import OfProject

    active = tx.find(Task, {"project": project, "state": lifecycle.HELD}, limit=HELD)
    caps = tx.find(Budget, {"project": project, "id": (PROJECT, *(budget_id(TASK, task.id) for task in active))})
    budgets_of = {budget.id: budgets.settled(budget, tx.now) for budget in caps}
    return OfProject(
        agents=_agents(tx, project, active),
        ready=queues(tx, project),
        active={task.id: task.agent or "" for task in active},
        contexts=_contexts(tx, project, active),
        usage=_usage(tx, project) | _funds(budgets_of.get(PROJECT)),
        usage_of_tasks=_usage_of_tasks(tx, project, active, budgets_of),
    )


def queues(tx: Transaction, project: str) -> dict[int, list[str]]:
    """The ready tasks of each boost, in the order in which they are claimed: only inside a boost it stays the same."""
    heads: dict[int, list[Head]] = {}
    for lane, found in tx.lanes(project, READY).items():
        heads.setdefault(priority.parse_lane(lane).boost, []).extend(found)
    return {
        boost: [head.id for head in sorted(found, key=lambda one: (one.band, one.rank, one.sequence))]
        for boost, found in heads.items()
    }


def alerts(tx: Transaction) -> list[dict[str, Any]]:
    """The thresholds that budgets are over now, the last one first."""
    rows = [budgets.settled(row, tx.now) for row in tx.find(Budget, {})]
    named = tx.load(Task, {(row.project, row.task) for row in rows if row.alerts and row.task is not None})
    keys = {task.id: task.key for task in named if task.state not in lifecycle.FINISHED}
    rows = [row for row in rows if row.task is None or row.task in keys]
    over = [(since, int(at), row) for row in rows for at, since in row.alerts.items()]
    over.sort(key=lambda one: (one[0], one[1], one[2].project, one[2].id), reverse=True)
    return [_alert(row, keys.get(row.task or ""), at, since) for since, at, row in over[: limits.REDIS_ALERTS]]


def _alert(row: Budget, task: str | None, at: int, since: int) -> dict[str, Any]:
    return {
        "at": format_instant(since), "project": row.project, "budget": row.id, "task_id": row.task, "task": task,
        "level": budgets.LEVELS[at], "threshold": at, "percent": budgets.percent(row),
        "message": f"budget {row.id if task is None else budget_id(TASK, task)}: {used(row)}",
    }  # fmt: skip


def _agents(tx: Transaction, project: str, active: Any) -> list[Any]:
    from tenure.sinks import redis_keys

    held: dict[str, list[str]] = {}
    for task in active:
        if task.agent is not None:
            held.setdefault(task.agent, []).append(task.id)
    found = []
    for row in tx.find(Agent, {"project": project, "left_at": Present(False)}):
        status = (
            "terminated"
            if row.terminated_at is not None
            else "draining"
            if row.draining
            else "stale"
            if team.is_stale(row, tx.now)
            else "active"
        )
        found.append(redis_keys.Agent(row.id, status, row.last_seen, held.get(row.id, ())))
    return found


def _contexts(tx: Transaction, project: str, active: Sequence[Task]) -> dict[str, dict[str, Any]]:
    tasks: dict[str, list[str]] = {}
    for task in active:
        if task.session is not None:
            tasks.setdefault(task.session, []).append(task.id)
    rows = tx.load(Session, [(project, session) for session in tasks])
    return {row.id: {"agent": row.agent, "project": project, "tasks": tasks[row.id]} for row in rows}


_COLUMNS = ("fresh", "cached", "written", "output", "cost")


def _usage(tx: Transaction, project: str) -> dict[str, float | int | str]:
    found = tx.sums(Usage, {"project": (project,)}, "project", _COLUMNS)
    return _named([value or 0 for value in found.get(project, (0,) * len(_COLUMNS))])


def _usage_of_tasks(
    tx: Transaction, project: str, active: Sequence[Task], caps: Mapping[str, Budget]
) -> dict[str, dict[str, float | int | str]]:
    tasks = {task.id for task in active}
    sums = tx.sums(Usage, {"project": project, "task": tuple(sorted(tasks))}, "task", _COLUMNS) if tasks else {}
    found = {task: _named([value or 0 for value in row]) for task, row in sums.items()}
    for task in tasks:
        funds = _funds(caps.get(budget_id(TASK, task)))
        if funds:
            found[task] = found.get(task, _named([0] * len(_COLUMNS))) | funds
    return found


def _named(values: Sequence[int]) -> dict[str, float | int | str]:
    """The sums by name; money in dollars."""
    *counts, cost = values
    return dict(zip(_COLUMNS, (*counts, cost / NANO), strict=True))


def _funds(budget: Budget | None) -> dict[str, float | int | str]:
    """What a budget has and has left, in dollars or tokens."""
    if budget is None:
        return {}
    unit = NANO if budget.currency == budgets.USD else 1
    found = {"allocated": budget.allocated, "remaining": budgets.left(budget)}
    return {name: value / unit if unit != 1 else value for name, value in found.items()} | {"currency": budget.currency}

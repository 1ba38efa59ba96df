"""A sink in Redis that also mirrors the state of agents and tasks to keys (`keys = true`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import lifecycle, limits, team
from tenure.core.errors import close_all
from tenure.core.filters import Present
from tenure.core.money import NANO
from tenure.core.records import Agent, Project, Session, Task, Usage
from tenure.sinks.port import Message, Sink

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine
    from tenure.sinks.redis_keys import RuntimeKeys, Snapshot
    from tenure.stores.port import Transaction

EVERY = 60.0  # seconds between snapshots
READY = 1000  # tasks of each lane
HELD = limits.REDIS_HELD


class KeyedSink:
    """Passes everything on to the sink; keys follow what it has acknowledged."""

    def __init__(self, sink: Sink, keys: RuntimeKeys, engine: Engine, monotonic: Callable[[], float]) -> None:
        self._sink, self._keys, self._engine, self._monotonic = sink, keys, engine, monotonic
        self._identity: str | None = None
        self._replace_at = 0.0

    def send(self, messages: Sequence[Message], timeout: float) -> int:
        sent = self._sink.send(messages, timeout)
        self._keys.apply(messages[:sent])
        return sent

    def identity(self) -> str:
        """Also the moment for a snapshot: at the start, after a loss, and every minute."""
        identity = self._sink.identity()
        if identity != self._identity or self._monotonic() >= self._replace_at:
            self._keys.replace(snapshot(self._engine))
            self._identity, self._replace_at = identity, self._monotonic() + EVERY
        return identity

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
        projects = [project.id for project in tx.find(Project, {})]
        active = {task.id: task for project in projects for task in _held(tx, project)}
        ready = [head for project in projects for lane in tx.lanes(project, READY).values() for head in lane]
        order = sorted(ready, key=lambda head: (head.band, head.rank, head.sequence))
        return Snapshot(
            engine.tenant,
            tx.now,
            agents=[one for project in projects for one in _agents(tx, project, active.values())],
            ready={head.id: float(place) for place, head in enumerate(order)},
            active={task.id: task.agent or "" for task in active.values()},
            contexts=_contexts(tx, projects, active.values()),
            usage=_usage(tx, projects),
            usage_of_tasks=_usage_of_tasks(tx, active.values()),
        )

    return engine.read(ask)


def _held(tx: Transaction, project: str) -> list[Task]:
    return tx.find(Task, {"project": project, "state": lifecycle.HELD}, limit=HELD)


def _agents(tx: Transaction, project: str, active: Any) -> list[Any]:
    from tenure.sinks import redis_keys

    held: dict[str, list[str]] = {}
    for task in active:
        if task.project == project and task.agent is not None:
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


def _contexts(tx: Transaction, projects: Sequence[str], active: Any) -> dict[str, dict[str, Any]]:
    tasks: dict[str, list[str]] = {}
    for task in active:
        if task.session is not None:
            tasks.setdefault(task.session, []).append(task.id)
    keys = [(project, session) for project in projects for session in tasks]
    return {
        row.id: {"agent": row.agent, "project": row.project, "tasks": tasks[row.id]} for row in tx.load(Session, keys)
    }


_COLUMNS = ("fresh", "cached", "written", "output", "cost")


def _usage(tx: Transaction, projects: Sequence[str]) -> dict[str, float | int]:
    if not projects:
        return {}
    found = tx.sums(Usage, {"project": tuple(projects)}, "project", _COLUMNS).values()
    return _named([sum(values) for values in zip(*([value or 0 for value in row] for row in found), strict=True)])


def _usage_of_tasks(tx: Transaction, active: Any) -> dict[str, dict[str, float | int]]:
    tasks: dict[str, list[str]] = {}
    for task in active:
        tasks.setdefault(task.project, []).append(task.id)
    found: dict[str, dict[str, float | int]] = {}
    for project, ids in tasks.items():
        sums = tx.sums(Usage, {"project": project, "task": tuple(ids)}, "task", _COLUMNS)
        found |= {task: _named([value or 0 for value in row]) for task, row in sums.items()}
    return found


def _named(values: Sequence[int]) -> dict[str, float | int]:
    """The sums by name; money in dollars."""
    named: dict[str, float | int] = dict(zip(_COLUMNS, values, strict=False))
    return named | {"cost": named["cost"] / NANO} if named else {}

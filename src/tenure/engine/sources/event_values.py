"""The values of an event that filters and templates use, and how many triggers led to it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tenure.core import triggers as rule
from tenure.core.events import Event
from tenure.core.records import Brief, Dag, Task
from tenure.engine.runtime.rows import fields_of
from tenure.engine.runtime.unit_of_work import UnitOfWork

_TOLD = (
    "id", "kind", "level", "project", "task", "key", "track", "generation", "agent", "session", "user",
    "previous_state", "new_state", "message", "details", "trace_id",
)  # fmt: skip


def values_of(work: UnitOfWork, event: Event) -> dict[str, Any]:
    """`event`, and the `task` or `dag` that it is about in their current state."""
    values: dict[str, Any] = {"event": event_values(event)}
    task = _task(work, event)
    if task is not None:
        brief = work.get(Brief, task.project, task.id)
        shown = "id key type track priority state attempts created_by dag"
        values["task"] = fields_of(task, shown) | {"title": brief.title if brief else "", "tags": list(task.tags)}
    dag = _dag(work, event)
    if dag is not None:
        values["dag"] = fields_of(dag, "id title plan status run total completed dead")
    return values


def event_values(event: Event) -> dict[str, Any]:
    """The event alone, without a query to the store."""
    time = datetime.fromtimestamp(event.time // 1_000_000, UTC)
    return {name: getattr(event, name) for name in _TOLD} | {"time": f"{time:%Y-%m-%dT%H:%M:%SZ}"}


def depth_of(work: UnitOfWork, event: Event) -> int:
    """How many triggers, one after the other, led to the event's subject."""
    task = _task(work, event)
    dag = _dag(work, event)
    if task is None and dag is not None and dag.created_by.startswith("trigger:"):
        task = next(iter(work.find(Task, {"project": event.project, "dag": dag.id}, limit=1)), None)
    if task is None:
        return 0
    first = task if task.root is None else work.get(Task, task.project, task.root)
    brief = work.get(Brief, event.project, (first or task).id)
    return rule.depth_in(brief.metadata) if brief is not None else 0


def _task(work: UnitOfWork, event: Event) -> Task | None:
    return work.get(Task, event.project, event.task) if event.task is not None else None


def _dag(work: UnitOfWork, event: Event) -> Dag | None:
    id = event.details.get("dag") if event.kind.startswith("dag.") else None
    return work.get(Dag, event.project, id) if isinstance(id, str) else None

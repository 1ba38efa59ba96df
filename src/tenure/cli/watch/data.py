"""The data of the live view, read at once: the status, a page of tasks for each state, the last events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.cli.status import Glance, glance
from tenure.core import lifecycle, limits

if TYPE_CHECKING:
    from tenure.client import Client
    from tenure.core.views import TaskView

MOST_TASKS = limits.WATCH_SCREEN_TASKS
MOST_EVENTS = limits.WATCH_SCREEN_EVENTS
# Frequent events would hide the others in a short list.
FREQUENT = frozenset({
    "session.started", "session.ended", "agent.updated", "task.ready", "task.retry_due", "task.started",
    "archive.moved", "archive.returned", "archive.pruned",
})  # fmt: skip
_NEWEST_FIRST = (lifecycle.COMPLETED, lifecycle.CANCELLED, lifecycle.DEAD_LETTERED)


class Snapshot(NamedTuple):
    look: Glance
    tasks: Sequence[Mapping[str, Any]]
    events: Sequence[Mapping[str, Any]]  # oldest first, without FREQUENT

    @property
    def now(self) -> int:
        return int(self.look.status["now"])


def read(client: Client, states: Sequence[str]) -> Snapshot:
    look = glance(client)
    counts = look.status["tasks"]
    tasks: list[TaskView] = []
    for state in states:
        if counts.get(state):
            order = "-created_at" if state in _NEWEST_FIRST else "created_at"
            tasks += client.tasks(state=state, order=order, limit=MOST_TASKS)
    events = [event for event in client.log(limit=MOST_EVENTS) if event["kind"] not in FREQUENT]
    return Snapshot(look, tasks, events)


def found(tasks: Sequence[Mapping[str, Any]], text: str) -> Sequence[Mapping[str, Any]]:
    """Tasks that have every word of the text in key, title, agent, type or tags."""
    words = text.lower().split()
    return [task for task in tasks if all(word in _searched(task) for word in words)] if words else list(tasks)


def _searched(task: Mapping[str, Any]) -> str:
    parts = (task["key"], task["title"], task.get("agent", ""), task["type"], *task.get("tags", ()))
    return " ".join(parts).lower()


class Detail(NamedTuple):
    task: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]
    reasons: Sequence[str]
    events: Sequence[Mapping[str, Any]]


def read_detail(client: Client, key: str) -> Detail:
    return Detail(client.show(key), client.history(key), client.why(key)["reasons"], client.log(task=key, limit=15))

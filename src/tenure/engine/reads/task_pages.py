"""Pages of a task list: in the list's order, and with the words that somebody searches for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenure.core import limits
from tenure.core.filters import selected
from tenure.core.records import Brief, Task
from tenure.engine.reads import task_view
from tenure.engine.runtime.unit_of_work import UnitOfWork

MOST_SORTED = limits.SORTED
INDEXED = ("created_at", "key")  # orders that stores have an index for


def page(work: UnitOfWork, where: dict[str, Any], order: str, after: tuple[Any, str] | None, limit: int) -> list[Task]:
    """Few tasks of the wanted states are read by state, which has an index, and sorted here.

    By the order's index a store would read all other tasks too, to find them: 40 ms of 100,000. An order without one is
    sorted by the store, which costs half of decoding all tasks of these states.
    """
    states, field = where.get("state"), order.removeprefix("-")
    if not isinstance(states, tuple) or field not in INDEXED:
        return work.find(Task, where, order=order, after=after, limit=limit)
    of_states = [{"project": where["project"], "state": state} for state in states]
    if sum(work.tally(Task, one, MOST_SORTED) for one in of_states) >= MOST_SORTED:
        return work.find(Task, where, order=order, after=after, limit=limit)
    found = [task for state in states for task in work.find(Task, {**where, "state": state})]
    return selected(found, {}, order, after, limit)


def has(work: UnitOfWork, task: Task, brief: Brief, words: Sequence[str]) -> bool:
    description = task_view.unpacked(work, task.project, brief.description)
    texts = (
        task.key, brief.title, description, task.type, task.agent, *task.tags,
        task.last_error.message if task.last_error else None, *(pause.reason for pause in task.pauses),
    )  # fmt: skip
    text = "\n".join(part for part in texts if part).casefold()
    return all(word in text for word in words)

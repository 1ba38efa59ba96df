"""Pages of a task list: in the list's order, and with the words that somebody searches for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenure.core import limits
from tenure.core.filters import matches, selected
from tenure.core.records import Brief, Task
from tenure.engine.reads import task_view
from tenure.engine.runtime.unit_of_work import UnitOfWork

MOST_SORTED = limits.SORTED
MOST_READ = limits.EVENTS_OF_A_PAGE
INDEXED = ("created_at", "key")  # orders that stores have an index for


def page(work: UnitOfWork, where: dict[str, Any], order: str, after: tuple[Any, str] | None, limit: int) -> list[Task]:
    """Few tasks of the wanted states are read by state, which has an index, and sorted here.

    By the order's index a store would read all other tasks too, to find them: 40 ms of 100,000. An order without one is
    sorted by the store, which costs half of decoding all tasks of these states. So where they are many, the tasks that
    changed last are found by the end of the log.
    """
    states, field = where.get("state"), order.removeprefix("-")
    if order == "-updated_at" and where.keys() <= {"project", "state", "archived_at"}:
        newest = _last_changed(work, where, after, limit) if _are_many(work, where["project"], states) else []
        if len(newest) == limit:
            return newest
    if not isinstance(states, tuple) or field not in INDEXED or _are_many(work, where["project"], states):
        return work.find(Task, where, order=order, after=after, limit=limit)
    found = [task for state in states for task in work.find(Task, {**where, "state": state})]
    return selected(found, {}, order, after, limit)


def _are_many(work: UnitOfWork, project: str, states: tuple[str, ...] | str | None) -> bool:
    one_by_one = states if isinstance(states, tuple) else (states,)
    wheres = [{"project": project, "state": state} if state else {"project": project} for state in one_by_one]
    return sum(work.tally(Task, where, MOST_SORTED) for where in wheres) >= MOST_SORTED


def _last_changed(work: UnitOfWork, where: dict[str, Any], after: tuple[Any, str] | None, limit: int) -> list[Task]:
    """As much of a page by `-updated_at` as the end of the log has: an index for it would be written by each claim.

    A task changes with an event whose patch says so, so what changed after the first event that is read is all there.
    Parallel writers draw sequences not quite in the order of their times: the first quarter only shows since when.
    """
    project = where["project"]
    found: list[Task] = []
    for many in (4 * limit, MOST_READ):
        events = work.tx.events({"project": project}, limit=many, last=True)
        if len(events) < many:
            return []
        times = {key[2]: row.updated_at for key in work.changed(Task) if (row := work.peek(Task, *key[1:]))}
        for event in reversed(events):
            for table, row_id, fields in event.patch:
                if table == "task" and fields and "updated_at" in fields:
                    times.setdefault(row_id, fields["updated_at"])
        since = max(event.time for event in events[: many // 4])
        places = sorted(((at, row_id) for row_id, at in times.items() if at > since), reverse=True)
        ids = [place[1] for place in places if after is None or place < after]
        found = []
        for start in range(0, len(ids), limit):
            rows = work.get_many(Task, project, ids[start : start + limit])
            found += [row for row in rows.values() if matches(row, where)]
            if len(found) >= limit:
                return found[:limit]
    return found


def has(work: UnitOfWork, task: Task, brief: Brief, words: Sequence[str]) -> bool:
    description = task_view.unpacked(work, task.project, brief.description)
    texts = (
        task.key, brief.title, description, task.type, task.agent, *task.tags,
        task.last_error.message if task.last_error else None, *(pause.reason for pause in task.pauses),
    )  # fmt: skip
    text = "\n".join(part for part in texts if part).casefold()
    return all(word in text for word in words)

"""Who reads a project's log and how far each reader has come: no event is dropped before all have passed it.

A reader is a row: a Cursor under the reader's name. Whatever follows the log later (sinks, the seal) keeps one too and
needs no code here.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tenure.core.records import Cursor
from tenure.engine.runtime.rows import event_pages
from tenure.engine.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tenure.core.events import Event

AT_ONCE = 5000  # events per query


def unread_by_some(work: UnitOfWork, project: str, tasks: Collection[str]) -> set[str]:
    """Those of the tasks of which some reader has not passed every event."""
    cursors = work.find(Cursor, {"project": project})
    if not cursors or not tasks:
        return set()
    after = min(cursor.sequence for cursor in cursors)
    pages = event_pages(work.tx, {"project": project, "task": tuple(tasks)}, AT_ONCE, after)
    return {event.task for page in pages for event in page if event.task is not None}


def holding_back(work: UnitOfWork, project: str) -> dict[str, Event]:
    """Readers that have not passed all of the log, each with the first event it has yet to read."""
    found = {}
    for cursor in work.find(Cursor, {"project": project}):
        unread = work.tx.events({"project": project}, after=cursor.sequence, limit=1)
        if unread:
            found[cursor.id] = unread[0]
    return found

"""Who reads a project's log and how far each reader has come: no event is dropped before all have passed it.

A reader is a row: a Cursor of the project under the reader's name, or a Sink, which reads all projects. In an audited
project the seals are one too.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tenure.core.filters import Present
from tenure.core.records import Cursor, Sink, Webhook
from tenure.core.webhook_delivery import holds_back
from tenure.engine.audit.sealer import sealed_to
from tenure.engine.runtime.rows import event_pages
from tenure.engine.runtime.unit_of_work import UnitOfWork

if TYPE_CHECKING:
    from tenure.core.events import Event

AT_ONCE = 5000  # events per query
SEALER = "audit"  # the name of the seals among the readers


def unread_by_some(work: UnitOfWork, project: str, tasks: Collection[str]) -> set[str]:
    """Those of the tasks of which some reader has not passed every event."""
    places = places_of(work, project)
    if not places or not tasks:
        return set()
    pages = event_pages(work.tx, {"project": project, "task": tuple(tasks)}, AT_ONCE, min(places.values()))
    return {event.task for page in pages for event in page if event.task is not None}


def holding_back(work: UnitOfWork, project: str) -> dict[str, Event]:
    """Readers that have not passed all of the log, each with the first event it has yet to read."""
    found = {}
    for name, sequence in places_of(work, project).items():
        unread = work.tx.events({"project": project}, after=sequence, limit=1)
        if unread:
            found[name] = unread[0]
    return found


def places_of(work: UnitOfWork, project: str) -> dict[str, int]:
    """Reader → the sequence of the last event that it has passed. A sink that was cut off holds nothing back."""
    places = {cursor.id: cursor.sequence for cursor in work.find(Cursor, {"project": project})}
    sinks = work.find(Sink, {"project": ""})
    places |= {f"sink {row.id}": row.sequence for row in sinks if row.holds_back(project)}
    sealed = sealed_to(work, project)
    if sealed is not None:
        places[SEALER] = sealed
    behind = work.find(Webhook, {"project": project, "sequence": Present()})
    return places | {f"webhook {row.id}": row.sequence or 0 for row in behind if holds_back(row, work.now)}


def end_of_log(work: UnitOfWork) -> int:
    """The last sequence of the store's log, of any project; what this transaction appends comes after it."""
    last = work.tx.events({}, limit=1, last=True)
    return last[0].sequence if last else 0

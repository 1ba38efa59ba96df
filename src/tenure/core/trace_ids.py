"""The trace of a task: one id from its creation to its end, whatever requests come between."""

from __future__ import annotations

from tenure.core.events import Event
from tenure.core.records import Task


def trace_of(task: Task | None, event: Event | None = None) -> str:
    """The trace of a task, which all of its messages and events share; of other events their command's. Never empty."""
    if task is not None and task.trace_id is not None:
        return task.trace_id
    named = task.id if task is not None else event.task if event is not None else None
    if named is None and event is not None:
        if event.trace_id is not None:
            return event.trace_id
        named = event.id
    import hashlib  # a fifth of the startup time, and rarely needed

    return hashlib.sha256((named or "").encode()).hexdigest()[:32]

"""The details of an event as anybody may see them: what an edit replaced may have had secrets."""

from __future__ import annotations

from typing import Any

from tenure.core.events import Event
from tenure.core.task_secrets import masked

_WITH_VALUES = frozenset({"task.edited", "task.retried", "task.retry_due"})  # their details have values of the task


def shown_details(event: Event) -> dict[str, Any]:
    """The details without secrets; those that undo needs stay in the log, sealed."""
    return masked(event.details) if event.kind in _WITH_VALUES else event.details

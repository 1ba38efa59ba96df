"""The end of a worker that runs until all its tasks have ended: what may still come, and waiting for it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tenure.client.client import Client
from tenure.core import limits
from tenure.core.lifecycle import HELD, PENDING, READY, RETRYING
from tenure.core.outcomes import Outcome

BREATH = 0.1  # seconds between two claims
UNDERWAY = (*HELD, RETRYING)  # states that end, or come back, without a person
LOOKED_AT = 50  # ready tasks


class LastTasks:
    """Of one run. `types` are those with a function, None for all; `filters` are the worker's."""

    def __init__(self, client: Client, types: tuple[str, ...] | None, filters: Mapping[str, Any]) -> None:
        self._client = client
        self._own: Any = {"type": types, "track": filters["tracks"] or None}
        self._own["tag"] = filters["tags"][0] if filters["tags"] else None
        self._not_for_us: set[str] = set()  # ready since before the last claim, which did not get them

    def may_come(self, nothing: Outcome) -> bool:
        """Whether a task may still become claimable without a person: a retry, or one that another holds.

        `nothing` is the answer to the last claim.
        """
        counts = nothing.counts or {}
        if counts.get("cooling") or counts.get("model_cooling") or (not counts and nothing.retry_in is not None):
            return True  # the agent rests, or its models do
        tasks = self._client.tasks
        if tasks(state=UNDERWAY, limit=1, **self._own):
            return True
        if tasks(state=PENDING, limit=1, **self._own) and tasks(state=UNDERWAY, limit=1):
            return True
        # One may have become ready between the claim and these reads: then it is claimed now.
        ready = {task["id"] for task in tasks(state=READY, limit=LOOKED_AT, **self._own)}
        is_new = not ready <= self._not_for_us
        self._not_for_us = ready
        return is_new

    def wait(self, mark: int, nothing: Outcome, draining: threading.Event) -> None:
        """Wait for an event after `mark`, which is from before the last claim, or for the next due time."""
        until = limits.WORKER_POLL if nothing.retry_in is None else min(limits.WORKER_POLL, nothing.retry_in)
        draining.wait(min(until, BREATH))
        self._client.wait_for_news(mark, until, is_wanted=lambda: not draining.is_set())

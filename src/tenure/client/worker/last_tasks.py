"""The end of a worker that runs until all its tasks have ended: what may still come, and waiting for it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from tenure.client.client import Client
from tenure.core import limits
from tenure.core.lifecycle import HELD, PENDING, RETRYING
from tenure.core.outcomes import Outcome

BREATH = 0.1  # seconds between two claims
UNDERWAY = (*HELD, RETRYING)  # states that end, or come back, without a person


def may_come(client: Client, nothing: Outcome, types: tuple[str, ...] | None, filters: Mapping[str, Any]) -> bool:
    """Whether a task may still become claimable without a person: a retry, or one that another holds.

    `nothing` is the answer to the last claim; `types` are those with a function, None for all.
    """
    counts = nothing.counts or {}
    if counts.get("cooling") or counts.get("model_cooling") or (not counts and nothing.retry_in is not None):
        return True  # the agent rests, or its models do
    own: Any = {"type": types, "track": filters["tracks"] or None, "limit": 1}
    own["tag"] = filters["tags"][0] if filters["tags"] else None
    if client.tasks(state=UNDERWAY, **own):
        return True
    return bool(client.tasks(state=PENDING, **own)) and bool(client.tasks(state=UNDERWAY, limit=1))


def await_news(client: Client, mark: int, nothing: Outcome, draining: threading.Event) -> None:
    """Wait for an event after `mark`, or for the next due time."""
    until = limits.WORKER_POLL if nothing.retry_in is None else min(limits.WORKER_POLL, nothing.retry_in)
    draining.wait(min(until, BREATH))
    client.wait_for_news(mark, until, is_wanted=lambda: not draining.is_set())

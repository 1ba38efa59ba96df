"""Views of pools and of the processes that they started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from tenure.core.views.task_views import Instant

STATES = ("ok", "backing off", "failing", "paused")
SPAWN_STATES = ("starting", "running", "ended", "lost")


class SpawnView(TypedDict):
    """One process of a pool."""

    id: str
    pool: str
    agent: Annotated[str, Meta(description="the name that claims")]
    task: Annotated[str, Meta(description="the key of the task that was offered to it")]
    spawner: str
    state: Annotated[str, Meta(extra_json_schema={"enum": list(SPAWN_STATES)})]
    holds: Annotated[Sequence[str], Meta(description="the keys of what it holds now")]
    handle: Annotated[str | None, Meta(description="pid and start time, or the other machine's id")]
    session: str | None
    remote_session: str | None
    term: int
    started_at: Instant
    offer_until: Instant
    running_at: Instant | None
    claimed_at: Instant | None
    idle_at: Instant | None
    ended_at: Instant | None
    why: Annotated[str | None, Meta(description="it ended, or is lost")]


class PoolView(TypedDict):
    """A pool and how it fares."""

    name: str
    program: str
    spawner: str
    size: Annotated[int, Meta(description="so many agents may be able to claim at once")]
    idle: Annotated[float, Meta(description="seconds that a process may live without a claim")]
    capabilities: Sequence[str]
    types: Annotated[Sequence[str], Meta(description="of tasks that it takes; empty: all")]
    tracks: Sequence[str]
    models: Sequence[str]
    state: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
    enabled: bool
    disabled_for: str | None
    starting: Annotated[int, Meta(description="live spawns that have not called yet")]
    running: int
    spawned: Annotated[int, Meta(description="processes that were asked for, in all")]
    failures: Annotated[int, Meta(description="spawns in a row that claimed nothing")]
    wait_until: Annotated[Instant | None, Meta(description="backing off: nothing is started before")]
    error: Annotated[str | None, Meta(description="of the last spawn that claimed nothing")]
    error_at: Instant | None
    created_by: str
    created_at: Instant
    changed_at: Instant


class PoolInFull(PoolView):
    """A pool with its live processes."""

    spawns: Sequence[SpawnView]

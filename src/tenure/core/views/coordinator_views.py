"""The coordinator's status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from tenure.core.events import LEVELS
from tenure.core.views.view_values import Instant


class CycleError(TypedDict):
    """The last error of a cycle."""

    message: str
    at: Instant | None


class Here(TypedDict):
    """The server that was asked."""

    instance: str
    leads: bool


class CoordinatorView(TypedDict):
    """Who leads, how its cycles go, and how much waits and runs."""

    active: bool
    instance: str | None
    term: int
    since: Instant | None
    leads_for: Annotated[float, Meta(description="seconds")] | None
    last_heartbeat_at: Instant | None
    lease: Annotated[float, Meta(description="seconds left")] | None
    cycles: int
    last_cycle_at: Instant | None
    last_error: CycleError | None
    projects: Sequence[str]
    pending_tasks: int
    running_tasks: int
    healthy_agents: int
    stale_agents: int
    overdue_tasks: int
    here: Here | None
    now: Instant


class CoordinatorHealth(TypedDict):
    """Whether a process leads, on any server."""

    active: bool
    term: int
    since: Instant | None
    last_heartbeat_at: Instant | None
    last_cycle_at: Instant | None
    cycles: int
    lease: float | None
    store: str
    here: bool


class RecoveredProject(TypedDict):
    """The result in one project."""

    project: str
    settled: int
    events: Annotated[dict[str, int], Meta(description="kind of event → how many")]
    failed: Annotated[dict[str, str], Meta(description="row → error")]


class RecoveredView(TypedDict):
    """What `recover` has done."""

    settled: int
    projects: Sequence[RecoveredProject]


class NoteView(TypedDict):
    """A note of a server's own cycles; kept only by that server, between the events."""

    time: Instant
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["coordinator.note"]})]
    level: Annotated[str, Meta(extra_json_schema={"enum": list(LEVELS)})]
    message: str

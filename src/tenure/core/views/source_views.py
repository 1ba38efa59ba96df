"""Schedules, triggers and the failure watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from tenure.core import failure_watch, schedules, signatures
from tenure.core.views.task_views import Instant

Template = Annotated[dict[str, Any], Meta(description="tasks with placeholders in their texts, as given")]


class ScheduleView(TypedDict):
    """A schedule."""

    name: str
    cron: str
    zone: str
    misfire: Annotated[str, Meta(extra_json_schema={"enum": list(schedules.MISFIRES)})]
    enabled: bool
    reason: Annotated[str | None, Meta(description="why it is paused")]
    title: Annotated[str, Meta(description="of its first task")]
    tasks: int
    next_at: Instant | None
    next_in: Annotated[float | None, Meta(description="seconds until then")]
    last_at: Instant | None
    last_made: Annotated[str | None, Meta(description="the last task's key, or the last dag's id")]
    last_error: str | None
    fired: int
    missed: Annotated[int, Meta(description="how often ticks were skipped")]
    failed: int
    created_by: str
    created_at: Instant
    changed_at: Instant


class Tick(TypedDict):
    at: Instant
    local: Annotated[str, Meta(description="as the wall clock shows it in the zone")]


class ScheduleInFull(ScheduleView):
    template: Template
    ticks: Sequence[Tick]


class TriggerView(TypedDict):
    """A trigger, on an event or a signed delivery. Its secret is never shown."""

    name: str
    on: Annotated[str, Meta(description="a kind of event, a pattern of kinds, or `webhook`")]
    filter: Annotated[dict[str, Any], Meta(description="path → required value")]
    enabled: bool
    most: Annotated[int, Meta(description="firings per hour")]
    title: Annotated[str, Meta(description="of its first task")]
    tasks: int
    signature: Annotated[str | None, Meta(extra_json_schema={"enum": [*signatures.FORMS, None]})]
    previous_until: Annotated[Instant | None, Meta(description="until when the previous secret is valid")]
    fired: int
    failed: int
    held_back: Annotated[int, Meta(description="suppressed by the hourly limit or the chain depth")]
    last_at: Instant | None
    last_made: str | None
    last_error: str | None
    created_by: str
    created_at: Instant
    changed_at: Instant


class TriggerInFull(TriggerView):
    template: Template


class SubjectView(TypedDict):
    """How the attempts of one tag, type or track went."""

    subject: str
    failed: int
    attempts: int
    rate: float
    task: Annotated[str | None, Meta(description="the open task that investigates")]


class WatchedView(TypedDict):
    """The settings of the failure watch, and failure rates, the worst first."""

    on: bool
    window: Annotated[float, Meta(description="seconds")]
    threshold: float
    least: int
    by: Sequence[Annotated[str, Meta(extra_json_schema={"enum": list(failure_watch.BY)})]]
    track: str | None
    priority: int
    subjects: Sequence[SubjectView]

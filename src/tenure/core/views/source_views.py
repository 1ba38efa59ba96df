"""Schedules, triggers and the watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from tenure.core import failure_watch, schedules, signatures
from tenure.core.views.view_values import Instant

Template = Annotated[dict[str, Any], Meta(description="tasks with gaps in their texts, as they were given")]


class ScheduleView(TypedDict):
    """Work that comes back by the clock."""

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
    missed: Annotated[int, Meta(description="how often ticks were let go")]
    failed: int
    created_by: str
    created_at: Instant
    changed_at: Instant


class Tick(TypedDict):
    at: Instant
    local: Annotated[str, Meta(description="as the clock on the wall shows it there")]


class ScheduleInFull(ScheduleView):
    template: Template
    ticks: Sequence[Tick]


class TriggerView(TypedDict):
    """Work that comes with an event, or with a signed delivery. Its secret is never shown."""

    name: str
    on: Annotated[str, Meta(description="a kind of event, a pattern of kinds, or `webhook`")]
    filter: Annotated[dict[str, Any], Meta(description="path → what must be there")]
    enabled: bool
    most: Annotated[int, Meta(description="firings in an hour")]
    title: Annotated[str, Meta(description="of its first task")]
    tasks: int
    signature: Annotated[str | None, Meta(extra_json_schema={"enum": [*signatures.FORMS, None]})]
    previous_until: Annotated[Instant | None, Meta(description="until when the secret before the last is good")]
    fired: int
    failed: int
    held_back: Annotated[int, Meta(description="by the bound of an hour, or as the end of a loop")]
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
    task: Annotated[str | None, Meta(description="the open task that finds out why")]


class WatchedView(TypedDict):
    """What the self-improvement watch goes by, and how much fails of what, the worst first."""

    on: bool
    window: Annotated[float, Meta(description="seconds")]
    threshold: float
    least: int
    by: Sequence[Annotated[str, Meta(extra_json_schema={"enum": list(failure_watch.BY)})]]
    track: str | None
    priority: int
    subjects: Sequence[SubjectView]

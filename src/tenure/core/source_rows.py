"""Rows of schedules and triggers, and the cursors of the log's readers."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core.row import Row


class Schedule(Row, frozen=True, kw_only=True):
    """A schedule; its id is its name."""

    cron: str
    zone: str = "UTC"
    misfire: str = "once"  # policy for missed ticks: skip, once, all
    template: dict[str, Any]
    enabled: bool = True
    reason: str | None = None  # why it is paused
    next_at: int | None = None  # the next tick; None while it is paused
    last_at: int | None = None  # the last handled tick
    last_made: str | None = None  # the key of the last task, or the id of the last dag
    last_error: str | None = None
    fired: int = 0
    missed: int = 0  # how often ticks were skipped
    failed: int = 0  # ticks whose tasks could not be created
    created_by: str = "human:"
    created_at: int
    changed_at: int


class Trigger(Row, frozen=True, kw_only=True):
    """A trigger, on an event or a signed delivery from outside; its id is its name."""

    kind: str  # of event, a pattern of kinds, or `webhook`
    filter: dict[str, Any]  # path → required value
    template: dict[str, Any]
    enabled: bool = True
    behind: int = 0  # only events after this sequence concern it
    most: int = 100  # firings per hour
    hour_at: int | None = None  # when the hour began that `hour` counts in
    hour: int = 0
    fired: int = 0
    failed: int = 0
    held_back: int = 0  # suppressed by the hourly limit or the chain depth
    reported_at: int | None = None  # when that was last reported
    last_at: int | None = None
    last_made: str | None = None
    last_error: str | None = None
    signature: str | None = None  # of a webhook: standard, github
    secret: bytes = b""
    previous: bytes = b""  # the secret before the last rotation
    previous_until: int | None = None
    request_id: str | None = None  # that created the secret
    request_hash: str | None = None
    created_by: str = "human:"
    created_at: int
    changed_at: int


class Cursor(Row, frozen=True, kw_only=True):
    """How far a reader of the log has come in a project; its id is the reader's name.

    Within a project sequences follow the order of commits, so nothing can appear behind a cursor that moves over the
    events of one project. It is created with the first trigger or end template.
    """

    sequence: int


class Watch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a project investigates failures: for any tag, type or track of which enough recent attempts failed."""

    window: float = 24 * 3600.0  # seconds
    threshold: float = 0.5  # of attempts
    least: int = 10  # attempts before the rate counts
    by: tuple[str, ...] = ("tag", "type", "track")
    track: str | None = None  # where its tasks go; None: the project's default
    priority: int = 20

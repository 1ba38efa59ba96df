"""The rows of where work comes from by itself: schedules, triggers, and how far the log was read for them."""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core.row import Row


class Schedule(Row, frozen=True, kw_only=True):
    """Work that comes back by the clock; its id is its name."""

    cron: str
    zone: str = "UTC"
    misfire: str = "once"  # what becomes of ticks that nobody was there for: skip, once, all
    template: dict[str, Any]
    enabled: bool = True
    reason: str | None = None  # why it is paused
    next_at: int | None = None  # the next tick; None while it is paused
    last_at: int | None = None  # the last tick that was dealt with
    last_made: str | None = None  # the key of the last task, or the id of the last dag
    last_error: str | None = None
    fired: int = 0
    missed: int = 0  # how often ticks were let go
    failed: int = 0  # ticks whose template could not be made
    created_by: str = "human:"
    created_at: int
    changed_at: int


class Trigger(Row, frozen=True, kw_only=True):
    """Work that comes with an event, or with a signed delivery from outside; its id is its name."""

    kind: str  # of event, a pattern of kinds, or `webhook`
    filter: dict[str, Any]  # path → what must be there
    template: dict[str, Any]
    enabled: bool = True
    behind: int = 0  # only events behind this place of the log are its own
    most: int = 100  # firings in an hour
    hour_at: int | None = None  # when the hour began that `hour` counts in
    hour: int = 0
    fired: int = 0
    failed: int = 0
    held_back: int = 0  # by the bound of an hour, or as the end of a loop
    told_at: int | None = None  # when it was last told of that
    last_at: int | None = None
    last_made: str | None = None
    last_error: str | None = None
    signature: str | None = None  # of a webhook: standard, github
    secret: bytes = b""
    previous: bytes = b""  # the secret before the last rotation
    previous_until: int | None = None
    request_id: str | None = None  # by which the secret was made
    request_hash: str | None = None
    created_by: str = "human:"
    created_at: int
    changed_at: int


class Cursor(Row, frozen=True, kw_only=True):
    """How far a reader of the log has come in a project; its id is the reader's name.

    Within a project sequences are in the order of commits, so nothing can come behind a cursor that is moved over
    what was read of one project. It is made with the first thing that wants to be told.
    """

    sequence: int


class Watch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a project asks why work fails: for any tag, type or track of which enough attempts failed lately."""

    window: float = 24 * 3600.0  # seconds
    threshold: float = 0.5  # of attempts
    least: int = 10  # attempts, before a rate says anything
    by: tuple[str, ...] = ("tag", "type", "track")
    track: str | None = None  # where its tasks go; None: the project's default
    priority: int = 20

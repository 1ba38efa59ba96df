"""Views of relays and webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from msgspec import Meta

from tenure.core.views.task_views import Instant

WEBHOOK_STATES = ("ok", "failing", "down", "paused")
STATES = ("up to date", "behind", "failing", "paused", "cut off")


class RelayView(TypedDict):
    """A sink and its place in the log."""

    name: str
    url: Annotated[str, Meta(description="without its password")]
    state: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
    projects: Annotated[Sequence[str], Meta(description="those it reads; none: all")]
    sequence: Annotated[int, Meta(description="every event up to it is sent")]
    lag: Annotated[float, Meta(description="seconds since the oldest event that is not sent")]
    lag_events: Annotated[int, Meta(description="events of the log after its place, for it or not")]
    max_lag: Annotated[float, Meta(description="seconds; beyond it the sink is cut off")]
    sent: Annotated[int, Meta(description="messages")]
    sent_at: Instant | None
    error: str | None
    error_at: Instant | None
    paused_at: Instant | None
    paused_by: str | None
    cut_off_at: Instant | None
    created_at: Instant


class WebhookView(TypedDict):
    """A webhook, without its secret."""

    name: str
    url: str
    kinds: Annotated[Sequence[str], Meta(description="of events, patterns of them, or `task.status_changed`")]
    filter: Annotated[dict[str, Any], Meta(description="path → required value")]
    state: Annotated[str, Meta(extra_json_schema={"enum": list(WEBHOOK_STATES)})]
    enabled: bool
    disabled_for: str | None
    disabled_at: Instant | None
    previous_until: Annotated[Instant | None, Meta(description="until when deliveries carry both signatures")]
    parked: Annotated[int, Meta(description="deliveries that wait")]
    delivered: int
    failed: Annotated[int, Meta(description="deliveries that were given up")]
    down_since: Instant | None
    success_at: Instant | None
    failure_at: Instant | None
    status: Annotated[int | None, Meta(description="of the last answer")]
    error: str | None
    created_by: str
    created_at: Instant
    changed_at: Instant


class DeliveryView(TypedDict):
    """A line of a webhook's delivery log."""

    message: Annotated[str, Meta(description="the message id, the same in every try")]
    event: str
    sequence: int
    kind: str
    state: Annotated[str, Meta(extra_json_schema={"enum": ["parked", "delivered", "failed"]})]
    at: Instant
    tries: int
    tried_at: Instant | None
    next_at: Instant | None
    status: int | None
    error: str | None
    duration: Annotated[float | None, Meta(description="seconds, of the last try")]

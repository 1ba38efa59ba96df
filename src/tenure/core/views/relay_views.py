"""Views of relays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from tenure.core.views.view_values import Instant

STATES = ("up to date", "behind", "failing", "paused", "cut off")


class RelayView(TypedDict):
    """A sink and its place in the log."""

    name: str
    url: Annotated[str, Meta(description="without its password")]
    state: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
    projects: Annotated[Sequence[str], Meta(description="those it reads; none: all")]
    sequence: Annotated[int, Meta(description="every event up to it is sent")]
    lag: Annotated[float, Meta(description="seconds since the oldest event that is not sent")]
    max_lag: Annotated[float, Meta(description="seconds; beyond it the sink is cut off")]
    sent: Annotated[int, Meta(description="messages")]
    sent_at: Instant | None
    error: str | None
    error_at: Instant | None
    paused_at: Instant | None
    paused_by: str | None
    cut_off_at: Instant | None
    created_at: Instant

"""The flow of work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from tenure.core.views.view_values import Instant, State


class DepthView(TypedDict):
    """Tasks by state."""

    waiting: int
    ready: int
    held: int
    paused: int
    dead: int


class StepView(TypedDict):
    """What happened in one step, and the tasks by state at its end."""

    at: Instant
    depth: DepthView
    created: int
    claimed: int
    completed: int
    failed: int
    dead_lettered: int
    lost: int


class SpreadView(TypedDict):
    """Seconds: median, 95th percentile and maximum."""

    count: int
    median: float
    p95: float
    longest: float


class OldestView(TypedDict):
    """The task that has been in a state for longest."""

    state: State
    key: str
    created_at: Instant
    since: Instant


class BusyView(TypedDict):
    """What an agent did; `busy` is the average number of tasks held."""

    agent: str
    busy: float
    claimed: int
    completed: int
    failed: int
    lost: int


class OverviewView(TypedDict):
    """The flow of work. Where the log is too long to be read as far back as requested, `is_whole` is false."""

    project: str
    now: Instant
    since: Instant
    is_whole: bool
    step: Annotated[float, Meta(description="seconds of each step")]
    steps: Sequence[StepView]
    waits: SpreadView | None
    durations: SpreadView | None
    oldest: Sequence[OldestView]
    agents: Sequence[BusyView]


class MoneyView(TypedDict):
    """A project's budget, in whole dollars or tokens and their parts."""

    currency: str
    allocated: float
    spent: float
    reserved: float


class GaugesView(TypedDict):
    """Tasks by state in one project, or in all others together."""

    project: str
    depth: Annotated[dict[str, dict[str, int]], Meta(description="state → tier → how many tasks")]
    completed: int
    overdue: int
    overdue_retries: int
    oldest_ready: Annotated[float, Meta(description="seconds")]
    clock_behind: Annotated[float, Meta(description="seconds by which the clock is behind the store's time")]
    agents: Annotated[dict[str, int], Meta(description="status → how many agents")]
    budget: Annotated[MoneyView | None, Meta(description="the project's own; None where it has none")]
    readers: Annotated[
        dict[str, float],
        Meta(
            description="reader of the log → seconds since the first event that it has not passed; 0: it has passed all"
        ),
    ]

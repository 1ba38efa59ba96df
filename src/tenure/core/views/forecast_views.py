"""The forecast of the open tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from tenure.core.forecast import REASONS
from tenure.core.views.budget_views import Amount, Currency
from tenure.core.views.task_views import Instant, Usd

Seconds = Annotated[float, Meta(description="seconds from now")]
Share = Annotated[float, Meta(description="from 0 to 1")]


class FinishView(TypedDict):
    """When the last task ends, in 10, 50 and 90 per cent of the runs at the latest."""

    p10: Seconds
    p50: Seconds
    p90: Seconds
    p10_at: Instant
    p50_at: Instant
    p90_at: Instant


class CostView(TypedDict):
    """What the tasks still cost."""

    p10: Usd
    p50: Usd
    p90: Usd
    unknown: Annotated[int, Meta(description="tasks without a known cost; they are not in the sums")]


class PathView(TypedDict):
    """A task on the path that decides the end."""

    key: str
    title: str
    begins: Seconds
    ends: Seconds
    why: Annotated[
        str, Meta(extra_json_schema={"enum": list(REASONS)}, description="what it waits for before it begins")
    ]
    share: Annotated[float, Meta(description="in how many of all runs it is on the path, from 0 to 1")]


class MoreView(TypedDict):
    """The same with one agent more."""

    agents: int
    p50: Seconds
    saves: Annotated[float, Meta(description="seconds that the end comes sooner")]


class LastsView(TypedDict):
    """Whether a budget lasts."""

    id: str
    currency: Currency
    left: Annotated[Amount, Meta(description="not spent yet")]
    lasts: Annotated[float, Meta(description="in how many of the runs it lasts, from 0 to 1")]
    ends_at: Annotated[Instant | None, Meta(description="when it is spent, in the middle of the runs where it is")]


class LeftOutView(TypedDict):
    """An open task that no run ends, and why."""

    key: str
    why: str


class ForecastView(TypedDict):
    """The end and the cost of the open tasks, from many runs. `seed` repeats it exactly."""

    now: Instant
    tasks: Annotated[int, Meta(description="open tasks that it is about, those that no run ends included")]
    agents: int
    agents_are: Annotated[str, Meta(description="how the agents were found: `given`, `active now`, `assumed`, `pool`")]
    runs: int
    seed: int
    finish: FinishView | None
    cost: CostView | None
    path: Sequence[PathView]
    one_more: MoreView | None
    budgets: Sequence[LastsView]
    dead_letters: Annotated[float, Meta(description="in how many of the runs a task fails for good, from 0 to 1")]
    sources: Annotated[dict[str, int], Meta(description="tasks by where their durations come from")]
    guessed: Annotated[float, Meta(description="how much of the work is guessed, from 0 to 1")]
    finished: Annotated[int, Meta(description="ended attempts that it is drawn from")]
    left_out: Sequence[LeftOutView]
    left_out_count: Annotated[int, Meta(description="open tasks that no run ends: no figure includes them")]
    left_out_why: Annotated[dict[str, int], Meta(description="the same by cause, the most frequent first")]

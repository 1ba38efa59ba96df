"""Usage and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from tenure.core.views.view_values import Instant, Usd


class SumsView(TypedDict):
    """Tokens, money and time. `cost_usd` is the known part of the cost; `unpriced` reports came without one."""

    fresh: int
    cached: int
    written: int
    output: int
    cost_usd: Usd | None
    unpriced: int
    computed_usd: NotRequired[Annotated[Usd, Meta(description="the part computed from the price table")]]
    duration: Annotated[float, Meta(description="seconds of compute")]


class UsageView(SumsView):
    """Usage of claims; `late` is the part that does not count against the task."""

    models: Sequence[str]
    reported_at: Instant
    late: NotRequired[SumsView]


class TotalsView(SumsView):
    """A project's total usage."""

    late: NotRequired[SumsView]


class SpentView(TotalsView):
    """Spending of one task, agent, model or session, under the requested name."""

    task: NotRequired[str]
    agent: NotRequired[str]
    model: NotRequired[str]
    session: NotRequired[str]

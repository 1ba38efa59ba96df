"""What work has cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NotRequired, TypedDict

from msgspec import Meta

from tenure.core.views.view_values import Instant, Usd


class SumsView(TypedDict):
    """Tokens, money and time. `cost_usd` is what is known of the cost; `unpriced` reports came without one."""

    fresh: int
    cached: int
    written: int
    output: int
    cost_usd: Usd | None
    unpriced: int
    computed_usd: NotRequired[Annotated[Usd, Meta(description="the part of it that is by the table of prices")]]
    duration: Annotated[float, Meta(description="seconds of compute")]


class UsageView(SumsView):
    """What claims have cost; `late` is the part of it that does not count against the task."""

    models: Sequence[str]
    reported_at: Instant
    late: NotRequired[SumsView]


class TotalsView(SumsView):
    """What a project has cost in all."""

    late: NotRequired[SumsView]


class SpentView(TotalsView):
    """What was spent for one task, agent, model or session: whichever was asked for is there by its name."""

    task: NotRequired[str]
    agent: NotRequired[str]
    model: NotRequired[str]
    session: NotRequired[str]

"""Models: tiers, models in trouble, accuracy of estimates, savings by routing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from tenure.core import models
from tenure.core.views.task_views import Instant, Usd

ModelTier = Annotated[str, Meta(extra_json_schema={"enum": list(models.TIERS)})]
Share = Annotated[float, Meta(description="of one: 0.2 is 20 %")]
Tokens = Annotated[int, Meta(description="fresh, written and output: each token once")]


class OfferedView(TypedDict):
    """One model of the table; prices are per million tokens, null where there is none."""

    family: str
    model: str
    fresh_usd: Usd | None
    cached_usd: Usd | None
    output_usd: Usd | None


class TierView(TypedDict):
    tier: ModelTier
    use: str
    strengths: Sequence[str]
    models: Sequence[OfferedView]


class LimitedView(TypedDict):
    """A rate-limited model without success since."""

    model: str
    troubles: Annotated[int, Meta(description="rate limits in a row")]
    cool_until: Instant | None
    tried_by: Annotated[str | None, Meta(description="the task whose claim tries whether it works again")]


class ModelsView(TypedDict):
    """Tiers with their models and prices, and models in trouble."""

    routing: Annotated[bool, Meta(description="whether claims recommend a model")]
    tiers: Sequence[TierView]
    limited: Sequence[LimitedView]


class SizeView(TypedDict):
    """The last tasks of one size; `is_used`: there are enough of them to estimate the next."""

    size: Annotated[str, Meta(description="points of complexity; `?` for a task of unknown size")]
    tasks: int
    tokens: Tokens
    cost_usd: Usd | None
    is_used: bool


class GoodnessView(TypedDict):
    """How close estimates came to actual usage."""

    tasks: Annotated[int, Meta(description="that reported usage")]
    estimated: Annotated[int, Meta(description="of those, with an estimate")]
    median_error: Share | None
    within: Annotated[float | None, Meta(description="the share of those with an error of at most 20 %")]


class TypeGoodnessView(GoodnessView):
    type: str
    sizes: Sequence[SizeView]


class EstimatesView(GoodnessView):
    """Of all types together, and of each; of the last tasks alone."""

    types: Sequence[TypeGoodnessView]


class SavedView(TypedDict):
    """Of one tier, at the prices of the table."""

    tier: ModelTier
    models: Sequence[str]
    tokens: Annotated[int, Meta(description="of all kinds, those from caches included")]
    cost_usd: Usd
    middle_usd: Annotated[str, Meta(description="what the same tokens would have cost in the middle tier")]
    saved_usd: Annotated[str, Meta(description="the difference; negative for a more expensive tier")]


class UnknownView(TypedDict):
    """A model without a price, or of an unknown family."""

    model: str
    tokens: int


class SavingsView(TypedDict):
    tiers: Sequence[SavedView]
    cost_usd: Usd
    middle_usd: Usd
    saved_usd: Annotated[str, Meta(description="dollars; negative where routing cost more than it saved")]
    saved: Annotated[float | None, Meta(description="the share of `middle_usd`; null where nothing was used")]
    unknown: Sequence[UnknownView]

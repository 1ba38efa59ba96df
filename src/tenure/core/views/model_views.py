"""Models: which there are for what, which are in trouble, what estimates were worth, what routing saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

from msgspec import Meta

from tenure.core import tiers
from tenure.core.views.view_values import Instant, Usd

ModelTier = Annotated[str, Meta(extra_json_schema={"enum": list(tiers.TIERS)})]
Share = Annotated[float, Meta(description="of one: 0.2 is 20 %")]
Tokens = Annotated[int, Meta(description="fresh, written and output: each token once")]


class OfferedView(TypedDict):
    """One model of the table; prices are for a million tokens, null where there is none."""

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
    """A model that was rate limited, and has had no success since."""

    model: str
    troubles: Annotated[int, Meta(description="rate limits in a row")]
    cool_until: Instant | None
    tried_by: Annotated[str | None, Meta(description="the task that finds out for all whether it works again")]


class ModelsView(TypedDict):
    """Tiers with their models and prices, and models in trouble."""

    routing: Annotated[bool, Meta(description="do claims tell which model to use?")]
    tiers: Sequence[TierView]
    limited: Sequence[LimitedView]


class SizeView(TypedDict):
    """The last tasks of one size; `is_used`: there are enough for the next to be estimated from them."""

    size: Annotated[str, Meta(description="points of complexity; `?` where nothing says how large a task is")]
    tasks: int
    tokens: Tokens
    cost_usd: Usd | None
    is_used: bool


class GoodnessView(TypedDict):
    """How near estimates came to what tasks took."""

    tasks: Annotated[int, Meta(description="that told what they spent")]
    estimated: Annotated[int, Meta(description="of which had an estimate before")]
    median_error: Share | None
    within: Annotated[float | None, Meta(description="the share of them whose error was at most 20 %")]


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
    saved_usd: Annotated[str, Meta(description="the difference; below nothing for a dearer tier")]


class UnknownView(TypedDict):
    """A model that has no price, or is of no family that is known."""

    model: str
    tokens: int


class SavingsView(TypedDict):
    tiers: Sequence[SavedView]
    cost_usd: Usd
    middle_usd: Usd
    saved_usd: Annotated[str, Meta(description="dollars; below nothing where routing cost more than it saved")]
    saved: Annotated[float | None, Meta(description="the share of `middle_usd`; null where nothing was used")]
    unknown: Sequence[UnknownView]

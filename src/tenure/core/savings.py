"""Savings by routing: actual usage at table prices, compared with the middle tier for all of it.

Both sides use the same table, whatever agents reported as cost: a discount, a subscription or a more expensive cache
on one side alone would look like a saving. Usage of a middle model saves nothing, usage of a top model costs more; the
sum over all tiers is the value of routing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tenure.core.models import MIDDLE, TIERS, Tiers
from tenure.core.prices import Prices, Rate


class Used(NamedTuple):
    """Tokens of one model."""

    model: str
    fresh: int
    cached: int
    written: int
    output: int

    @property
    def tokens(self) -> int:
        return self.fresh + self.cached + self.written + self.output

    def cost(self, rate: Rate) -> int:
        return rate.cost(fresh=self.fresh, cached=self.cached, written=self.written, output=self.output)


class Saved(NamedTuple):
    """Of one tier; nano-dollars."""

    tier: str
    models: tuple[str, ...]
    tokens: int
    cost: int
    in_the_middle: int  # what the same tokens would have cost in the middle tier


class Savings(NamedTuple):
    tiers: tuple[Saved, ...]
    unknown: tuple[Used, ...]  # models without a price, or without a tier

    @property
    def cost(self) -> int:
        return sum(saved.cost for saved in self.tiers)

    @property
    def in_the_middle(self) -> int:
        return sum(saved.in_the_middle for saved in self.tiers)


def savings(used: Iterable[Used], tiers: Tiers, prices: Prices, at: int) -> Savings:
    """At the prices of an instant, microseconds UTC."""
    found: dict[str, list[tuple[Used, int, int]]] = {}
    unknown: list[Used] = []
    for one in used:
        if not one.tokens:
            continue
        place, rate = tiers.place_of(one.model), rate_of(one.model, tiers, prices, at)
        middle = prices.find(tiers.model(place.family, MIDDLE), at) if place else None
        if place is None or rate is None or middle is None:
            unknown.append(one)
            continue
        found.setdefault(place.tier, []).append((one, one.cost(rate), one.cost(middle.rate)))
    return Savings(tuple(_saved(tier, found[tier]) for tier in TIERS if tier in found), tuple(unknown))


def rate_of(model: str, tiers: Tiers, prices: Prices, at: int) -> Rate | None:
    """The price of a model; an agent's alias of a tier has the price of the tier's model."""
    priced = prices.find(model, at)
    if priced is None and (place := tiers.place_of(model)) is not None and tiers.is_alias(model):
        priced = prices.find(tiers.model(place.family, place.tier), at)
    return priced.rate if priced else None


def _saved(tier: str, found: list[tuple[Used, int, int]]) -> Saved:
    return Saved(
        tier, tuple(sorted(one.model for one, _, _ in found)), sum(one.tokens for one, _, _ in found),
        sum(cost for _, cost, _ in found), sum(middle for _, _, middle in found),
    )  # fmt: skip

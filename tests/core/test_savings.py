"""What choosing models by tier has saved, by hand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenure.core.models import TIERS
from tenure.core.prices import Prices
from tenure.core.savings import Used, savings
from tenure.engine.models.tables import read_shipped, tier_table

# Dollars for a million tokens, round enough to be added up in one's head.
PRICES = Prices(
    read_shipped("prices.json"),
    {
        "claude-haiku-5-5": {"fresh": "1", "cached": "0.1", "output": "5"},
        "claude-sonnet-5-5": {"fresh": "3", "cached": "0.3", "written": "4", "output": "15"},
        "claude-opus-5-5": {"fresh": "5", "cached": "0.5", "output": "25"},
    },
)
DOLLAR, MILLION = 10**9, 10**6
COUNTS = st.integers(0, 10**9)
USED = st.builds(
    Used, st.sampled_from(["haiku", "claude-sonnet-5-5", "opus", "gpt-5", "kimi"]), COUNTS, COUNTS, COUNTS, COUNTS
)


def test_each_tier_against_the_same_tokens_in_the_middle() -> None:
    found = savings(
        [
            Used("haiku", 4 * MILLION, 10 * MILLION, 0, MILLION),  # 4 + 1 + 5; in the middle 12 + 3 + 15
            Used("claude-sonnet-5-5", MILLION, 0, MILLION, MILLION),  # 3 + 4 + 15, either way
            Used("claude-opus-5-5", MILLION, 0, 0, MILLION),  # 5 + 25; in the middle 3 + 15
            Used("nobodys-model", 7, 0, 0, 0),
        ],
        tier_table(), PRICES, 0,
    )  # fmt: skip
    assert [(t.tier, t.cost // DOLLAR, t.in_the_middle // DOLLAR) for t in found.tiers] == [
        ("small", 10, 30), ("middle", 22, 22), ("top", 30, 18),
    ]  # fmt: skip
    assert (found.cost, found.in_the_middle) == (62 * DOLLAR, 70 * DOLLAR)
    assert [one.model for one in found.unknown] == ["nobodys-model"]


def test_models_of_one_tier_are_added_up_and_a_price_is_a_models_own() -> None:
    found = savings([Used(n, MILLION, 0, 0, 0) for n in ("haiku", "claude-3-haiku")], tier_table(), PRICES, 0)
    (small,) = found.tiers
    assert (small.models, small.tokens) == (("claude-3-haiku", "haiku"), 2 * MILLION)
    assert small.cost == DOLLAR + DOLLAR // 4


@given(st.lists(USED, max_size=8))
def test_nothing_is_lost_and_the_middle_saves_nothing(used: list[Used]) -> None:
    found = savings(used, tier_table(), PRICES, 1_785_000_000_000_000)
    counted = sum(t.tokens for t in found.tiers) + sum(one.tokens for one in found.unknown)
    assert counted == sum(one.tokens for one in used)
    assert [t.tier for t in found.tiers] == [t for t in TIERS if t in {f.tier for f in found.tiers}]
    for tier in found.tiers:
        if tier.models == ("claude-sonnet-5-5",):
            assert tier.cost == tier.in_the_middle

"""Prices: exact sums, one name for one price, and no price for what is unknown."""

import json
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenure
from tenure.core.errors import InvalidInput
from tenure.core.prices import BARE, Prices, Rate

SHIPPED = (Path(tenure.__file__).parent / "data" / "prices.json").read_bytes()
LATER = int(datetime(2026, 11, 15, tzinfo=UTC).timestamp()) * 1_000_000
COUNTS = st.integers(0, 10**12)
AMOUNTS = st.integers(0, 10**12)


@cache
def shipped() -> Prices:
    return Prices(SHIPPED)


def table(*models: dict[str, Any], provider: str = "openai") -> bytes:
    return json.dumps({"source": "a test", "providers": [{"id": provider, "models": models}]}).encode()


def model(id: str, *rates: dict[str, Any], match: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"id": id, "match": match or {"equals": id}, "rates": rates}


# --- sums ---


@given(st.lists(AMOUNTS, min_size=4, max_size=4), st.lists(COUNTS, min_size=4, max_size=4))
def test_a_cost_is_the_exact_sum_rounded_once(amounts: list[int], counts: list[int]) -> None:
    exact = sum(Decimal(a) * n for a, n in zip(amounts, counts, strict=True)) / Decimal(1_000_000)
    fresh, cached, written, output = counts
    cost = Rate(*amounts).cost(fresh=fresh, cached=cached, written=written, output=output)
    assert cost == int(exact.quantize(Decimal(1), ROUND_HALF_UP))


def test_a_cost_in_dollars() -> None:
    rate = Rate(3_000_000_000, 300_000_000, 3_750_000_000, 15_000_000_000)
    assert rate.cost(fresh=1_000_000) == 3_000_000_000
    assert rate.cost(fresh=1, cached=10, written=2, output=100) == 3_000 + 3_000 + 7_500 + 1_500_000
    assert rate.cost() == 0


# --- the shipped table ---


@pytest.mark.parametrize(
    ("name", "provider", "model", "fresh", "output"),
    [
        ("claude-sonnet-4-5-20250929", "anthropic", "claude-sonnet-4-5", "3", "15"),
        ("claude-opus-4-6[1m]", "anthropic", "claude-opus-4-6", "5", "25"),
        ("anthropic/claude-opus-4-6", "anthropic", "claude-opus-4-6", "5", "25"),
        ("Claude-3-5-Haiku-latest", "anthropic", "claude-3-5-haiku-latest", "0.8", "4"),
        ("gpt-5.6[1m]", "openai", "gpt-5.6-sol", "4", "20"),
        ("gpt-4o-mini", "openai", "gpt-4o-mini", "0.15", "0.6"),
        ("openai/gpt-5.6-sol", "openai", "gpt-5.6-sol", "4", "20"),
        ("gemini-2.5-pro", "google", "gemini-2.5-pro", "1.25", "10"),
        ("models/gemini-2.5-pro", "google", "gemini-2.5-pro", "1.25", "10"),
        ("us.anthropic.claude-opus-4-6-v1:0", "aws", "regional.anthropic.claude-opus-4-6-v1:0", "5.5", "27.5"),
    ],
)
def test_models_are_found_by_the_names_that_agents_give(
    name: str, provider: str, model: str, fresh: str, output: str
) -> None:
    found = shipped().find(name, LATER)
    assert found is not None
    assert (found.provider, found.model) == (provider, model)
    assert (found.rate.fresh, found.rate.output) == (int(Decimal(fresh) * 10**9), int(Decimal(output) * 10**9))


@pytest.mark.parametrize("name", ["", " ", "gpt", "my-model", "scripted", "x" * 300, "/", ":", "openai/", "[1m]", "\0"])
def test_an_unknown_model_has_no_price(name: str) -> None:
    assert shipped().find(name, LATER) is None


@given(st.text(max_size=40))
def test_any_name_is_found_or_unknown(name: str) -> None:
    shipped().find(name, LATER)


def test_every_price_of_the_table_is_a_sane_one() -> None:
    parsed = json.loads(SHIPPED)
    assert "genai-prices" in parsed["source"]
    providers = [provider["id"] for provider in parsed["providers"]]
    assert len(set(providers)) == len(providers)
    assert set(BARE) <= set(providers)
    for provider in parsed["providers"]:
        for each in provider["models"]:
            assert each["rates"], each["id"]
            assert [r.get("since", "") for r in each["rates"]] == sorted({r.get("since", "") for r in each["rates"]})
            for rate in each["rates"]:
                for kind in ("fresh", "cached", "written", "output"):
                    assert isinstance(rate.get(kind, 0), int)
                    assert 0 <= rate.get(kind, 0) <= 2000 * 10**9, (provider["id"], each["id"])


def test_a_model_is_found_by_its_own_name_at_its_provider() -> None:
    """Names that stand for a group (`regional.…`) aside, and those that an earlier model of the list covers."""
    prices = shipped()
    named = [(provider, id) for provider, id in prices.models() if provider in ("anthropic", "openai", "google")]
    found = [prices.find(f"{provider}/{id}", LATER) for provider, id in named]
    assert sum(each is not None for each in found) > 0.95 * len(named)


# --- rules ---


def test_prices_change_with_the_day() -> None:
    prices = Prices(
        table(model("m", {"fresh": 1, "output": 2}, {"fresh": 3, "output": 4, "about": True, "since": "2026-06-01"}))
    )
    before = int(datetime(2026, 5, 31, 23, 59, tzinfo=UTC).timestamp()) * 1_000_000
    assert prices.find("m", before) == ("openai", "m", (1, 1, 1, 2, False))
    assert prices.find("m", before + 60_000_000) == ("openai", "m", (3, 3, 3, 4, True))
    assert Prices(table(model("m", {"fresh": 1, "since": "2026-06-01"}))).find("m", before) is None


@pytest.mark.parametrize(
    ("match", "fits", "does_not"),
    [
        ({"equals": "abc"}, "abc", "abcd"),
        ({"starts": "ab"}, "abc", "xab"),
        ({"ends": "bc"}, "abc", "abcd"),
        ({"contains": "b"}, "abc", "ac"),
        ({"regex": "^a\\d+$"}, "a12", "a1b"),
        ({"any": [{"equals": "x"}, {"equals": "y"}]}, "y", "z"),
        ({"all": [{"starts": "a"}, {"ends": "z"}]}, "abz", "abc"),
        ({"unheard-of": "a"}, None, "a"),
    ],
)
def test_what_a_match_means(match: dict[str, Any], fits: str | None, does_not: str) -> None:
    prices = Prices(table(model("m", {"fresh": 1}, match=match)))
    assert prices.find(does_not, LATER) is None
    if fits is not None:
        assert prices.find(fits, LATER) is not None


# --- a user's own ---


def test_a_users_prices_come_first_and_the_longest_beginning_wins() -> None:
    own = {
        "gpt-4o": {"fresh": "1", "output": "2"},
        "gpt-*": {"fresh": "0.3", "output": "4", "cached": "0.03", "written": "0.5"},
        "gpt-5*": {"fresh": "5", "output": "6"},
        "My-Model": {"fresh": "0", "output": "0"},
    }
    prices = Prices(SHIPPED, own)
    assert prices.find("gpt-4o", LATER) == ("own", "gpt-4o", (10**9, 10**9, 10**9, 2 * 10**9, False))
    assert prices.find("gpt-x", LATER) == ("own", "gpt-*", (300_000_000, 30_000_000, 500_000_000, 4 * 10**9, False))
    found = prices.find("gpt-5.6", LATER)
    assert found is not None
    assert found.model == "gpt-5*"
    assert prices.find("my-model", LATER) is not None
    untouched = prices.find("claude-opus-4-6", LATER)
    assert untouched is not None
    assert untouched.provider == "anthropic"


@pytest.mark.parametrize(
    "given",
    [{}, {"fresh": "1"}, {"fresh": 1.5, "output": "2"}, {"fresh": "1", "output": "x"}, {"fresh": "1", "output": "-2"},
     {"fresh": "1", "output": "2", "input": "3"}, "3", None, {"fresh": "1", "output": "1e9"}],
)  # fmt: skip
def test_prices_that_cannot_be_read_are_refused_by_their_place(given: Any) -> None:
    with pytest.raises(InvalidInput, match=r"prices\.mine"):
        Prices(SHIPPED, {"mine": given})

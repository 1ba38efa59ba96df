"""Tiers as data: what ships is whole and priced, a user's own values are laid over it, names are understood."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agents.runner.clis import KNOWN, cli_for
from tenure.core.errors import InvalidInput
from tenure.core.models import TIERS, Rules, TierPosition, Tiers, known_as
from tenure.core.prices import KINDS
from tenure.core.tiers_shape import checked
from tenure.engine.models.tables import price_table, read_shipped, tier_table

NOW = 1_785_000_000_000_000


@pytest.fixture
def tiers() -> Tiers:
    return tier_table()


def own(**values: object) -> Tiers:
    return Tiers(read_shipped("tiers.json"), values)


def test_what_ships_has_the_shape_that_is_asked_of_users() -> None:
    whole = msgspec.json.decode(read_shipped("tiers.json"))
    assert checked(whole) == whole
    assert tuple(whole["tiers"]) == TIERS


def test_every_model_has_a_price_and_its_place_and_each_tier_is_dearer_than_the_last(tiers: Tiers) -> None:
    prices = price_table()
    families: dict[str, list[tuple[int, int]]] = {}
    for offered in tiers.offered():
        priced = prices.find(offered.model, NOW)
        assert priced is not None, offered.model
        assert (priced.provider, priced.model.lower()) == (offered.family, offered.model)
        assert tiers.place_of(offered.model) == TierPosition(offered.family, offered.tier)
        families.setdefault(offered.family, []).append((priced.rate.fresh, priced.rate.output))
    for family, rates in families.items():
        assert rates == sorted(set(rates)), family


def test_agents_that_can_be_started_can_be_told_the_models_of_their_family(tiers: Tiers) -> None:
    for name in KNOWN:
        family = tiers.family_of(name)
        if family is not None:
            cli, _ = cli_for(name)
            assert all(cli.takes(tiers.model(family, tier, name)) for tier in TIERS), name


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("claude-haiku-4-5-20251001", ("anthropic", "small")),
        ("us.anthropic.claude-opus-4-6-20260101-v1:0", ("anthropic", "top")),
        ("anthropic/claude-sonnet-4-5[1m]", ("anthropic", "middle")),
        ("sonnet", ("anthropic", "middle")),
        ("gpt-5.1-codex-mini", ("openai", "small")),
        ("gpt-5", ("openai", "middle")),
        ("gpt-5.5-pro", ("openai", "top")),
        ("models/gemini-2.5-flash-lite", ("google", "small")),
        ("gemini-2.5-pro", ("google", "top")),
        ("kimi-k2", None),
        ("", None),
    ],
)
def test_models_are_placed_by_any_of_their_names(tiers: Tiers, name: str, place: tuple[str, str] | None) -> None:
    assert tiers.place_of(name) == (place and TierPosition(*place))


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Claude-Opus-4-6", "claude-opus-4-6"),
        ("anthropic/claude-opus-4-6[1m]", "claude-opus-4-6"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-opus-4@20250514", "claude-opus-4"),
        ("gpt-4o-2024-05-13", "gpt-4o"),
        ("gpt-4.1", "gpt-4.1"),
        ("o3", "o3"),
    ],
)
def test_a_model_is_known_without_host_date_and_remark(name: str, known: str) -> None:
    assert known_as(name) == known
    assert known_as(known) == known


def test_an_alias_stands_for_every_model_of_its_tier_and_a_name_for_itself(tiers: Tiers) -> None:
    assert tiers.is_same("haiku", "claude-haiku-4-5-20251001")
    assert tiers.is_same("claude-opus-5", "anthropic/claude-opus-5-20260101")
    assert not tiers.is_same("claude-opus-5", "claude-opus-4-6")
    assert not tiers.is_same("haiku", "claude-opus-5")
    assert not tiers.is_same("kimi-k2", "haiku")


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_names_can_be_compared(one: str, other: str) -> None:
    tiers = tier_table()
    assert tiers.is_same(one, one)
    assert tiers.is_same(one, other) == tiers.is_same(other, one)
    tiers.place_of(one)


def test_a_users_values_are_laid_over_key_by_key() -> None:
    ours = {"begins": ["ours"], "agents": ["bot"], **{t: {"model": f"ours-{t}"} for t in TIERS}}
    tiers = own(
        families={"anthropic": {"small": {"model": "claude-haiku-4-5"}}, "ours": ours}, rules={"boilerplate": []}
    )
    assert tiers.model("anthropic", "small") == "claude-haiku-4-5"
    assert tiers.model("anthropic", "small", "claude") == "haiku"
    assert tiers.model("anthropic", "middle") == tier_table().model("anthropic", "middle")
    assert tiers.model(str(tiers.family_of("bot")), "top") == "ours-top"
    assert tiers.rules == Rules(8, 10_000, frozenset())


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"rulez": {}}, "rulez"),
        ({"rules": {"small_below_tokens": "many"}}, "small_below_tokens"),
        ({"families": {"ours": {"begins": ["ours"]}}}, "small"),
        ({"families": {"anthropic": {"small": {"model": ""}}}}, "families"),
        ({"split": {"fresh": 10}}, "100"),
        ({"tiers": {"huge": {}}}, "huge"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(values: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        own(**values)
    assert says in refused.value.message
    assert refused.value.hint


def test_the_split_is_of_kinds_that_have_a_price(tiers: Tiers) -> None:
    assert set(tiers.split) <= set(KINDS)
    assert sum(tiers.split.values()) == 100

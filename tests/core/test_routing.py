"""Which model an attempt should use."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.models import TIERS, Route, Tiers, User, Wanted, route, tier_for
from tenure.core.records import replace
from tenure.engine.models.tables import tier_table

TABLE: Tiers = tier_table()
CLAUDE, CODEX, NOBODY = User("claude"), User("codex"), User()
NAMES = ("haiku", "sonnet", "opus", "claude-opus-4-6", "gpt-5", "gpt-6-luna", "gemini-2.5-pro", "our-own")


def chosen(found: Route) -> tuple[str | None, str | None]:
    return found.model, found.tier


def only(*names: str) -> Callable[[str], bool]:
    return lambda name: name in names


@pytest.mark.parametrize(
    ("wanted", "tier"),
    [
        (Wanted(50, "code"), "middle"),
        (Wanted(9, "boilerplate", complexity=1), "top"),
        (Wanted(10, "code"), "middle"),
        (Wanted(50, "code", complexity=8), "middle"),
        (Wanted(50, "code", complexity=8.5), "top"),
        (Wanted(50, "code", ("boilerplate",), complexity=9), "top"),
        (Wanted(50, "boilerplate", tokens=10**6), "small"),
        (Wanted(50, "code", ("ui", "typo"), tokens=10**6), "small"),
        (Wanted(50, "code", tokens=9_999), "small"),
        (Wanted(50, "code", tokens=10_000), "middle"),
    ],
)
def test_the_default_rule(wanted: Wanted, tier: str) -> None:
    assert tier_for(TABLE, wanted)[0] == tier
    assert chosen(route(TABLE, wanted, NOBODY)) == (None, tier)


def test_the_family_follows_from_the_agents_type_in_its_own_words() -> None:
    small = Wanted(50, "boilerplate")
    assert [route(TABLE, small, User(t)).model for t in ("claude", "codex", "gemini", "opencode")] == [
        "haiku", "gpt-6-luna", "gemini-3.5-flash-lite", None,
    ]  # fmt: skip


def test_registered_models_go_before_the_type() -> None:
    user = User("claude", ("gpt-5-mini", "gpt-5"))
    assert chosen(route(TABLE, Wanted(50, "boilerplate"), user)) == ("gpt-5-mini", "small")
    assert chosen(route(TABLE, Wanted(50, "code"), user)) == ("gpt-5", "middle")
    found = route(TABLE, Wanted(0, "code"), user)
    assert chosen(found) == ("gpt-5", "middle")
    assert "closest" in found.why
    assert chosen(route(TABLE, Wanted(50, "code"), User("generic", ("our-own",)))) == ("our-own", None)


def test_preferences_come_first_and_fallbacks_from_the_second_failure_on() -> None:
    wanted = Wanted(0, "code", models=("sonnet", "haiku"), fallbacks=("opus",))
    assert [route(TABLE, replace(wanted, failed=n), CLAUDE).model for n in range(4)] == [
        "sonnet", "sonnet", "opus", "opus",
    ]  # fmt: skip
    assert route(TABLE, replace(wanted, failed=5, fallbacks=()), CLAUDE).model == "sonnet"
    assert route(TABLE, replace(wanted, failed=2, models=()), CLAUDE).model == "opus"


def test_an_agent_gets_the_first_that_it_can_use_else_one_by_the_rules() -> None:
    wanted = Wanted(50, "code", models=("gpt-5", "claude-opus-4-6"))
    assert route(TABLE, wanted, CLAUDE).model == "claude-opus-4-6"
    assert route(TABLE, wanted, CODEX).model == "gpt-5"
    assert route(TABLE, wanted, NOBODY).model == "gpt-5"
    assert chosen(route(TABLE, replace(wanted, models=("gpt-5",)), CLAUDE)) == ("sonnet", "middle")
    assert route(TABLE, replace(wanted, models=("our-own",)), CLAUDE).model == "our-own"


def test_a_preferred_model_that_cools_down_gives_way_to_the_next_then_to_fallbacks() -> None:
    wanted = Wanted(50, "code", models=("sonnet", "haiku"), fallbacks=("opus",))
    found = route(TABLE, wanted, CLAUDE, only("sonnet"))
    assert found == Route("haiku", "small", "sonnet is rate limited; it is the task's next preference")
    assert route(TABLE, wanted, CLAUDE, only("sonnet", "haiku")).model == "opus"
    waits = route(TABLE, wanted, CLAUDE, only("sonnet", "haiku", "opus"))
    assert (waits.model, waits.waits) == ("sonnet", True)
    assert route(TABLE, replace(wanted, failed=2), CLAUDE, only("opus")).waits


def test_by_the_rules_a_dearer_one_takes_the_place_and_all_cooling_waits() -> None:
    small = Wanted(50, "boilerplate")
    assert chosen(route(TABLE, small, CLAUDE, only("haiku"))) == ("sonnet", "middle")
    assert "haiku is rate limited" in route(TABLE, small, CLAUDE, only("haiku")).why
    assert route(TABLE, small, CLAUDE, only("haiku", "sonnet")).model == "opus"
    assert route(TABLE, Wanted(0, "code"), CLAUDE, only("opus")).model == "sonnet"
    assert route(TABLE, small, CLAUDE, lambda _: True).waits


WANTED = st.builds(
    Wanted,
    st.integers(0, 100),
    st.sampled_from(["code", "boilerplate", "docs"]),
    st.lists(st.sampled_from(["typo", "ui"]), max_size=2).map(tuple),
    st.none() | st.floats(0.1, 20),
    st.none() | st.integers(1, 50_000),
    st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple),
    st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
    st.integers(0, 4),
)
USERS = st.builds(
    User,
    st.sampled_from(["claude", "codex", "gemini", "opencode", "generic"]),
    st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple),
)


@given(WANTED, USERS, st.frozensets(st.sampled_from([*NAMES, "gpt-6.1-terra", "gpt-6.1-sol"])))
def test_what_is_told_can_be_used_now_or_nothing_can(wanted: Wanted, user: User, limited: frozenset[str]) -> None:
    def is_limited(name: str) -> bool:
        return any(TABLE.is_same(name, other) for other in limited)

    found = route(TABLE, wanted, user, is_limited)
    assert found.why
    if found.model is None:
        assert not user.models
        assert not found.waits
        return
    assert found.waits == is_limited(found.model)
    if user.models:
        assert any(TABLE.is_same(found.model, own) for own in user.models)
    elif (family := TABLE.family_of(user.type)) is not None:
        place = TABLE.place_of(found.model)
        assert place is None or place.family == family


@given(WANTED, USERS)
def test_only_trouble_keeps_anybody_waiting(wanted: Wanted, user: User) -> None:
    found = route(TABLE, wanted, user)
    assert not found.waits
    assert found.tier in (*TIERS, None)


@given(WANTED, USERS, st.frozensets(st.sampled_from(NAMES)))
def test_whether_all_cools_down_does_not_depend_on_a_tasks_size(
    wanted: Wanted, user: User, limited: frozenset[str]
) -> None:
    sizeless = replace(wanted, complexity=None, tokens=None, tags=(), type="code", priority=50)
    asked = [route(TABLE, each, user, limited.__contains__).waits for each in (wanted, sizeless)]
    assert asked[0] == asked[1]

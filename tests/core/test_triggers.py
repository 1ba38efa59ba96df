"""Filters and bounds of triggers, and signatures, as laws."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import signatures
from tenure.core.errors import InvalidInput
from tenure.core.records import Trigger
from tenure.core.triggers import HOUR, check_filter, counted, depth_in, fits, is_spent, left_of_hour

SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "ab", "b*", "1", "true"])
CONDITIONS = (
    SCALARS
    | st.builds(lambda v: {"in": v}, st.lists(SCALARS, max_size=3))
    | st.builds(lambda k, v: {k: v}, st.sampled_from(["prefix", "glob"]), st.sampled_from(["", "a", "a*", "[", "?"]))
)
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.just("a"), SCALARS)
DAY = 24 * HOUR


def trigger(**fields: Any) -> Trigger:
    given = {
        "project": "p",
        "id": "t",
        "kind": "task.*",
        "filter": {},
        "template": {},
        "created_at": 0,
        "changed_at": 0,
    }
    return Trigger(**{**given, **fields})


@given(wanted=CONDITIONS, value=VALUES)
def test_every_filter_that_is_taken_gives_an_answer_and_not_is_its_opposite(wanted: Any, value: Any) -> None:
    where = check_filter({"event.x": wanted})
    values = {"event": {"x": value}}
    assert fits(where, values) != fits(check_filter({"event.x": {"not": wanted}}), values)


@given(value=SCALARS)
def test_a_value_equals_itself_and_is_in_a_list_with_it(value: Any) -> None:
    values = {"event": {"x": value, "xs": [0.5, value]}}
    for where in ({"event.x": value}, {"event.x": {"in": [value]}}, {"event.xs": value}):
        assert fits(check_filter(where), values)


def test_true_is_not_one() -> None:
    assert not fits({"event.x": 1}, {"event": {"x": True}})
    assert not fits({"event.x": {"in": [0]}}, {"event": {"x": False}})


def test_what_is_not_there_is_null() -> None:
    assert fits({"event.x.y": None}, {"event": {}})
    assert not fits({"event.x": ""}, {"event": {}})


@given(steps=st.lists(st.integers(0, HOUR), max_size=60), most=st.integers(1, 5))
def test_no_hour_that_it_counts_has_more_than_the_most(steps: list[int], most: int) -> None:
    row, now, fired = trigger(most=most), DAY, []
    for step in steps:
        now += step
        if is_spent(row, now):
            assert 0 < left_of_hour(row, now) <= HOUR
            assert not is_spent(row, now + left_of_hour(row, now))
        else:
            row = counted(row, now)
            fired.append((row.hour_at, now))
    for hour in {hour for hour, _ in fired}:
        assert sum(1 for began, _ in fired if began == hour) <= most


@pytest.mark.parametrize("metadata", [{}, {"trigger": 1}, {"trigger": {"depth": "9"}}, {"trigger": {"depth": True}},
                                      {"trigger": {"depth": -4}}])  # fmt: skip
def test_metadata_that_says_nothing_of_depth_is_none(metadata: dict[str, Any]) -> None:
    assert depth_in(metadata) == 0


# --- signatures ---------------------------------------------------------------------------------------------


NOW = 1_800_000_000_000_000
KEYS = st.binary(min_size=24, max_size=64)


@given(form=st.sampled_from(signatures.FORMS), key=KEYS, body=st.binary(max_size=50), other=st.binary(max_size=50))
def test_a_signature_is_good_for_its_key_and_body_alone(form: str, key: bytes, body: bytes, other: bytes) -> None:
    headers = signatures.signed_headers(form, key, "id-1", body, NOW)
    assert signatures.verified(form, (b"another key", key), headers, body, NOW) is not None
    assert signatures.verified(form, (key[::-1] + b"x",), headers, body, NOW) is None
    assert signatures.verified(form, (), headers, body, NOW) is None
    assert (signatures.verified(form, (key,), headers, other, NOW) is not None) == (other == body)


@given(form=st.sampled_from(signatures.FORMS), headers=st.dictionaries(st.sampled_from(signatures.HEADERS), st.text()))
def test_whatever_the_headers_say_it_is_an_answer(form: str, headers: dict[str, str]) -> None:
    assert signatures.verified(form, (bytes(24),), headers, b"{}", NOW) is None


@given(form=st.sampled_from(signatures.FORMS), random=st.binary(min_size=32, max_size=32))
def test_a_secret_is_spelled_so_that_it_is_understood(form: str, random: bytes) -> None:
    key = signatures.key_for(form, None, lambda _: random)
    assert signatures.key_of(form, signatures.spelled(form, key)) == key


def test_several_signatures_may_be_given_as_by_a_sender_that_rotates() -> None:
    headers = signatures.signed_headers("standard", bytes(24), "m", b"{}", NOW)
    headers["webhook-signature"] = f"v1,AAAA v1a,BBBB {headers['webhook-signature']}"
    assert signatures.verified("standard", (bytes(24),), headers, b"{}", NOW) is not None


def test_filters_are_bounded() -> None:
    with pytest.raises(InvalidInput):
        check_filter({"event.x": "y" * 501})

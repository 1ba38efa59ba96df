"""Durations and instants as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.errors import InvalidInput
from tenure.core.written_times import parse_duration, parse_instant, spell_duration, spell_instant

NOW = 1_700_000_000_000_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("2h", 7200), ("1h30m", 5400), ("1d 12h", 129_600), ("1.5h", 5400), ("10min", 600),
        ("2w", 1_209_600), ("250ms", 0.25), ("0s", 0), ("0.000001s", 1e-6),
    ],
)  # fmt: skip
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == round(seconds * 1e6)


@pytest.mark.parametrize("text", ["", "5", "h", "2x", "-2h", "2h!", "1 hour", "2026-03-01T10:00:00Z", "1e3s"])
def test_other_texts_are_no_durations(text: str) -> None:
    assert parse_duration(text) is None


@given(st.integers(0, 10**15))
def test_a_spelled_duration_is_read_as_the_same(microseconds: int) -> None:
    assert parse_duration(spell_duration(microseconds)) == microseconds


@given(st.integers(0, (1 << 53) - 1))
def test_a_spelled_instant_is_read_as_the_same(instant: int) -> None:
    assert parse_instant(spell_instant(instant), "at", NOW) == (instant, None)


def test_instants_have_a_zone_or_count_from_now() -> None:
    assert parse_instant("2026-03-01T18:00:00Z", "at", NOW).instant == 1_772_388_000_000_000
    assert parse_instant("2026-03-01 19:00+01:00", "at", NOW).instant == 1_772_388_000_000_000
    assert parse_instant("2026-03-01t13:00:00.25-0500", "at", NOW).instant == 1_772_388_000_250_000
    assert parse_instant("3d", "at", NOW) == (NOW + 3 * 86_400_000_000, 3 * 86_400_000_000)
    assert parse_instant("in 2h", "at", NOW) == parse_instant("+2h", "at", NOW)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("2026-03-01", "2026-03-01T18:00:00Z"), ("2026-03-01T18:00:00", "Z for UTC"), ("tomorrow", "3d"),
        ("2026-13-01T00:00:00Z", ""), ("2026-02-30T00:00:00Z", ""), ("2026-03-01T25:00:00Z", ""), ("99999w", ""),
        ("2026-03-01T18:00:00+99:99", ""),
    ],
)  # fmt: skip
def test_a_time_that_could_be_several_is_refused_with_the_way_on(text: str, hint: str) -> None:
    with pytest.raises(InvalidInput, match="deadline") as error:
        parse_instant(text, "deadline", NOW)
    assert hint in (error.value.hint or "")

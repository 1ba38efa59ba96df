from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.errors import InvalidInput
from tenure.core.money import MOST_USD, NANO, parse_usd, usd_text


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("0", 0),
        ("1", NANO),
        ("0.1", 100_000_000),
        ("1.25", 1_250_000_000),
        ("0.000000001", 1),
        ("0.0000000004", 0),
        ("0.0000000005", 1),
        ("1.2e-05", 12_000),
        ("1E+2", 100 * NANO),
        ("5e-11", 0),
        ("100000", MOST_USD * NANO),
        ("0.1234567890123456", 123_456_789),
    ],
)
def test_an_amount_is_read_to_the_nano_dollar(text: str, nano: int) -> None:
    assert parse_usd(text) == nano


@pytest.mark.parametrize(
    "text",
    ["", " ", "-1", "+1", "1,25", "$1", "1 ", " 1", ".5", "5.", "nan", "inf", "1e9999", "0x1", "1_000", "١", "1\n"],
)
def test_what_is_no_amount_is_refused_and_told_how_to_write_one(text: str) -> None:
    with pytest.raises(InvalidInput, match="not an amount of dollars") as error:
        parse_usd(text)
    assert "0.0123" in (error.value.hint or "")


@pytest.mark.parametrize("text", ["100000.000000001", "1e999", "9" * 20])
def test_an_amount_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="at most 100000 dollars"):
        parse_usd(text)


@pytest.mark.parametrize(
    ("nano", "text"),
    [
        (0, "0.00"),
        (1, "0.000000001"),
        (NANO, "1.00"),
        (1_250_000_000, "1.25"),
        (12_000, "0.000012"),
        (3_100_000_000, "3.10"),
    ],
)
def test_money_is_shown_exactly_with_cents_at_least(nano: int, text: str) -> None:
    assert usd_text(nano) == text


@given(st.integers(0, MOST_USD * NANO))
def test_what_is_shown_reads_back_as_the_same(nano: int) -> None:
    assert parse_usd(usd_text(nano)) == nano


@given(st.floats(0, MOST_USD))
def test_a_float_as_python_writes_it_is_read_to_the_nearest_nano_dollar(number: float) -> None:
    exact = Decimal(str(number)) * NANO
    assert abs(parse_usd(str(number)) - exact) <= Decimal("0.5")

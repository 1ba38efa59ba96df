"""JSON from outside that others may read differently is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.decoders import check_json
from tenure.core.errors import InvalidInput

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_once_passes(value: Any) -> None:
    check_json(json.dumps(value), "the body")


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '[{"b":{"a":1,"b":2,"a":3}}]', '{"a":1,"\\u0061":2}', '{"":1,"":2}'])
def test_a_key_that_stands_twice_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput, match="duplicate key"):
        check_json(text.encode(), "the body")


@pytest.mark.parametrize("digits", ["1" * 21, "1" * 400, "9" * 1_000_000, str(2**64), str(-(2**63) - 1)])
def test_an_integer_beyond_64_bits_is_refused_before_it_is_read(digits: str) -> None:
    for text in (digits, f'{{"n": [{digits}]}}'):
        with pytest.raises(InvalidInput, match="does not fit 64 bits"):
            check_json(text, "the body")


@pytest.mark.parametrize("text", ["", "{", "nonsense", "[" * 100_000, b"\xff"])
def test_what_is_not_json_is_left_to_who_decodes_it(text: str | bytes) -> None:
    check_json(text, "the body")

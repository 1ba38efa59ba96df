"""A caller's trace goes on; what is no trace is as good as none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.server.requests import Trace, trace_of

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
ID = re.compile(r"[0-9a-f]{32}")


def token(size: int) -> bytes:
    return b"\xab" * size


def test_a_trace_goes_on_with_a_part_of_its_own() -> None:
    trace = trace_of(f"00-{TRACE}-{SPAN}-01".encode(), token)
    assert trace == Trace(TRACE, "ab" * 8, "01")
    assert trace.header == f"00-{TRACE}-{'ab' * 8}-01".encode()


def test_without_a_header_a_trace_begins() -> None:
    assert trace_of(None, token) == Trace("ab" * 16, "ab" * 8, "00")


def test_a_later_version_may_say_more() -> None:
    assert trace_of(f"cc-{TRACE}-{SPAN}-01-what-is-to-come".encode(), token).id == TRACE


def test_only_the_flag_that_is_known_goes_on() -> None:
    assert trace_of(f"00-{TRACE}-{SPAN}-ff".encode(), token).flags == "01"
    assert trace_of(f"00-{TRACE}-{SPAN}-fe".encode(), token).flags == "00"


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "00",
        TRACE,
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f" 00-{TRACE}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"cc-{TRACE}-{SPAN}-01-{'x' * 600}",
    ],
)
def test_a_bad_header_is_as_good_as_none(bad: str) -> None:
    assert trace_of(bad.encode(), token).id == "ab" * 16


@given(st.binary(max_size=100))
def test_no_header_does_harm(header: bytes) -> None:
    trace = trace_of(header, token)
    assert ID.fullmatch(trace.id)
    assert trace_of(trace.header, token).id == trace.id


def test_an_id_is_never_all_zeros() -> None:
    trace = trace_of(None, bytes)
    assert int(trace.id, 16) > 0
    assert int(trace.span, 16) > 0

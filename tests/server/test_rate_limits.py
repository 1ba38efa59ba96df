"""Buckets of tokens, on a clock that is moved by hand."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core.errors import RateLimited
from tenure.server.rate_limits import Buckets, caller_at, limited
from tenure.server.responses import of_error


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_then_a_steady_rate() -> None:
    clock = Clock()
    buckets = Buckets(2.0, 3.0, monotonic=clock)
    for _ in range(3):
        buckets.take("a")
    with pytest.raises(RateLimited) as told:
        buckets.take("a")
    assert told.value.retry_after == pytest.approx(0.5)
    assert buckets.wait_of("a") == pytest.approx(0.5)
    buckets.take("b")
    clock.now = 0.5
    buckets.take("a")
    clock.now = 100.0
    assert buckets.wait_of("a", 3.0) == 0.0
    assert buckets.wait_of("a", 4.0) > 0  # it never holds more than the burst


def test_nought_limits_nothing() -> None:
    buckets = Buckets(0.0, 0.0)
    for _ in range(1000):
        buckets.take("a")
    assert buckets.wait_of("a") == 0.0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.floats(0, 3)), max_size=200))
def test_no_more_is_given_than_the_rate_allows_and_memory_is_bounded(steps: list[tuple[str, float]]) -> None:
    clock = Clock()
    buckets = Buckets(1.0, 5.0, most=4, monotonic=clock)
    whole = Buckets(1.0, 5.0, monotonic=clock)
    given_to_a = 0
    for caller, pause in steps:
        clock.now += pause
        try:
            whole.take(caller)
            given_to_a += caller == "a"
        except RateLimited:
            pass
        with suppress(RateLimited):
            buckets.take(caller)
        assert len(buckets._left) <= 4
    assert given_to_a <= 5.0 + clock.now + 1e-6


def test_the_addresses_of_one_ipv6_network_are_one_caller() -> None:
    assert caller_at("2001:db8:1:2:3:4:5:6") == caller_at("2001:db8:1:2::9")
    assert caller_at("2001:db8:1:3::9") != caller_at("2001:db8:1:2::9")
    assert caller_at("10.0.0.9") == "10.0.0.9"
    assert caller_at(None)


def test_who_has_to_wait_is_told_a_second_at_least():
    for seconds, told in ((0.01, b"1"), (1.2, b"2"), (6.0, b"6")):
        assert dict(of_error(limited(seconds)).headers)[b"retry-after"] == told

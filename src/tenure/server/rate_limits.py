"""Rate limits: a token bucket for each caller, filled at a steady rate.

Memory is bounded: beyond `most` callers the least recently used bucket is dropped. It was full, or nearly, so this
changes nothing.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network

from tenure.core import limits
from tenure.core.errors import RateLimited

MOST_CALLERS = limits.CALLERS


class Buckets:
    """For one event loop or thread. A rate of 0 limits nothing."""

    def __init__(
        self, rate: float, burst: float, *, most: int = MOST_CALLERS, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst = rate, burst
        self._most = most
        self._monotonic = monotonic
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # caller → tokens, and when that was

    def wait_of(self, caller: str, tokens: float = 1.0) -> float:
        """Seconds until the caller has so many tokens; 0.0: now. Takes nothing."""
        if self.rate <= 0:
            return 0.0
        return max(0.0, (tokens - self._now(caller, self._monotonic())) / self.rate)

    def take(self, caller: str, tokens: float = 1.0) -> None:
        """Take tokens; RateLimited if there are too few, and nothing is taken."""
        if self.rate <= 0:
            return
        now = self._monotonic()
        left = self._now(caller, now)
        if left < tokens:
            raise limited((tokens - left) / self.rate)
        self._left[caller] = (left - tokens, now)
        self._left.move_to_end(caller)
        if len(self._left) > self._most:
            self._left.popitem(last=False)

    def _now(self, caller: str, now: float) -> float:
        return self._filled(self._left.get(caller), now)

    def _filled(self, kept: tuple[float, float] | None, now: float) -> float:
        """The tokens by now; `kept` are those of an earlier time."""
        left, at = kept or (self.burst, now)
        return min(self.burst, left + (now - at) * self.rate)


def limited(seconds: float) -> RateLimited:
    return RateLimited(
        "too many requests", f"nothing was done; send it again in {max(1, round(seconds + 0.5))} s", retry_after=seconds
    )


@lru_cache(1024)
def caller_at(address: str | None) -> str:
    """An address as a caller's name; for IPv6 the /64 network, since one client has all its addresses."""
    if address is None:
        return "nowhere"
    parsed = ip_address(address)
    return str(ip_network(f"{parsed}/64", strict=False)) if isinstance(parsed, IPv6Address) else address

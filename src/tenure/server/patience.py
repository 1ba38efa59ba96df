"""Waiting at the start for a store that is away for a moment."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from tenure.core import limits
from tenure.core.errors import StoreUnavailable

T = TypeVar("T")
FIRST = 0.5  # seconds until the second try; each later one waits twice as long
LONGEST = limits.STORE_RETRY


class Tell(Protocol):
    def __call__(self, event: str, **more: object) -> object: ...


def opened(
    open_: Callable[[], T],
    may_come_back: Callable[[StoreUnavailable], bool],
    most: float,
    tell: Tell,
    *,
    pause: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> T:
    """What `open_` gives, tried again with growing pauses for at most `most` seconds; each try is told.

    The last StoreAway is raised where the time is over, and the first where the store will not come back by itself.
    """
    until, wait = monotonic() + most, FIRST
    while True:
        try:
            return open_()
        except StoreUnavailable as away:
            left = until - monotonic()
            if left <= 0 or not may_come_back(away):
                raise
            wait = min(wait, left)
            tell("the store is away; trying again", why=away.message, pause=round(wait, 1), left=round(left))
        pause(wait)
        wait = min(2 * wait, LONGEST)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGINT end the process while nothing is served yet, also in the midst of a connection attempt."""

    def end(*_: object) -> None:
        raise SystemExit(0)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

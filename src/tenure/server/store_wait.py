"""Waits at the start for a store that is temporarily unavailable."""

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


class Report(Protocol):
    def __call__(self, event: str, **more: object) -> object: ...


def open_with_retries(
    open_: Callable[[], T],
    may_come_back: Callable[[StoreUnavailable], bool],
    most: float,
    report: Report,
    *,
    meanwhile: Callable[[], object] = lambda: None,
    pause: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> T:
    """The result of `open_`, retried with growing pauses for at most `most` seconds; each failure is reported.

    `meanwhile` is called before each pause.

    Raises the last StoreUnavailable after that time, and the first if `may_come_back` says that a retry is useless.
    """
    until, wait = monotonic() + most, FIRST
    while True:
        try:
            return open_()
        except StoreUnavailable as error:
            left = until - monotonic()
            if left <= 0 or not may_come_back(error):
                raise
            wait = min(wait, left)
            meanwhile()
            report("the store is unavailable; retrying", why=error.message, pause=round(wait, 1), left=round(left))
        pause(wait)
        wait = min(2 * wait, LONGEST)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGINT end the process before it serves, even during a connection attempt."""

    def end(*_: object) -> None:
        raise SystemExit(0)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Copies of an embedded store, kept outside of its folder: when the next one is due, and which ones go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.core import limits


class Copy(NamedTuple):
    """What a copy has: everything up to an event of an epoch."""

    path: str
    epoch: str
    sequence: int
    made: float  # seconds since 1970
    size: int  # bytes


def is_due(copies: Sequence[Copy], epoch: str, last: int, now: float, least: float) -> bool:
    """Whether a store at this epoch and event is copied now, `least` seconds after the newest copy.

    A clock that was ahead delays no copy: one that was made later than now counts as old.
    """
    newest = max((copy for copy in copies if copy.epoch == epoch), key=lambda copy: copy.made, default=None)
    if newest is None:
        return True
    return newest.sequence != last and not 0 <= now - newest.made < least


def surplus(copies: Sequence[Copy], epoch: str) -> list[Copy]:
    """Which copies of one path are not kept. A new store there never drives out the last copy of the former one."""
    newest_first = sorted(copies, key=lambda copy: (copy.made, copy.sequence), reverse=True)
    present = [copy for copy in newest_first if copy.epoch == epoch]
    earlier = [copy for copy in newest_first if copy.epoch != epoch]
    last = {copy.epoch: copy for copy in reversed(earlier)}  # the newest of each epoch
    kept = [copy for copy in earlier if copy in last.values()][: limits.COPIES_OF_EARLIER]
    return [*present[limits.COPIES_OF_STORE :], *(copy for copy in earlier if copy not in kept)]


def beyond(copies: Sequence[Copy], newest: Copy) -> list[Copy]:
    """Which copies of all stores of a user go, oldest first, until the rest has room; `newest` stays."""
    size = sum(copy.size for copy in copies)
    gone = []
    for copy in sorted(copies, key=lambda copy: copy.made):
        if size <= limits.COPIES_BYTES:
            break
        if copy != newest:
            gone.append(copy)
            size -= copy.size
    return gone

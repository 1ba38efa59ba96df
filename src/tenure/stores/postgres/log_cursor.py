"""Going on in the log from where one was, without ever skipping an event that commits late.

Sequences are not in the order of commits: of two writers at the same time the one that was given 11 may commit after
the one that was given 12, and a reader that went on behind 12 would never see it. Nor does the order of transactions
help, since one that began first may be given its sequences last.

So every writer tells, right before it is given its first, where the log ends: its floor, by a lock whose number it is,
which ends with its transaction and which anybody can see. What lies at or below every floor is settled: whoever wrote
there has ended. A reader learns the end of the log first, then the floors, and only then takes its snapshot: who began
since is given what lies beyond that end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

_BITS = 31  # of a floor that fit into the number of a lock


class Snapshot(NamedTuple):
    """Which transactions were over: all before `oldest`, and those before `beyond` that are not in `running`."""

    oldest: int
    beyond: int
    running: frozenset[int]

    def saw(self, transaction: int) -> bool:
        return transaction < self.oldest or (transaction < self.beyond and transaction not in self.running)


def parse_snapshot(text: str) -> Snapshot:
    """`xmin:xmax:xip,xip,…` as PostgreSQL writes it."""
    oldest, beyond, running = text.split(":")
    return Snapshot(int(oldest), int(beyond), frozenset(int(x) for x in running.split(",") if x))


def settled(end: int, floors: Iterable[int]) -> int:
    """The last sequence at or below which nothing can come any more: `end` is the log's, read before the floors."""
    half = 1 << (_BITS - 1)
    return end - max((0, *((end - floor + half) % (2 * half) - half for floor in floors)))  # below 0: it began since

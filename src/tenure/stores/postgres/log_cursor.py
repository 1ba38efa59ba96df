"""The log cursor: following the log from a position, without ever skipping an event that commits late.

The problem. Sequences are not in the order of commits. Of two concurrent writers, the one that drew 11 may commit after
the one that drew 12; a reader that moved its cursor to 12 in between would never see 11. The order of transaction ids
does not help: a transaction that began first may draw its sequences last. Within one project the write lock orders
writers, but readers follow all projects, and batches of the fast path share that lock.

The solution: floors. Right before a writer draws its first sequence, it takes an advisory lock whose second number is
the current end of the log: its floor. Everything that it will ever append in this transaction lies above its floor. The
lock ends with the transaction, whether it commits, rolls back or loses its connection, and every session can see it in
`pg_locks`. Nobody waits for it: it is taken in shared mode and never in another.

A reader proceeds in this order:
1. read the end of the log (the last drawn sequence);
2. read the floors of all writers;
3. take its snapshot and read events up to the settled position, the lowest of the end and all floors (`settled`).
Everything at or below that position is final: a writer that drew there either has ended before step 2, so that the
snapshot sees its events, or still shows a floor below them, which lowers the position. A writer that takes its floor
after step 2 draws above the end read in step 1. The order of the steps is essential: with the snapshot first, a writer
could commit between snapshot and floors, and its events would be skipped.

Details.
- A lock's number has 32 bits and a sequence 64, so floors are kept modulo 2^31 (`_BITS`). `settled` takes the distance
  to the end, which is always small, and ignores a negative one: that writer began after step 1.
- `Snapshot` is PostgreSQL's `pg_current_snapshot`. `notifications.py` uses it: a notification of a transaction that the
  reader's snapshot had already seen is not news.
- Empty positions are normal: a rolled-back writer leaves a gap, and a reader never waits for one to be filled.
- A writer that stays open for long holds every reader back at its floor. That is a delay, never a loss; the timeouts of
  statements and of idle transactions bound it.

Which tests prove it. `tests/stores/test_postgres_sharing.py`:
- a transaction that began first may draw its sequences last;
- of two writers that share a project, the later one hides no event of the earlier;
- the end of the log is the lowest floor of all writers (`settled`, also around the wrap of 2^31).

What a new writer must do. Every statement that draws a sequence goes through `_floor()` of `pipeline.py` first, in the
same transaction and in an earlier statement; the functions of the fast path do the same in `begin_hot`. A
statement that draws without a floor is a lost event waiting to happen, and no test with a single writer will show it.
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

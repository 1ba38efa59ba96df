"""Reading the log across projects without ever skipping an event that commits late.

Inside one project sequences are in the order of commits, since writers there go one after another. Across projects
they are not: a reader that saw 12 may have missed 11, whose transaction was still running, and would go on behind
it. So such a reader sees only what lies before the first transaction of this store that its snapshot saw running.

Others' transactions do not hold it back, unlike the oldest transaction of the server, which may be a stranger's in
another database: a writer of ours holds the epoch's lock before it writes anything, which shows who is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenure.stores.postgres import queries

Read = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


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


def first_running(read: Read, lock: int) -> int | None:
    """The first transaction of this store that the reader's snapshot saw running; None where there was none.

    The order of the questions matters: who is running still, and had not taken the lock when we looked before, is not
    one of ours. Who has ended since the snapshot may have been.
    """
    ((text,),) = read(queries.SNAPSHOT, ())
    running = sorted(parse_snapshot(text).running)
    if not running:
        return None
    writers = {int(x) for (x,) in read(queries.WRITERS, [lock])}  # 32 bits of each: the epoch of the count is cut off
    states: dict[str, str] = dict(read(queries.STATES, [[str(x) for x in running]]))
    ours = [x for x in running if x & 0xFFFFFFFF in writers or states[str(x)] != "in progress"]
    return min(ours, default=None)

"""The contract of a store: a dozen primitives, generic over kinds of rows. No rule lives behind it.

A store keeps rows, finds them by index, appends events, and runs one write transaction at a time for each row it
touches. Everything that decides is in core and runs in the engine, inside `begin`. What a store cannot do it
declares by leaving the feature out; the suite in `tenure.testing` proves every sentence below.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import msgspec

from tenure.core.events import Event
from tenure.core.filters import Where
from tenure.core.records import Claim, Result, Row, Task

R = TypeVar("R", bound=Row)

Clock = Callable[[], int]

# What a store may declare. A test that needs one is skipped where it is missing, never by a back end's name.
DURABLE = "durable"  # an acknowledged write survives kill -9 and power loss
PROCESSES = "processes"  # several processes may use it at once
WAKE_UPS = "wake_ups"  # `wait` returns early when another process has written
BACKUP = "backup"  # `backup` copies it while it is used
WRITERS = "writers"  # write transactions run at the same time, at least in different projects
TENANTS = "tenants"  # more than the tenant `local`
HOST_CLOCK = "host_clock"  # its time is its host's, or a clock's that is handed in: `accept_clock` puts it right
FAST_PATH = "fast_path"  # its transactions claim, renew and complete plain tasks in one statement: see `fast_path`


class Change(msgspec.Struct, frozen=True, gc=False):
    """One row's change: `before` as it was loaded (None: new), `after` as it shall be (None: removed)."""

    before: Row | None
    after: Row | None


class Head(NamedTuple):
    """A claimable task's place in its lane: the ready index's own columns, in its order."""

    band: int
    rank: int
    sequence: int
    id: str
    plain: bool


class Unique(msgspec.Struct, frozen=True):
    """No two rows of a project may have the same values in these fields; rows that lack one of them don't count."""

    fields: tuple[str, ...]
    only_if: str | None = None  # a bool field: rows without it don't count

    def value_of(self, row: Any) -> tuple[Any, ...] | None:
        """What must be unique in the whole store of one tenant, or None where this row doesn't count."""
        values = tuple(getattr(row, field) for field in self.fields)
        if None in values or (self.only_if is not None and not getattr(row, self.only_if)):
            return None
        return (type(row), self.fields, row.project, *values)


# Besides (project, id), which is unique in every kind.
UNIQUE: dict[type[Row], tuple[Unique, ...]] = {
    Task: (Unique(("ref",)), Unique(("idempotency_key",)), Unique(("parent", "parent_run", "local_name"))),
    Claim: (Unique(("task", "generation")),),
    Result: (Unique(("task", "run"), only_if="accepted"),),
}
EVENT_UNIQUE = Unique(("task", "version"))


class Transaction(Protocol):
    """One transaction. `now` is the store's clock, read once the locks are held, never before the last event's time."""

    @property
    def now(self) -> int: ...

    @property
    def epoch(self) -> str: ...

    @property
    def behind(self) -> int:
        """By how many microseconds the clock is behind `now`."""

    @property
    def jump(self) -> int:
        """By how many microseconds the clock has jumped ahead; 0 where it has not."""

    def load(self, kind: type[R], keys: Collection[tuple[str, str]]) -> list[R]:
        """The rows of those (project, id), locked until the end in a write transaction; unknown ones are left out."""

    def find(
        self,
        kind: type[R],
        where: Where,
        *,
        order: str = "id",
        after: tuple[Any, str] | None = None,
        limit: int | None = None,
    ) -> list[R]:
        """Rows that match, by `order` and then id, behind the pair (value, id) that `after` gives.

        `order` is a field, or `-field` for falling: the id falls with it. A missing value is less than any other.
        Across projects ids may repeat, and a page must not end between two of the same value and id.
        """

    def count(self, kind: type[Row], where: Where, by: str) -> dict[Any, int]:
        """How many rows match, for each value of the field `by`."""

    def sums(self, kind: type[Row], where: Where, by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
        """The sums of integer fields over rows that match, for each value of `by`; None where none has a value.

        Callers keep them within 64 bits.
        """

    def tally(self, kind: type[Row], where: Where, most: int) -> int:
        """How many rows match, counted no further than `most`."""

    def lanes(self, project: str, depth: int = 1) -> dict[str, list[Head]]:
        """Each lane with a task to claim, by name, with its first `depth`; cost grows with lanes, not with tasks."""

    def ready(self, project: str, lane: str, *, after: Head | None = None, limit: int = 1) -> list[Head]:
        """The next claimable tasks of a lane, in order, behind `after`; from a covering index, never sorted."""

    def due(self, project: str | None, until: int, limit: int) -> list[Task]:
        """Tasks whose `due_at` is not after `until`, the earliest first; of one project, or of all."""

    def next_due(self, project: str) -> int | None:
        """The earliest `due_at` in the project."""

    def is_due(self, project: str) -> bool:
        """Is there a task whose `due_at` is not after `now`? Asked first in every transaction, and mostly not so."""

    def save(self, changes: Sequence[Change], *, last: bool = False) -> None:
        """Apply all or nothing; raises Conflict where a row is not as it was loaded, or a unique value is taken.

        A store that locks may go by a row's presence, and a task's version and generation. After a failed save or
        append the transaction cannot commit: its end raises the error again. With `last` nothing is asked any more,
        and the end may be the first to raise it.
        """

    def append(self, events: Sequence[Event]) -> None:
        """Add to the log in this order, giving sequences that only grow."""

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        """Events that match with a sequence above `after`, oldest first; with `last` the newest `limit` of them."""

    def drop_events(self, project: str, tasks: Collection[str]) -> None:
        """Remove the log of these tasks; the project's last event stays, whosever it is.

        Sequences and time go on from there, so whoever drops has appended why before.
        """

    def expect(self, ask: Callable[[Self], object]) -> None:
        """A hint: what `ask` asks of the transaction it is given will be asked next. What it is told meanwhile is void.

        For stores to which one question more is nothing beside a journey more; others need not do anything.
        """

    def lock(self, name: str, projects: Collection[str]) -> None:
        """Hold `write`, `claim` or `graph` of these projects from the next question to the end; `now` is one.

        `write` comes first and names all that the transaction will write to; a store may let it stand for the others.
        `share` may come in its place, where nothing but fused verbs will write: others who share may then write there
        at the same time, if not both `claim`. Stores with one writer need do nothing.

        `log` comes first in a transaction that reads, of all projects: its `events`, but not the `last`, are then those
        before which no other can come any more, so that who goes on behind them has missed none.
        """

    def set_epoch(self, epoch: str) -> None:
        """Put a new epoch in force from this transaction on."""

    def accept_clock(self) -> int:
        """Take the host's clock as right from here on: `now` is what it says, and by how much that is earlier.

        0 where it is not earlier. Raises InvalidInput where the time is not the host's.
        """


class Store(Protocol):
    """A place where state lives. Safe to use from several threads."""

    url: str
    features: frozenset[str]
    is_copy: bool  # found elsewhere than at its last opening: the engine must begin a new epoch

    def begin(self, tenant: str, *, write: bool) -> AbstractContextManager[Transaction]:
        """A transaction that commits when the block ends well and leaves no trace when it does not.

        A write transaction sees no other's changes after it began. Raises StoreAway where it cannot begin, and
        OutcomeUnknown where the commit may or may not have happened. Where the clock has jumped ahead, `now` leaves
        that out, and whatever writes raises ClockJump; `accept_clock` goes before.
        """

    def mark(self) -> int:
        """The last event's sequence: what `wait` waits beyond."""

    def wait(self, mark: int, timeout: float) -> bool:
        """Return True as soon as an event beyond `mark` is committed, False after `timeout` seconds."""

    def settled_here(self) -> None:
        """Remember this place as the store's own; the engine calls it once a copy has its new epoch."""

    def backup(self, target: str) -> None:
        """An exact copy of one moment at `target`, which must not exist, while others go on working."""

    def check(self) -> list[str]:
        """What is wrong with the stored bytes; empty when all is well."""

    def close(self) -> None:
        """Let go of files and connections. Nothing that was acknowledged is lost by not calling it."""

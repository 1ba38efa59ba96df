"""The contract of a store: primitives that are generic over kinds of rows. Stores hold no rule.

A store keeps rows, finds them by index, appends events, and runs one write transaction at a time for each row it
touches. Decisions are made in core and run in the engine, inside `begin`. A store declares its features; the suite in
`tenure.testing` proves every sentence below.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from tenure.core.events import Event
from tenure.core.filters import Where
from tenure.core.records import Claim, Result, Row, Task

R = TypeVar("R", bound=Row)

Clock = Callable[[], int]

# Features that a store may declare. A test that needs one is skipped where it is missing, never by a back end's name.
DURABLE = "durable"  # an acknowledged write survives kill -9 and power loss
PROCESSES = "processes"  # several processes may use it at once
WAKE_UPS = "wake_ups"  # `wait` returns early when another process commits
BACKUP = "backup"  # `backup` copies it while it is used
WRITERS = "writers"  # write transactions run at the same time, at least in different projects
TENANTS = "tenants"  # more than the tenant `local`
KEEPS_SEALS = "keeps_seals"  # a process that has opened it can add seals, and change or remove none
SCHEMAS = "schemas"  # a tenant may have its own tables there: see `Schemas`
SNAPSHOTS = "snapshots"  # a read transaction sees one moment; elsewhere a torn read raises Conflict: see `begin`
HOST_CLOCK = "host_clock"  # its time is the host's, or that of a given clock; `accept_clock` corrects it
HOLDERS = "holders"  # of a receipt, found in one round trip (`fast_path.Receipts`); `expect` sends queries together
FAST_PATH = "fast_path"  # its transactions claim, renew and complete plain tasks in one statement: see `fast_path`


class Change(msgspec.Struct, frozen=True, gc=False):
    """One row's change: `before` as it was loaded (None: new), `after` as it will be (None: deleted)."""

    before: Row | None
    after: Row | None
    fields: Sequence[int] | None = None  # positions of all fields that are not identical, where they are known


class Head(NamedTuple):
    """A claimable task's position in its lane: the columns of the ready index, in its order."""

    band: int
    rank: int
    sequence: int
    id: str
    plain: bool


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A query as data: a method of `Transaction` (or of `fast_path.Receipts`), and its arguments."""

    query: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = {}


class ForLeader(msgspec.Struct, frozen=True, gc=False):
    """What a tenant has for a leader that begins."""

    at: int | None  # its first task or schedule falls due then; 0: something reads its log
    is_changed: bool


class Unique(msgspec.Struct, frozen=True):
    """No two rows of a project may have the same values in these fields; rows that lack one of them do not count."""

    fields: tuple[str, ...]
    only_if: str | None = None  # a bool field: rows where it is false do not count

    def value_of(self, row: Any) -> tuple[Any, ...] | None:
        """The value that must be unique within a tenant, or None where this row does not count."""
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
        """How many microseconds the clock is behind `now`."""

    @property
    def jump(self) -> int:
        """How many microseconds the clock has jumped ahead; 0 where it has not."""

    def load(self, kind: type[R], keys: Collection[tuple[str, str]]) -> list[R]:
        """The rows with these (project, id), locked until a write transaction ends; unknown ones are left out."""

    def find(
        self,
        kind: type[R],
        where: Where,
        *,
        order: str = "id",
        after: tuple[Any, str] | None = None,
        limit: int | None = None,
    ) -> list[R]:
        """Rows that match, by `order` and then id, behind the pair (value, id) in `after`.

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
        """Each lane with claimable tasks, by name, with its first `depth`; the cost grows with lanes, not tasks."""

    def ready(self, project: str, lane: str, *, after: Head | None = None, limit: int = 1) -> list[Head]:
        """The next claimable tasks of a lane, in order, behind `after`; from a covering index, without a sort."""

    def due(self, project: str | None, until: int, limit: int) -> list[Task]:
        """Tasks whose `due_at` is not after `until`, the earliest first; of one project, or of all."""

    def next_due(self, project: str) -> int | None:
        """The earliest `due_at` in the project."""

    def is_due(self, project: str) -> bool:
        """Is there a task whose `due_at` is not after `now`? Checked first in every transaction."""

    def save(self, changes: Sequence[Change], *, last: bool = False) -> None:
        """Apply all or nothing; raises Conflict where a row is not as it was loaded, or a unique value is taken.

        A store that locks may compare only a row's presence, and a task's version and generation. After a failed save
        or append the transaction cannot commit: its end raises the error again. With `last` no query follows, and the
        error may be raised at the end only.
        """

    def append(self, events: Sequence[Event]) -> None:
        """Append to the log in this order, with growing sequences."""

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        """Events that match with a sequence above `after`, oldest first; with `last` the newest `limit` of them."""

    def drop_events(self, project: str, tasks: Collection[str]) -> None:
        """Delete the events of these tasks, but never the project's last event.

        Sequences and time continue from that one, so the caller has appended the reason before.
        """

    def clear_log(self) -> None:
        """Delete every event of the tenant, which the rows of a copy of it will replace in this transaction.

        Raises InvalidInput where the store cannot.
        """

    def expect(self, queries: Sequence[Asked]) -> None:
        """A hint: these queries will be made next.

        For stores where one more query costs little beside one more round trip; others may do nothing.
        """

    def lock(self, name: str, projects: Collection[str]) -> None:
        """Hold `write`, `claim` or `graph` of these projects from the next query (`now` is one) to the end.

        `write` comes first and names all projects that the transaction will write to; a store may use it for the
        others. `share` may replace it where only the fast path will write: other transactions that share may then write
        there at the same time, unless both `claim`. Stores with one writer need do nothing.

        `log` comes first in a read transaction across all projects. Its `events` without `last` then end before the
        first position where an event may still appear, so a cursor behind them skips none.
        """

    def set_epoch(self, epoch: str) -> None:
        """Begin a new epoch with this transaction."""

    def accept_clock(self) -> int:
        """Accept the host's clock as correct: `now` follows it. Returns by how many microseconds `now` went back.

        Raises InvalidInput where the store's time is not the host's.
        """


class Store(Protocol):
    """Where state lives. Safe to use from several threads."""

    url: str
    features: frozenset[str]
    is_copy: bool  # it was copied or restored since its last opening: the engine must begin a new epoch

    def begin(self, tenant: str, *, write: bool) -> AbstractContextManager[Transaction]:
        """A transaction that commits at the end of the block, and rolls back where the block raises.

        A write transaction sees no changes of others after it began. A read transaction sees one moment: without the
        feature SNAPSHOTS a query, or the end of the block, may raise Conflict instead, and the caller reads again.
        Raises StoreUnavailable where it cannot begin, and
        OutcomeUnknown where the commit may or may not have happened. After a jump of the clock `now` is the time
        without the jump, and every write raises ClockJump unless `accept_clock` was called first.
        """

    def mark(self, tenant: str) -> int:
        """The sequence of the tenant's last event, for `wait`."""

    def marks(self, tenants: Collection[str]) -> dict[str, int]:
        """The same of several tenants, by one query."""

    def tenants_due(self, tenants: Collection[str], until: int, since: int) -> dict[str, ForLeader]:
        """Those of these tenants that have something for a leader that begins; `until`: how far due times are read.

        `since`: a tenant with a later event has changed.
        """

    def wait(self, marks: Mapping[str, int], timeout: float) -> frozenset[str]:
        """The tenants that changed, as soon as one of them commits an event beyond its mark; none after `timeout`.

        `marks` has a mark for each tenant of interest. A write of any other tenant neither ends the wait nor is read.
        """

    def begin_epochs(self, besides: str) -> list[str]:
        """Begin a new epoch of every tenant but `besides`, with one commit; their names. Nothing ends their claims yet.

        The mark of a tenant that moves stays in its epoch. A store that keeps one tenant has nobody else.
        """

    def settled_here(self) -> list[str]:
        """Record that the store belongs here; the engine calls it once a copy has its new epoch.

        The other tenants, which have got a new epoch by it: their names.
        """

    def backup(self, target: str) -> None:
        """Write one snapshot to `target`, which must not exist, while other transactions continue."""

    def check(self) -> list[str]:
        """The faults of the stored bytes; empty where there are none."""

    def close(self) -> None:
        """Close files and connections. Without it nothing that was acknowledged is lost."""


@runtime_checkable
class Replicated(Protocol):
    """A store that may be open at a standby: one that follows another server, and only reads."""

    is_standby: bool  # when it was opened

    def age(self) -> float | None:
        """How many seconds the newest commit that it has lies back, at most; None where it has had none. 0: no standby.

        While nothing is written it grows, though nothing is missing.
        """


class Schemas(Protocol):
    """What a store with the feature SCHEMAS has besides."""

    def in_schema(self, name: str) -> Store:
        """The store in another schema of the same database, created or upgraded; it shares this one's connections."""

"""A store in the memory of this process, which ends with it. For tests, trials and simulations.

Every transaction, also a read one, holds the one lock. So it sees no changes of others, and a rollback undoes its
steps. Each tenant beside `local` is a separate store under the same lock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from tenure.core import limits
from tenure.core.clock import Kept, accepted, refusal, store_time
from tenure.core.errors import Bug, Conflict, InvalidInput, StoreError, StoreUnavailable
from tenure.core.events import Event
from tenure.core.filters import Where, matches
from tenure.core.records import KINDS, Row, Task, replace
from tenure.core.row_queries import RowQueries
from tenure.core.tenant_moves import renewed
from tenure.core.tenant_records import HOME
from tenure.stores.host_clock import reader_of
from tenure.stores.plain_finding import check, check_numbers
from tenure.stores.port import (
    EVENT_UNIQUE,
    HOST_CLOCK,
    SNAPSHOTS,
    TENANTS,
    UNIQUE,
    Change,
    Clock,
    ForLeader,
    Head,
    Unique,
)
from tenure.stores.tenants_due import tenants_due

R = TypeVar("R", bound=Row)

_Key = tuple[str, str]
_PATIENCE = limits.MEMORY_WAIT


class Memory:
    """Implements the port with dicts."""

    features: frozenset[str] = frozenset({HOST_CLOCK, SNAPSHOTS, TENANTS})
    is_copy = False

    def __init__(
        self,
        url: str = "memory://",
        *,
        clock: Clock | None = None,
        random: Callable[[int], bytes] = os.urandom,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[threading.Condition, float], object] = threading.Condition.wait,
    ) -> None:
        self.url = url
        self.clock = reader_of(clock)
        self.kept = Kept()  # the state of its writers' clocks
        self.epoch = random(4).hex()
        self.rows: dict[type[Row], dict[_Key, Row]] = {kind: {} for kind in KINDS}
        self.taken: set[tuple[Any, ...]] = set()  # unique values in use
        self.log: list[Event] = []
        self.cleared = 0  # the last sequence of a log that was deleted: sequences only grow
        self.lock = threading.Lock()
        self.written = threading.Condition()
        self._monotonic = monotonic
        self._pause = pause
        self._random = random
        self._tenants: dict[str, Memory] = {HOME: self}

    def _of(self, tenant: str) -> Memory:
        with self.written:
            if tenant not in self._tenants:
                made = Memory(self.url, random=self._random)
                made.clock, made.lock, made.written = self.clock, self.lock, self.written
                self._tenants[tenant] = made
            return self._tenants[tenant]

    def begin(self, tenant: str, *, write: bool) -> MemoryTransaction:
        return MemoryTransaction(self._of(tenant), write)

    def mark(self, tenant: str) -> int:
        return self._of(tenant).last

    def marks(self, tenants: Collection[str]) -> dict[str, int]:
        return {tenant: self.mark(tenant) for tenant in tenants}

    def tenants_due(self, tenants: Collection[str], until: int, since: int) -> dict[str, ForLeader]:
        return tenants_due(self, tenants, until, since)

    def wait(self, marks: Mapping[str, int], timeout: float) -> frozenset[str]:
        logs = {tenant: self._of(tenant) for tenant in marks}
        until = self._monotonic() + timeout
        with self.written:
            while not (changed := frozenset(tenant for tenant, mark in marks.items() if logs[tenant].last > mark)):
                left = until - self._monotonic()
                if left <= 0:
                    break
                self._pause(self.written, left)
        return changed

    @property
    def last(self) -> int:
        """The last event's sequence."""
        return self.log[-1].sequence if self.log else self.cleared

    def begin_epochs(self, besides: str) -> list[str]:
        with self.lock:
            others = {name: store for name, store in self._tenants.items() if name != besides}
            for store in others.values():
                store.epoch = renewed(store.epoch, self._random(4).hex())
        return sorted(others)

    def settled_here(self) -> list[str]:
        return []

    def backup(self, target: str) -> None:
        raise InvalidInput("a store in memory cannot be backed up")

    def check(self) -> list[str]:
        return []

    def close(self) -> None:
        _leave(self)


# --- stores with a name, shared by all who open them in this process ----------------------------------------

_shared: dict[str, tuple[Memory, int]] = {}  # URL → the store, and how many have it open
_sharing = threading.Lock()


def shared(url: str, clock: Clock | None) -> Memory:
    """The store of that name, created for the first opener, with its clock, and dropped with the last."""
    with _sharing:
        store, openers = _shared.get(url) or (Memory(url, clock=clock), 0)
        _shared[url] = (store, openers + 1)
    return store


def is_open(url: str) -> bool:
    """Whether somebody in this process has the store of that name open."""
    return url in _shared


def _leave(store: Memory) -> None:
    with _sharing:
        found, openers = _shared.get(store.url, (None, 0))
        if found is not store:
            return
        if openers > 1:
            _shared[store.url] = (store, openers - 1)
        else:
            del _shared[store.url]


class MemoryTransaction(RowQueries):
    """Changes go straight into the dicts; each adds its undo step."""

    epoch: str
    behind: int
    jump: int

    def __init__(self, store: Memory, write: bool) -> None:
        self._store = store
        self._write = write
        self._undo: list[Callable[[], object]] = []
        self._failed: StoreError | None = None
        self._events: list[Event] = []

    def __enter__(self) -> MemoryTransaction:
        if not self._store.lock.acquire(timeout=_PATIENCE):
            raise StoreUnavailable(f"another transaction has held the store for {_PATIENCE:.0f} s")
        last = self._store.log[-1].time if self._store.log else None
        at = self._store.clock()
        self.now, kept, self.jump = store_time(self._store.kept, at, last)
        self.behind = max(0, self.now - at.wall)
        if self._write and not self.jump:
            self._keep(kept)
        self.epoch = self._store.epoch
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None or self._failed is not None:
                for step in reversed(self._undo):
                    step()
                self._events.clear()
            elif self._events:
                self._store.log += self._events
        finally:
            self._store.lock.release()
        if kind is None and self._failed is not None:
            raise self._failed
        if self._events:
            with self._store.written:
                self._store.written.notify_all()

    def _among(self, kind: type[R], where: Where, *fields: str) -> Collection[R]:
        check(kind, where, *fields)
        return self._rows(kind).values()

    def sums(self, kind: type[Row], where: Where, by: str, fields: Sequence[str]) -> dict[Any, tuple[int | None, ...]]:
        check(kind, where, by, *fields)
        check_numbers(kind, fields)
        return super().sums(kind, where, by, fields)

    def lanes(self, project: str, depth: int = 1) -> dict[str, list[Head]]:
        names = sorted({t.lane for t in self._rows(Task).values() if t.project == project and t.lane is not None})
        return {name: self.ready(project, name, limit=depth) for name in names}

    def ready(self, project: str, lane: str, *, after: Head | None = None, limit: int = 1) -> list[Head]:
        heads = [
            Head(t.band, t.rank, t.sequence, t.id, t.plain)
            for t in self._rows(Task).values()
            if t.project == project and t.lane == lane
        ]
        return sorted(head for head in heads if after is None or head > after)[:limit]

    def save(self, changes: Sequence[Change], *, last: bool = False) -> None:
        self._must_write()
        try:
            for change in changes:
                self._apply(change.before, change.after)
        except StoreError as error:
            self._failed = error
            raise

    def append(self, events: Sequence[Event]) -> None:
        self._must_write()
        for event in events:
            try:
                self._take(EVENT_UNIQUE, event)
            except StoreError as error:
                self._failed = error
                raise
            last = self._events[-1].sequence if self._events else self._store.last
            self._events.append(replace(event, sequence=last + 1))

    def events(self, where: Where, *, after: int = 0, limit: int = 1000, last: bool = False) -> list[Event]:
        check(Event, where)
        fits: Callable[[Any, Where], bool] = matches
        found = [e for e in (*self._store.log, *self._events) if e.sequence > after and fits(e, where)]
        return found[-limit:] if last and limit else found[:limit]

    def drop_events(self, project: str, tasks: Collection[str]) -> None:
        self._must_write()
        wanted, log, mine = set(tasks), self._store.log, self._events
        last = next((e for e in (*reversed(mine), *reversed(log)) if e.project == project), None)
        dropped = {id(e): e for e in (*log, *mine) if e.project == project and e.task in wanted and e is not last}
        for event in dropped.values():
            self._give_back(EVENT_UNIQUE, event)
        before = list(log)
        self._undo.append(lambda: log.__setitem__(slice(None), before))
        log[:] = [e for e in log if id(e) not in dropped]
        mine[:] = [e for e in mine if id(e) not in dropped]

    def clear_log(self) -> None:
        self._must_write()
        log, mine = self._store.log, self._events
        for event in (*log, *mine):
            self._give_back(EVENT_UNIQUE, event)
        before, cleared = list(log), self._store.cleared
        self._undo.append(lambda: log.__setitem__(slice(None), before))
        self._undo.append(lambda: setattr(self._store, "cleared", cleared))
        self._store.cleared = mine[-1].sequence if mine else self._store.last
        log.clear()
        mine.clear()

    def lock(self, name: str, projects: Collection[str]) -> None:
        pass

    def set_epoch(self, epoch: str) -> None:
        self._must_write()
        old = self._store.epoch
        self._undo.append(lambda: setattr(self._store, "epoch", old))
        self.epoch = self._store.epoch = epoch

    def accept_clock(self) -> int:
        self.jump = 0
        self._must_write()
        at = self._store.clock()
        self._keep(accepted(at))
        before, self.now = self.now, at.wall
        return max(0, before - at.wall)

    def _keep(self, kept: Kept) -> None:
        old, self._store.kept = self._store.kept, kept
        self._undo.append(lambda: setattr(self._store, "kept", old))

    def _rows(self, kind: type[R]) -> dict[_Key, R]:
        return self._store.rows[kind]  # type: ignore[return-value]  # keyed by the kind of its rows

    def _must_write(self) -> None:
        if not self._write:
            raise Bug("a read transaction cannot write")
        if self.jump:
            self._failed = refusal(self.jump, self._store.url)
            raise self._failed

    def _apply(self, before: Row | None, after: Row | None) -> None:
        row = after or before
        if row is None:
            raise Bug("a change has neither a row before nor one after")
        rows: dict[_Key, Row] = self._store.rows[type(row)]
        key = (row.project, row.id)
        if before is not None and (before.project, before.id) != key:
            raise Bug(f"{before.id}: a change cannot give a row another id or project")
        if rows.get(key) != before:
            raise Conflict(f"{KINDS[type(row)].table} {row.id} is not as it was loaded")
        if before is not None:
            self._undo.append(lambda: rows.__setitem__(key, before))
            del rows[key]
            for unique in UNIQUE.get(type(row), ()):
                self._give_back(unique, before)
        if after is not None:
            for unique in UNIQUE.get(type(row), ()):
                self._take(unique, after)
            self._undo.append(lambda: rows.pop(key))
            rows[key] = after

    def _take(self, unique: Unique, row: Any) -> None:
        value = unique.value_of(row)
        if value is None:
            return
        if value in self._store.taken:
            raise Conflict(f"{row.id}: {', '.join(unique.fields)} {value[3:]} is taken")
        self._undo.append(lambda: self._store.taken.discard(value))
        self._store.taken.add(value)

    def _give_back(self, unique: Unique, row: Any) -> None:
        value = unique.value_of(row)
        if value is not None:
            self._undo.append(lambda: self._store.taken.add(value))
            self._store.taken.discard(value)

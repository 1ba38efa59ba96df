"""API keys and web sessions of the store, cached for a moment.

A row in use is read again every two seconds, so a key that was revoked elsewhere is refused soon. When this process
changes a row, or the feed reports a change, `forget` makes that immediate. All ids that wait for a lookup are read
together, one read at a time: a flood of guesses costs the database no more than one client, and a valid key in the
middle of it, also after a restart, waits for one read. Unknown ids are cached apart from those in use.

While the store is unavailable, rows that were read in the last ten minutes still count for a few routes (`Recall`).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from tenure.core import limits
from tenure.core.caller_errors import not_remembered
from tenure.core.errors import NotSignedIn
from tenure.core.records import ApiKey, Member, Row, Tenant, WebSession
from tenure.engine import Engine
from tenure.stores.port import Store

KEPT = limits.KEY_CACHE
REMEMBERED = limits.KEY_REMEMBERED
MOST = limits.KEYS_CACHED

R = TypeVar("R", bound=Row)


class _Entry(NamedTuple, Generic[R]):
    row: R
    now: int  # the store's time when it was read
    at: float  # this process's time


class Recall:
    """Inside of `using`, rows count for REMEMBERED seconds and nothing is looked up. For one event loop."""

    def __init__(self) -> None:
        self.is_on = False

    @contextmanager
    def using(self) -> Iterator[None]:
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


class RowCache(Generic[R]):
    def __init__(
        self,
        engine: Engine,
        kind: type[R],
        *,
        monotonic: Callable[[], float] = time.monotonic,
        recall: Recall | None = None,
    ) -> None:
        self._engine, self._kind = engine, kind
        self._monotonic, self._recall = monotonic, recall or Recall()
        self._lock = threading.Lock()  # lookups run in threads
        self._known: OrderedDict[str, _Entry[R]] = OrderedDict()
        self._unknown: OrderedDict[str, float] = OrderedDict()
        self._awaited: dict[str, None] = {}  # oldest first
        self._forgotten = 0

    def find(self, id: str) -> tuple[R, int]:
        """The row and the store's time; NotSignedIn if there is none, NeedsLookup if it is not cached."""
        now = self._monotonic()
        kept, unknown = (REMEMBERED, REMEMBERED) if self._recall.is_on else (KEPT, limits.UNKNOWN_KEY_CACHE)
        with self._lock:
            entry = self._known.get(id)
            if entry is not None and now - entry.at < kept:
                self._known.move_to_end(id)
                return entry.row, entry.now + round((now - entry.at) * 1e6)
            missed_at = self._unknown.get(id)
            if missed_at is not None and now - missed_at < unknown:
                raise NotSignedIn("unknown")
            if self._recall.is_on:
                raise not_remembered()
            self._awaited[id] = None
            if len(self._awaited) > MOST:  # guesses, while the store does not answer
                del self._awaited[next(iter(self._awaited))]
            engine, name = self._engine, f"{self._engine.tenant} {self._kind.__name__}"
            raise NeedsLookup(name, self._lookup, engine.store, engine.tenant)

    def last(self, id: str) -> R | None:
        """The row as it was read last, however old that is."""
        with self._lock:
            entry = self._known.get(id)
            return None if entry is None else entry.row

    def _lookup(self) -> None:
        """Read all ids that wait."""
        with self._lock:
            ids, forgotten = list(islice(self._awaited, limits.KEYS_AT_ONCE)), self._forgotten
            for id in ids:
                del self._awaited[id]
        at = self._monotonic()  # before the read: rows may be older than this, never younger
        rows, now = self._engine.read_settled((), lambda work: (work.get_many(self._kind, "", ids), work.now))
        with self._lock:
            if forgotten != self._forgotten:
                return  # a row was changed during the read: the rows may be outdated
            for id in ids:
                self._known.pop(id, None)
                if (row := rows.get(id)) is None:
                    self._unknown[id] = at
                else:
                    self._known[id] = _Entry(row, now, at)
            for kept in (self._known, self._unknown):
                while len(kept) > MOST:
                    kept.popitem(last=False)

    def forget(self, id: str) -> None:
        """The row was changed: the next request reads it again, and it is not remembered."""
        with self._lock:
            self._forgotten += 1
            self._unknown.pop(id, None)
            entry = self._known.get(id)
            if entry is not None:  # still in use, but outdated
                self._known[id] = entry._replace(at=float("-inf"))


class TenantRows:
    """What a tenant keeps of its sign-ins."""

    def __init__(self, engine: Engine, monotonic: Callable[[], float], recall: Recall) -> None:
        self.engine = engine
        how: dict[str, Any] = {"monotonic": monotonic, "recall": recall}
        self.keys: RowCache[ApiKey] = RowCache(engine, ApiKey, **how)
        self.sessions: RowCache[WebSession] = RowCache(engine, WebSession, **how)
        self.members: RowCache[Member] = RowCache(engine, Member, **how)

    def member(self, user: str) -> Member | None:
        try:
            return self.members.find(user)[0]
        except NotSignedIn:
            return None


def tenant_cache(engine: Engine, monotonic: Callable[[], float], recall: Recall) -> RowCache[Tenant]:
    """`engine`: of the home tenant."""
    return RowCache(engine, Tenant, monotonic=monotonic, recall=recall)


class NeedsLookup(Exception):
    """`run` reads and caches the missing value; then try again. Lookups of the same name run once.

    `store` is the one that it reads; None: another place. `tenant`: whose rows it reads, or whose store it opens.
    """

    def __init__(
        self, name: str, run: Callable[[], object], store: Store | None = None, tenant: str | None = None
    ) -> None:
        super().__init__(name)
        self.name, self.run, self.store, self.tenant = name, run, store, tenant
        self.needs_store = store is not None or tenant is not None

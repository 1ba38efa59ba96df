"""Keys and web sessions as the store has them, kept for a moment.

A row is read again every two seconds while it is in use, so that one that ended elsewhere soon opens nothing; who hears
of a change (this process made it, or the feed told of it) calls `forget`, and it is at once. All ids that wait to be
looked for are read together, one read at a time: a flood of guesses costs the database no more than one visitor, and a
good key that comes in the middle of it, also after a restart, waits for one read. Unknown ids are remembered apart from
those in use.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from tenure.core import limits
from tenure.core.errors import NotSignedIn
from tenure.core.records import ApiKey, Row, WebSession
from tenure.engine import Engine
from tenure.server.auth.looks import MustLook

KEPT = limits.KEY_CACHE
UNKNOWN_KEPT = limits.UNKNOWN_KEY_CACHE
MOST = limits.KEYS_CACHED
MOST_AT_ONCE = limits.KEYS_AT_ONCE

R = TypeVar("R", bound=Row)


class _Entry(NamedTuple, Generic[R]):
    row: R
    now: int  # the store's time when it was read
    at: float  # and ours


class Ring(Generic[R]):
    def __init__(self, engine: Engine, kind: type[R], *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._engine, self._kind = engine, kind
        self._monotonic = monotonic
        self._lock = threading.Lock()  # looks come back in threads
        self._known: OrderedDict[str, _Entry[R]] = OrderedDict()
        self._unknown: OrderedDict[str, float] = OrderedDict()
        self._awaited: dict[str, None] = {}  # in the order of their coming
        self._forgotten = 0

    def find(self, id: str) -> tuple[R, int]:
        """The row and the store's time; NotSignedIn where there is none, MustLook where that is not known."""
        now = self._monotonic()
        with self._lock:
            entry = self._known.get(id)
            if entry is not None and now - entry.at < KEPT:
                self._known.move_to_end(id)
                return entry.row, entry.now + round((now - entry.at) * 1e6)
            told = self._unknown.get(id)
            if told is not None and now - told < UNKNOWN_KEPT:
                raise NotSignedIn("unknown")
            self._awaited[id] = None
            raise MustLook(self._kind.__name__, self._look)

    def _look(self) -> None:
        """Read all that is waited for."""
        with self._lock:
            ids, forgotten = list(islice(self._awaited, MOST_AT_ONCE)), self._forgotten
            for id in ids:
                del self._awaited[id]
        at = self._monotonic()  # before they are read: they may be older than they seem, never younger
        with self._engine.reading() as work:
            rows, now = work.get_many(self._kind, "", ids), work.now
        with self._lock:
            if forgotten != self._forgotten:
                return  # something was changed while these were read: what was read may be from before
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
        """The row was changed: the next visit reads it again."""
        with self._lock:
            self._forgotten += 1
            self._unknown.pop(id, None)
            entry = self._known.get(id)
            if entry is not None:  # still in use, but too old to go by
                self._known[id] = entry._replace(at=entry.at - KEPT)


def key_ring(engine: Engine, monotonic: Callable[[], float]) -> Ring[ApiKey]:
    return Ring(engine, ApiKey, monotonic=monotonic)


def session_ring(engine: Engine, monotonic: Callable[[], float]) -> Ring[WebSession]:
    return Ring(engine, WebSession, monotonic=monotonic)

"""API keys as the store has them, kept for a moment.

A key is read anew every two seconds while it is in use, so that one that was revoked elsewhere soon opens nothing;
whoever hears of a change (this process made it, or the feed told of it) calls `forget`, and it is at once. Keys that
are unknown are remembered apart from those in use, and new ones are looked for at a bounded rate: guessing costs a
guesser's time, not the database's.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from tenure.core.errors import NotSignedIn
from tenure.core.records import ApiKey
from tenure.engine import Engine
from tenure.server.auth.looks import MustLook
from tenure.server.limits import Buckets

KEPT = 2.0  # seconds
UNKNOWN_KEPT = 60.0  # an id that there is not will not come to be: ids are random
MOST = 10_000  # of each sort
NEW_LOOKS = 200.0  # a second, for ids that were not in use a moment ago
MOST_NEW_LOOKS = 1000.0  # at once: a fleet comes back after a restart


class _Entry(NamedTuple):
    key: ApiKey
    now: int  # the store's time when it was read
    at: float  # and ours


class KeyRing:
    def __init__(self, engine: Engine, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._monotonic = monotonic
        self._lock = threading.Lock()  # looks come back in threads
        self._known: OrderedDict[str, _Entry] = OrderedDict()
        self._unknown: OrderedDict[str, float] = OrderedDict()
        self._awaited: set[str] = set()  # new ones that are being looked at
        self._forgotten = 0
        self._new_looks = Buckets(NEW_LOOKS, MOST_NEW_LOOKS, most=1, monotonic=monotonic)

    def is_in_use(self, id: str) -> bool:
        return id in self._known

    def find(self, id: str) -> tuple[ApiKey, int]:
        """The key and the store's time; NotSignedIn where there is none, MustLook where that is not known."""
        now = self._monotonic()
        with self._lock:
            entry = self._known.get(id)
            if entry is not None and now - entry.at < KEPT:
                self._known.move_to_end(id)
                return entry.key, entry.now + round((now - entry.at) * 1e6)
            told = self._unknown.get(id)
            if told is not None and now - told < UNKNOWN_KEPT:
                raise NotSignedIn("no such key")
            if entry is None and id not in self._awaited:
                self._new_looks.take("all")
                self._awaited.add(id)
            raise MustLook(f"key {id}", partial(self._look, id, self._forgotten))

    def _look(self, id: str, forgotten: int) -> None:
        at = self._monotonic()  # before it is read: it may be older than it seems, never younger
        try:
            with self._engine.reading() as work:
                key, now = work.get(ApiKey, "", id), work.now
        finally:
            with self._lock:
                self._awaited.discard(id)
        with self._lock:
            if forgotten != self._forgotten:
                return  # a key was changed while this one was read: what was read may be from before
            self._known.pop(id, None)
            if key is None:
                self._unknown[id] = at
            else:
                self._known[id] = _Entry(key, now, at)
            for kept in (self._known, self._unknown):
                if len(kept) > MOST:
                    kept.popitem(last=False)

    def forget(self, id: str) -> None:
        """The key was changed: the next visit reads it anew."""
        with self._lock:
            self._forgotten += 1
            self._unknown.pop(id, None)
            entry = self._known.get(id)
            if entry is not None:  # still in use, but too old to go by
                self._known[id] = entry._replace(at=entry.at - KEPT)

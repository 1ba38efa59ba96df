"""Waiting threads of one process share one poll for commits of other processes.

One of them polls, the others wait until it finds something. A poll asks SQLite whether the file was changed, which
costs a tenth of reading the end of the log: five threads that each read it took 3 % of a core while nothing happened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import apsw

from tenure.core.errors import StoreError

if TYPE_CHECKING:
    from tenure.stores.sqlite.connections import Connections, SqliteConnection

POLL = 0.02  # seconds between polls
SLOW_POLL = 0.05  # where nothing was written for a while: waking up is most of what a poll costs
QUIET = 2.0  # seconds
CHECK = 1.0  # seconds after which the waiters look for themselves: the files may have been moved


class CommitWatch:
    """`changed` is the condition that commits of this process notify; `pause` waits for it."""

    def __init__(
        self,
        connections: Callable[[], Connections],
        changed: threading.Condition,
        pause: Callable[[threading.Condition, float], object],
        monotonic: Callable[[], float],
    ) -> None:
        self.heard = 0  # how often something may have changed
        self._connections, self._changed, self._pause, self._monotonic = connections, changed, pause, monotonic
        self._is_polled = False
        self._checked_at = self._changed_at = monotonic()
        self._using = threading.Lock()
        self._pool: Connections | None = None
        self._connection: SqliteConnection | None = None
        self._version = 0

    def wait(self, heard: int, is_news: Callable[[], bool], until: float) -> None:
        """Return where something may have changed since `heard`, `is_news` is true, or it is `until`."""
        while self._may_poll(heard, is_news, until):
            found = True
            try:
                found = self._poll()
            finally:
                with self._changed:
                    self._is_polled = False
                    self.heard += found
                    if found:
                        self._changed.notify_all()

    def _may_poll(self, heard: int, is_news: Callable[[], bool], until: float) -> bool:
        """True after a pause, where this thread is the one that polls; False at the end."""
        with self._changed:
            while self.heard == heard and not is_news() and (left := until - self._monotonic()) > 0:
                if self._is_polled:
                    self._pause(self._changed, left)
                    continue
                self._is_polled = True
                try:
                    is_quiet = self._monotonic() - self._changed_at >= QUIET
                    self._pause(self._changed, min(left, SLOW_POLL if is_quiet else POLL))
                except BaseException:
                    self._is_polled = False
                    self._changed.notify()
                    raise
                return True
            if not self._is_polled:
                self._changed.notify()  # the one that polled leaves
            return False

    def _poll(self) -> bool:
        """Whether another connection has committed since the last poll, or nobody can know."""
        now = self._monotonic()
        if now - self._checked_at >= CHECK:
            self._checked_at = now
            return True
        with self._using:
            try:
                pool = self._connections()
                if pool is not self._pool:
                    self._drop()
                    self._pool, self._connection = pool, pool.take()
                assert self._connection is not None
                before = self._version
                ((self._version,),) = self._connection.all("PRAGMA data_version")
            except (apsw.Error, StoreError):
                self._drop()
                return True  # who reads gets the error
        if self._version != before:
            self._changed_at = now
        return self._version != before

    def close(self) -> None:
        with self._using:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection, self._pool, self._version = self._connection, None, None, 0
        if connection is not None:
            connection.close()

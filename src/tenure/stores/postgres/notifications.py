"""Notifications: one thread per store listens for all waiters, on a separate connection.

A commit is announced by NOTIFY in a statement after it: inside the transaction NOTIFY would serialise all commits of
the server. A process that dies between the two announces nothing; so the thread also polls, every second, and more
often where it cannot listen, behind a pooler.

A late commit has a lower sequence than commits seen before it. So a waiter compares with the snapshot of its `mark`: it
wakes for every transaction that had not ended then, whatever its sequence. While the thread listens this needs no
query: every notification after the mark may be news.

Notifications name their tenant. A waiter is woken for its tenants alone. A poll reads the end of the log first; only
while that moves, or a writer is open, it asks for the tenants that somebody in this process has waited for.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import psycopg

from tenure.core import limits
from tenure.core.errors import StoreUnavailable, close_all
from tenure.stores.postgres.connection import Connection, connect
from tenure.stores.postgres.errors import Failed
from tenure.stores.postgres.log_cursor import Snapshot, parse_snapshot, settled
from tenure.stores.postgres.statement_texts import FLOORS, Queries
from tenure.stores.sql.nul import shown
from tenure.stores.sql.server_errors import Lost

POLL = 1.0  # seconds between two polls of a thread that listens
POLL_UNHEARD = 0.05  # of one that cannot listen
BACK_OFF = 0.5
_KEPT = limits.NOTIFICATIONS


class Seen(NamedTuple):
    """The state of a tenant's log at a `mark`."""

    mark: int
    calls: int | None = None  # the number of notifications by then, where they are counted
    text: str = ""  # the snapshot as text
    snapshot: Snapshot | None = None


class _Tenant:
    """The latest commits of one tenant."""

    def __init__(self) -> None:
        self.last = 0  # the highest sequence known to be committed
        self.calls = 0
        self.news: deque[int] = deque(maxlen=_KEPT)  # transactions
        self.is_heard = False  # the thread listens, and has read its log since: every later commit calls
        self.waiters: set[threading.Condition] = set()

    def has_news(self, seen: Seen) -> bool:
        if self.last > seen.mark:
            return True
        if seen.calls is not None:
            return self.calls > seen.calls
        return seen.snapshot is not None and any(not seen.snapshot.saw(news) for news in self.news)


class Notifier:
    """The latest commits, for all waiters of this process; of the tenants alone that somebody here has asked for."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._tenants: dict[str, _Tenant] = {}
        self._marked = threading.local()

    def post(self, tenant: str, sequence: int, transaction: int | None = None, *, is_heard: bool | None = None) -> None:
        """A commit of the tenant, or what a poll has found. `is_heard`: whether the thread listens now."""
        with self._lock:
            found = self._tenants.get(tenant)
            if found is None:
                return  # nobody here waits for it
            begins = is_heard is not None and is_heard != found.is_heard
            if is_heard is not None:
                found.is_heard = is_heard
                if not begins and sequence <= found.last:
                    return
            found.last = max(found.last, sequence)
            if transaction is not None:
                if transaction in found.news:
                    return  # our own notification, returned by the server
                found.news.append(transaction)
            found.calls += 1
            for waiter in found.waiters:
                waiter.notify_all()

    def tenants(self) -> list[str]:
        """Those that somebody in this process has asked for."""
        with self._lock:
            return list(self._tenants)

    def unheard(self) -> None:
        """The thread no longer listens: marks need a query again."""
        with self._lock:
            for found in self._tenants.values():
                found.is_heard = False

    def remember(self, marks: Mapping[str, int], snapshot: str) -> None:
        """Keep them for this thread's next wait."""
        parsed = parse_snapshot(snapshot)
        self.keep({tenant: Seen(mark, text=snapshot, snapshot=parsed) for tenant, mark in marks.items()})

    def mark(self, tenant: str) -> int | None:
        """As `remember`, while the thread listens: every later notification is news for this thread's next wait.

        None where a query must find out.
        """
        with self._lock:
            found = self._of(tenant)
            if not found.is_heard:
                return None
            self._keep(tenant, Seen(found.last, found.calls))
            return found.last

    def seen(self, marks: Mapping[str, int]) -> dict[str, Seen]:
        """What this thread has seen at its marks; only the mark where it has another. From now on commits are noted."""
        with self._lock:
            for tenant in marks:
                self._of(tenant)
        kept: dict[str, Seen] = getattr(self._marked, "seen", {})
        seen = {}
        for tenant, mark in marks.items():
            found = kept.get(tenant)
            seen[tenant] = found if found is not None and found.mark == mark else Seen(mark)
        return seen

    def heard(self, seen: Mapping[str, Seen]) -> dict[str, Seen]:
        """Those of the tenants that the thread listens for, with the notifications so far counted.

        Where a later query finds no news since the mark, every further commit calls: `keep` them then.
        """
        with self._lock:
            found = {tenant: self._of(tenant) for tenant in seen}
            return {t: Seen(seen[t].mark, one.calls) for t, one in found.items() if one.is_heard}

    def keep(self, seen: Mapping[str, Seen]) -> None:
        """For this thread's next wait."""
        for tenant, at in seen.items():
            self._keep(tenant, at)

    def changed(self, seen: Mapping[str, Seen]) -> frozenset[str]:
        """The tenants with news."""
        with self._lock:
            return frozenset(tenant for tenant, at in seen.items() if self._of(tenant).has_news(at))

    @contextmanager
    def waiter(self, tenants: Iterable[str]) -> Iterator[threading.Condition]:
        """A condition that commits of these tenants, and of no others, notify; its lock is held."""
        waiter = threading.Condition(self._lock)
        with self._lock:
            places = [self._of(tenant).waiters for tenant in tenants]
            for place in places:
                place.add(waiter)
            try:
                yield waiter
            finally:
                for place in places:
                    place.discard(waiter)

    def _keep(self, tenant: str, seen: Seen) -> None:
        kept: dict[str, Seen] | None = getattr(self._marked, "seen", None)
        if kept is None:
            kept = self._marked.seen = {}
        kept[tenant] = seen

    def _of(self, tenant: str) -> _Tenant:
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants[tenant] = _Tenant()
        return found


class Listener:
    """The thread. It starts with the first wait, and ends with the store."""

    def __init__(
        self, conninfo: str, channel: str, queries: Queries, floor_lock: int, notifier: Notifier, silence: float
    ) -> None:
        self._conninfo, self._channel, self._queries, self._floor_lock = conninfo, channel, queries, floor_lock
        self._notifier, self._silence = notifier, silence
        self._ended = threading.Event()
        self._waker: tuple[socket.socket, socket.socket] | None = None  # closed to wake the thread at the end
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._ready = threading.Event()

    def start(self, patience: float) -> None:
        """Start the thread, and wait up to `patience` seconds until it listens."""
        with self._starting:
            if self._thread is None and not self._ended.is_set():
                self._waker = socket.socketpair()
                self._thread = threading.Thread(target=self._run, name="tenure-listen", daemon=True)
                self._thread.start()
        self._ready.wait(patience)

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None and self._waker is not None:
            near, far = self._waker
            close_all(far.close, partial(self._thread.join, POLL * 2 + 1), near.close)

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                connection = connect(self._conninfo, self._silence)
            except StoreUnavailable:
                self._ended.wait(BACK_OFF)
                continue
            try:
                self._listen(connection)
            except (Failed, Lost, psycopg.Error, OSError):
                self._ended.wait(BACK_OFF)
            finally:
                close_all(self._notifier.unheard, connection.close)

    def _listen(self, connection: Connection) -> None:
        pause = POLL_UNHEARD
        if connection.is_direct:
            connection.on_news = self._received
            if self._waker is not None:
                connection.stop_hearing(self._waker[0].fileno())
            connection.script(f'LISTEN "{self._channel}"')
            pause = POLL
        polled: tuple[int, set[str]] = -1, set()  # the end of the log, and the tenants of the last full poll
        while not self._ended.is_set():
            end, is_settled = self._end_of_log(connection)
            tenants = self._notifier.tenants()
            if end > polled[0] or not polled[1].issuperset(tenants):
                for tenant, last, _ in connection.all(self._queries.marks, [tenants]):
                    # Commits before it listened are news for every waiting thread.
                    self._notifier.post(shown(tenant), last, is_heard=connection.is_direct)
                polled = end if is_settled else -1, set(tenants)
            self._ready.set()
            if connection.is_direct:
                until = time.monotonic() + pause
                while not self._ended.is_set() and (left := until - time.monotonic()) > 0:
                    connection.hear(left)
            else:
                self._ended.wait(pause)

    def _end_of_log(self, connection: Connection) -> tuple[int, bool]:
        """The last sequence that was drawn, and whether everything up to it is final: see `log_cursor.py`."""
        ((end,),) = connection.all(self._queries.drawn)
        floors = [floor for (floor,) in connection.all(FLOORS, [self._floor_lock])]
        return end, settled(end, floors) == end

    def _received(self, payload: str) -> None:
        sequence, _, rest = payload.partition(" ")
        transaction, _, tenant = rest.partition(" ")
        if sequence.isdecimal() and transaction.isdecimal():
            self._notifier.post(shown(tenant), int(sequence), int(transaction))

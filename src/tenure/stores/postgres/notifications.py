"""Notifications: one thread per store listens for all waiters, on a separate connection.

A commit is announced by NOTIFY in a statement after it: inside the transaction NOTIFY would serialise all commits of
the server. A process that dies between the two announces nothing; so the thread also polls, every second, and more
often where it cannot listen, behind a pooler.

A late commit has a lower sequence than commits seen before it. So a waiter compares with the snapshot of its `mark`: it
wakes for every transaction that had not ended then, whatever its sequence. While the thread listens this needs no
query: every notification after the mark may be news.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from typing import NamedTuple

import psycopg

from tenure.core import limits
from tenure.core.errors import StoreUnavailable
from tenure.stores.postgres.connection import Connection, connect
from tenure.stores.postgres.errors import Failed, Lost
from tenure.stores.postgres.log_cursor import Snapshot, parse_snapshot

POLL = 1.0  # seconds between two polls of a thread that listens
POLL_UNHEARD = 0.05  # of one that cannot listen
BACK_OFF = 0.5
_KEPT = limits.NOTIFICATIONS


class Seen(NamedTuple):
    """The state of the log at a `mark`."""

    mark: int
    calls: int | None = None  # the number of notifications by then, where they are counted
    text: str = ""  # the snapshot as text
    snapshot: Snapshot | None = None


class Notifier:
    """The latest commits, for all waiters of this process."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.last = 0  # the highest sequence known to be committed
        self._calls = 0
        self._news: deque[int] = deque(maxlen=_KEPT)  # transactions
        self._marked = threading.local()

    def post(self, sequence: int, transaction: int | None = None) -> None:
        with self.changed:
            self.last = max(self.last, sequence)
            if transaction is not None:
                if transaction in self._news:
                    return  # our own notification, returned by the server
                self._news.append(transaction)
            self._calls += 1
            self.changed.notify_all()

    def remember(self, mark: int, snapshot: str) -> None:
        """Keep it for this thread's next wait."""
        self._marked.seen = Seen(mark, text=snapshot, snapshot=parse_snapshot(snapshot))

    def mark(self) -> int:
        """As `remember`, while the thread listens: every later notification is news for this thread's next wait."""
        with self.changed:
            self._marked.seen = Seen(self.last, self._calls)
            return self.last

    def seen(self, mark: int) -> Seen | None:
        found: Seen | None = getattr(self._marked, "seen", None)
        return found if found is not None and found.mark == mark else None

    def has_news(self, mark: int, seen: Seen | None) -> bool:
        """Call with `changed` held."""
        if self.last > mark:
            return True
        if seen is None:
            return False
        if seen.calls is not None:
            return self._calls > seen.calls
        return seen.snapshot is not None and any(not seen.snapshot.saw(news) for news in self._news)


class Listener:
    """The thread. It starts with the first wait, and ends with the store."""

    def __init__(self, conninfo: str, channel: str, mark: str, notifier: Notifier, silence: float) -> None:
        self._conninfo, self._channel, self._mark = conninfo, channel, mark
        self._notifier, self._silence = notifier, silence
        self._ended = threading.Event()
        self._waker: tuple[socket.socket, socket.socket] | None = None  # closed to wake the thread at the end
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._ready = threading.Event()
        self.hears = False  # it is listening now

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
            self._waker[1].close()
            self._thread.join(POLL * 2 + 1)
            self._waker[0].close()

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
                self.hears = False
                connection.close()

    def _listen(self, connection: Connection) -> None:
        pause = POLL_UNHEARD
        if connection.is_direct:
            connection.on_news = self._received
            if self._waker is not None:
                connection.stop_hearing(self._waker[0].fileno())
            connection.script(f'LISTEN "{self._channel}"')
            pause = POLL
        while not self._ended.is_set():
            ((last, _),) = connection.all(self._mark)
            if last > self._notifier.last or not self._ready.is_set() or self.hears != connection.is_direct:
                self._notifier.post(last)  # commits before it listened are news for all
            self.hears = connection.is_direct
            self._ready.set()
            if connection.is_direct:
                until = time.monotonic() + pause
                while not self._ended.is_set() and (left := until - time.monotonic()) > 0:
                    connection.hear(left)
            else:
                self._ended.wait(pause)

    def _received(self, payload: str) -> None:
        sequence, _, transaction = payload.partition(" ")
        if sequence.isdecimal() and transaction.isdecimal():
            self._notifier.post(int(sequence), int(transaction))

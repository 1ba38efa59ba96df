"""Waiting for news: one thread a store listens for all who wait, on a connection of its own.

A commit is told by NOTIFY in a statement after it, since inside it NOTIFY would make all commits of the server go one
after another. Whoever dies between the two leaves it untold; so the thread also looks by itself, every second, and
more often where it cannot listen, behind a pooler.

A late commit has a lower sequence than others that were seen already. So a waiter goes by what its `mark` saw: it is
woken by every transaction that was not over then, whatever its sequence. While the thread listens no question is
needed for that: whatever is told after the mark may be news.
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

LOOKS = 1.0  # seconds between looks of a thread that listens
LOOKS_UNTOLD = 0.05  # of one that cannot
BACK_OFF = 0.5
_KEPT = limits.NOTIFICATIONS


class Seen(NamedTuple):
    """What a `mark` stood for."""

    mark: int
    calls: int | None = None  # how many had come by then, where it was made by counting them
    text: str = ""  # of the snapshot
    snapshot: Snapshot | None = None


class Notifier:
    """What was committed lately, for all who wait in this process."""

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
                    return  # the server tells us too what we have told it
                self._news.append(transaction)
            self._calls += 1
            self.changed.notify_all()

    def remember(self, mark: int, snapshot: str) -> None:
        """For this thread's next wait."""
        self._marked.seen = Seen(mark, text=snapshot, snapshot=parse_snapshot(snapshot))

    def mark(self) -> int:
        """As `remember`, where every commit is told: what is told from now on is news to this thread's next wait."""
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

    def __init__(self, conninfo: str, channel: str, mark: str, board: Notifier, silence: float) -> None:
        self._conninfo, self._channel, self._mark = conninfo, channel, mark
        self._board, self._silence = board, silence
        self._ended = threading.Event()
        self._bell: tuple[socket.socket, socket.socket] | None = None  # rung to end the thread's silence
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._ready = threading.Event()
        self.hears = False  # every commit is told, for the time being

    def start(self, patience: float) -> None:
        """Have the thread listen, or go on after `patience` seconds without it."""
        with self._starting:
            if self._thread is None and not self._ended.is_set():
                self._bell = socket.socketpair()
                self._thread = threading.Thread(target=self._run, name="tenure-listen", daemon=True)
                self._thread.start()
        self._ready.wait(patience)

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None and self._bell is not None:
            self._bell[1].close()
            self._thread.join(LOOKS * 2 + 1)
            self._bell[0].close()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                link = connect(self._conninfo, self._silence)
            except StoreUnavailable:
                self._ended.wait(BACK_OFF)
                continue
            try:
                self._listen(link)
            except (Failed, Lost, psycopg.Error, OSError):
                self._ended.wait(BACK_OFF)
            finally:
                self.hears = False
                link.close()

    def _listen(self, link: Connection) -> None:
        pause = LOOKS_UNTOLD
        if link.is_direct:
            link.on_news = self._told
            if self._bell is not None:
                link.stop_hearing(self._bell[0].fileno())
            link.script(f'LISTEN "{self._channel}"')
            pause = LOOKS
        while not self._ended.is_set():
            ((last, _),) = link.all(self._mark)
            if last > self._board.last or not self._ready.is_set() or self.hears != link.is_direct:
                self._board.post(last)  # what came while nobody listened is news to all
            self.hears = link.is_direct
            self._ready.set()
            if link.is_direct:
                until = time.monotonic() + pause
                while not self._ended.is_set() and (left := until - time.monotonic()) > 0:
                    link.hear(left)
            else:
                self._ended.wait(pause)

    def _told(self, payload: str) -> None:
        sequence, _, transaction = payload.partition(" ")
        if sequence.isdecimal() and transaction.isdecimal():
            self._board.post(int(sequence), int(transaction))

"""Whose turn it is to write, between processes and threads.

SQLite's own busy handler starves: of 8 processes one got 1 transaction while another got 10,797 in 3 s. Here two side
files are locked with flock: who wants to write takes `.turn`, then `.lock`, and gives `.turn` back. A writer that comes
again finds `.turn` held by the one that waits for it, and queues behind: 8 processes got 1,539 to 1,630 each, p99 5 ms.
The kernel lets go of both when a process dies.

This is fairness only. If somebody deletes the side files, BEGIN IMMEDIATE still keeps writers apart.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from contextlib import suppress

from tenure.core.errors import StoreAway
from tenure.stores.sqlite.place import make_private

_NOW = fcntl.LOCK_EX | fcntl.LOCK_NB


class TurnLock:
    """Held by one thread of one process at a time. `acquire` waits no longer than its patience."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._files: _Files | None = None

    def acquire(self, patience: float, monotonic: Callable[[], float]) -> None:
        """Raises StoreAway where the turn has not come within `patience` seconds."""
        until = monotonic() + patience
        if not self._threads.acquire(timeout=patience):
            raise self._impatient(patience)
        try:
            if self._files is None or self._files.abandoned:
                self._files = _Files(self._path)
            if not self._files.take_now() and not self._files.take(until - monotonic()):
                raise self._impatient(patience)
        except BaseException:
            self._threads.release()
            raise

    def release(self) -> None:
        assert self._files is not None
        try:
            self._files.give()
        finally:
            self._threads.release()

    def close(self) -> None:
        with self._threads:
            if self._files is not None and not self._files.abandoned:
                self._files.close()
            self._files = None

    def _impatient(self, patience: float) -> StoreAway:
        return StoreAway(f"{self._path}: others have been writing for {patience:g} s without a break for us")


class _Files:
    """The two files, opened; and, once somebody had to wait, a thread that waits.

    A thread, because flock knows no time limit and a holder may be stopped in a debugger for ever. Blocking in place
    would be a third faster between two busy processes, and hang with them.
    """

    def __init__(self, path: str) -> None:
        self._turn = _open(path.removesuffix(".lock") + ".turn")
        self._lock = _open(path)
        self._waiter: threading.Thread | None = None
        self._wanted = threading.Semaphore(0)
        self._granted = threading.Semaphore(0)
        self._mutex = threading.Lock()
        self.abandoned = False
        self._closed = False

    def take_now(self) -> bool:
        try:
            fcntl.flock(self._turn, _NOW)
        except BlockingIOError:
            return False
        try:
            fcntl.flock(self._lock, _NOW)
        except BlockingIOError:
            return False  # and keeps the turn: the waiter goes on from here
        fcntl.flock(self._turn, fcntl.LOCK_UN)
        return True

    def take(self, patience: float) -> bool:
        if self._waiter is None:
            self._waiter = threading.Thread(target=self._wait, name="tenure-turn", daemon=True)
            self._waiter.start()
        self._wanted.release()
        try:
            if self._granted.acquire(timeout=max(patience, 0.0)):
                return True
        except BaseException:
            if not self._abandon():
                self.give()
            raise
        return not self._abandon()

    def give(self) -> None:
        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Only while nobody waits or holds."""
        self._closed = True
        if self._waiter is not None:
            self._wanted.release()
            self._waiter.join()
        self._let_go()

    def _abandon(self) -> bool:
        """True unless the turn came at the last moment. The thread stays in the kernel until it does, then lets go."""
        with self._mutex:
            if self._granted.acquire(blocking=False):
                return False
            self.abandoned = True
            return True

    def _wait(self) -> None:
        while True:
            self._wanted.acquire()
            if self._closed:
                return
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            fcntl.flock(self._turn, fcntl.LOCK_UN)
            with self._mutex:
                if self.abandoned:
                    self._let_go()
                    return
                self._granted.release()

    def _let_go(self) -> None:
        os.close(self._turn)
        os.close(self._lock)


def _open(path: str) -> int:
    try:
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            with suppress(FileExistsError):
                make_private(path)
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise StoreAway(f"{path}: cannot be opened: {error.strerror}") from error

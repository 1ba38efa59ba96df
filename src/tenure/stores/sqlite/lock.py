"""Whose turn it is to write, between processes and threads.

SQLite's own busy handler starves: of 8 processes one got 1 transaction while another got 10,797 in 3 s. Here two side
files are locked with flock: who wants to write takes `.turn`, then `.lock`, and gives `.turn` back. A writer that comes
again finds `.turn` held by the one that waits for it, and queues behind: 8 processes got 1,539 to 1,630 each, p99 5 ms.
The kernel lets go of both when a process dies.

The lock file names its holder (pid and start time), so that an error can, also where that process was stopped.

This is fairness only. If somebody deletes the side files, BEGIN IMMEDIATE still keeps writers apart. So a queue that
does not move, because the process at its head was stopped, is passed by where the lock itself is free.
"""
# ruff: noqa: PTH112, PTH123 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from contextlib import suppress

from tenure.core.errors import StoreUnavailable
from tenure.stores.sqlite.store_file import make_private

_NOW = fcntl.LOCK_EX | fcntl.LOCK_NB
_LOOK = 0.25  # seconds in the queue after which the lock itself is tried
_NOTE = 40  # bytes, always: a longer one is written over by a shorter one


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
            if self._files is None:
                self._files = _Files(self._path)
            if not self._files.take_now() and not self._files.take(until, monotonic):
                raise self._impatient(patience)
            self._files.sign()
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
            if self._files is not None:
                self._files.close()
            self._files = None

    def _impatient(self, patience: float) -> StoreUnavailable:
        what = f"{self._path}: could not get the write lock within {patience:g} s"
        pid, state = holder_of(self._path)
        if pid is None:
            return StoreUnavailable(what, "Nothing was written. Try again in a moment.")
        if state != "stopped":
            return StoreUnavailable(f"{what} (held by process {pid})", "Nothing was written. Try again in a moment.")
        return StoreUnavailable(
            f"{what} (held by process {pid}, stopped)",
            f"Nothing was written. The lock is free as soon as process {pid} goes on (kill -CONT {pid}) or ends.",
        )


class _Files:
    """The two files, opened; and, once somebody had to wait, a thread that waits.

    A thread, because flock knows no time limit and a holder may be stopped for ever. Blocking in place would be a third
    faster between two busy processes, and hang with them. It waits on when its asker has left, for the next one: there
    is never more than one.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._turn = _open(path.removesuffix(".lock") + ".turn")
        self._lock = _open(path)
        self._passed: int | None = None  # the lock, where it was taken without a turn
        self._waiter: threading.Thread | None = None
        self._changed = threading.Condition()
        self._is_wanted = False  # somebody waits here for the thread to get the lock
        self._waits = False  # the thread is in the kernel, or on its way there
        self._closed = False

    def take_now(self) -> bool:
        if self._waits:  # flock takes this process for one: the thread would let go of what is taken here
            return False
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

    def take(self, until: float, monotonic: Callable[[], float]) -> bool:
        if self._waiter is None:
            self._waiter = threading.Thread(target=self._wait, name="tenure-turn", daemon=True)
            self._waiter.start()
        with self._changed:
            self._is_wanted = self._waits = True
            self._changed.notify_all()
            try:
                while not self._changed.wait_for(self._is_granted, min(_LOOK, max(0.0, until - monotonic()))):
                    if self._pass_by():
                        return True
                    if monotonic() >= until:
                        return False
            except BaseException:
                if self._is_granted():
                    self.give()
                raise
            else:
                return True
            finally:
                self._is_wanted = False

    def sign(self) -> None:
        """Name this process in the lock file. Only for messages: where it cannot be written, they say less."""
        with suppress(OSError):
            note = _own_note()
            if os.pread(self._lock, _NOTE, 0) != note:
                os.pwrite(self._lock, note, 0)

    def give(self) -> None:
        if self._passed is None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        else:
            os.close(self._passed)
            self._passed = None

    def close(self) -> None:
        """Only while nobody asks or holds. A thread in the kernel lets go as soon as it comes back."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            waits = self._waits
        if self._waiter is None:
            self._let_go()
        elif not waits:
            self._waiter.join()

    def _is_granted(self) -> bool:
        return not self._is_wanted

    def _pass_by(self) -> bool:
        """Take the lock without a turn, by a descriptor of its own. False where it is held."""
        handle = _open(self._path)
        try:
            fcntl.flock(handle, _NOW)
        except BlockingIOError:
            os.close(handle)
            return False
        self._passed = handle
        return True

    def _wait(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waits or self._closed)
                if self._closed:
                    self._let_go()
                    return
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            fcntl.flock(self._turn, fcntl.LOCK_UN)
            with self._changed:
                self._waits = False
                if self._is_wanted:
                    self._is_wanted = False
                    self._changed.notify_all()
                else:
                    fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _let_go(self) -> None:
        os.close(self._turn)
        os.close(self._lock)


def holder_of(path: str) -> tuple[int | None, str]:
    """The process that the lock file names, and `stopped` or `running`; None where it has ended or none is named."""
    try:
        with open(path, "rb") as file:
            pid, start = (int(word) for word in file.read(_NOTE).split())
    except (OSError, ValueError):
        return None, ""
    state, began = _process(pid)
    if not state or (start and began != start):
        return None, ""
    return pid, "stopped" if state in "Tt" else "running"


_notes: dict[int, bytes] = {}  # by pid: a fork has another


def _own_note() -> bytes:
    pid = os.getpid()
    if pid not in _notes:
        _notes.clear()
        _notes[pid] = f"{pid} {_process(pid)[1]}\n".encode().rjust(_NOTE)
    return _notes[pid]


def _process(pid: int) -> tuple[str, int]:
    """Its state as one letter, and when it began, in ticks; where the kernel has no such table, `?` and 0."""
    if not os.path.isdir("/proc/self"):
        return "?", 0
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # the name before may hold anything
    except OSError:
        return "", 0
    return fields[0].decode(), int(fields[19])


def _open(path: str) -> int:
    try:
        try:
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            with suppress(FileExistsError):
                make_private(path)
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise StoreUnavailable(f"{path}: cannot be opened: {error.strerror}") from error

"""Connections with their settings, the pool of idle ones, and the lock that decides whose turn it is to write.

SQLite's busy handler starves writers: of 8 processes one got 1 transaction while another got 10,797 in 3 s. So writers
lock two side files with flock: a writer takes `.turn`, then `.lock`, and releases `.turn`. A writer that comes again
finds `.turn` held by the one that waits for `.lock`, and queues behind it: 8 processes got 1,539 to 1,630 each, p99 5
ms. The kernel releases both when a process dies.

The lock file names its holder (pid and start time) for error messages, also where that process was stopped.

The turn is for fairness only. If somebody deletes the side files, BEGIN IMMEDIATE still keeps writers apart. So a
writer passes a queue that does not move, because the process at its head was stopped, where the lock itself is free.
"""
# ruff: noqa: PTH112, PTH123 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import apsw

from tenure.core.errors import StoreUnavailable, close_all, popped
from tenure.stores.sqlite.errors import moved, translated
from tenure.stores.sqlite.store_file import change_of, files_of, make_private, names_of

_NOW = fcntl.LOCK_EX | fcntl.LOCK_NB
_LOOK = 0.25  # seconds in the queue before the lock itself is tried
_NOTE = 40  # bytes, always: a shorter note must cover a longer one
_STATEMENTS = 256  # an update has one text per set of changed columns

_SETTINGS = (
    (apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1),  # otherwise every command that ends pays for a checkpoint
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),  # the schema has none; a planted one must not run
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (apsw.SQLITE_DBCONFIG_DQS_DML, 0),  # a misspelt "column" is an error, not a text
    (apsw.SQLITE_DBCONFIG_DQS_DDL, 0),
    # One plan per text, whatever is bound: without it half of a claim's time was planning (425 of 835 µs).
    (apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1),
)

# NORMAL would lose acknowledged writes in a power cut. fullfsync is for macOS, where fsync does not reach the disk.
_PRAGMAS = """
PRAGMA synchronous = FULL;
PRAGMA fullfsync = ON;
PRAGMA checkpoint_fullfsync = ON;
PRAGMA cell_size_check = ON;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -8000;
"""


class SqliteConnection:
    """One connection with one cursor; every result is read to its end at once."""

    __slots__ = ("execute", "executemany", "raw")

    def __init__(self, connection: apsw.Connection) -> None:
        cursor = connection.cursor()
        self.raw = connection
        self.execute: Callable[..., Any] = cursor.execute
        self.executemany: Callable[..., Any] = cursor.executemany

    def all(self, text: str, values: Any = ()) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.execute(text, values).fetchall()
        return rows

    def close(self) -> None:
        self.raw.close()


def connect(path: str, patience: float, *, wal: bool = True) -> SqliteConnection:
    """A connection to an existing file, with its settings. Never creates the file."""
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=_STATEMENTS)
    except apsw.Error as error:
        raise translated(error, path) from error
    try:
        # First: even the journal mode needs a lock, which others may hold for a moment.
        connection.set_busy_timeout(int(patience * 1000))
        for option, value in _SETTINGS:
            connection.config(option, value)
        connection.execute(_PRAGMAS).fetchall()
        if wal and connection.execute("PRAGMA journal_mode = WAL").fetchall() != [("wal",)]:
            raise StoreUnavailable(f"{path}: SQLite cannot use WAL here")
    except apsw.Error as error:
        connection.close()
        raise translated(error, path) from error
    except BaseException:
        connection.close()
        raise
    return SqliteConnection(connection)


class Connections:
    """Idle connections to one file, the last used on top. Appending to and popping from a list are atomic.

    The pool knows device and inode of the file and of the two beside it from its first connection on. `change` checks
    that they are still in place: writes to a removed file are lost with it.
    """

    def __init__(self, path: str, patience: float) -> None:
        self._path = path
        self._patience = patience
        self._idle: list[SqliteConnection] = []
        self._closed = False
        self._names = names_of(path)
        self._files: tuple[tuple[int, int], ...] | None = None

    def take(self) -> SqliteConnection:
        if self._closed:
            raise StoreUnavailable(f"{self._path}: the store was closed")
        try:
            return self._idle.pop()
        except IndexError:
            # Check first: where the log was removed, connecting would create a new one.
            if (change := self.change()) is not None:
                raise moved(change) from None
            connection = connect(self._path, self._patience)
        if self._files is None:
            connection.all("PRAGMA schema_version")  # a read opens all three files, and creates missing ones
            try:
                self._files = files_of(self._path)
            except OSError as error:
                connection.close()
                raise moved(f"{error.filename} was removed") from error
        return connection

    def change(self) -> str | None:
        """What happened to the files since the first connection; None where they are still in place."""
        return None if self._files is None else change_of(self._names, self._files)

    def give(self, connection: SqliteConnection) -> None:
        self._idle.append(connection)
        if self._closed:  # perhaps meanwhile
            self.close()

    def close(self) -> None:
        self._closed = True
        close_all(*(connection.close for connection in popped(self._idle)))


# --- whose turn it is to write ---


class TurnLock:
    """Held by one thread of one process at a time. `acquire` waits no longer than its patience."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._files: _Files | None = None

    def acquire(self, patience: float, monotonic: Callable[[], float]) -> None:
        """Raises StoreUnavailable after `patience` seconds."""
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
            f"Nothing was written. The lock is released once process {pid} continues (kill -CONT {pid}) or ends.",
        )


class _Files:
    """The two side files, and a thread that waits for them, started when a writer first has to wait.

    It is a thread because flock has no timeout and a holder may be stopped for ever. Blocking in place would be a third
    faster between two busy processes, and hang with them. When its writer gives up, the thread keeps waiting for the
    next one: there is never more than one.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._turn = _open(path.removesuffix(".lock") + ".turn")
        self._lock = _open(path)
        self._passed: int | None = None  # the lock's descriptor, where it was taken without a turn
        self._waiter: threading.Thread | None = None
        self._changed = threading.Condition()
        self._is_wanted = False  # a writer waits for the thread to get the lock
        self._waits = False  # the thread is in flock, or about to call it
        self._closed = False

    def take_now(self) -> bool:
        if self._waits:  # flock sees one process: the thread would release a lock taken here
            return False
        try:
            fcntl.flock(self._turn, _NOW)
        except BlockingIOError:
            return False
        try:
            fcntl.flock(self._lock, _NOW)
        except BlockingIOError:
            return False  # keeping the turn: the thread continues from here
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
        """Name this process in the lock file, for error messages alone: failing to write it is not an error."""
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
        """Call it while no writer waits or holds the lock. A thread in flock closes the files when it returns."""
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
        """Take the lock without a turn, by a separate descriptor. False where it is held."""
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
    """The process that the lock file names, and `stopped` or `running`; None where there is none or it has ended."""
    try:
        with open(path, "rb") as file:
            pid, start = (int(word) for word in file.read(_NOTE).split())
    except (OSError, ValueError):
        return None, ""
    state, began = _process(pid)
    if not state or (start and began != start):
        return None, ""
    return pid, "stopped" if state in "Tt" else "running"


_notes: dict[int, bytes] = {}  # by pid, which changes with a fork


def _own_note() -> bytes:
    pid = os.getpid()
    if pid not in _notes:
        _notes.clear()
        _notes[pid] = f"{pid} {_process(pid)[1]}\n".encode().rjust(_NOTE)
    return _notes[pid]


def _process(pid: int) -> tuple[str, int]:
    """Its state as one letter, and its start in ticks; `?` and 0 where there is no /proc."""
    if not os.path.isdir("/proc/self"):
        return "?", 0
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # the name before it may contain anything
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
    except PermissionError as error:
        from tenure.store_folder import unreadable  # here: no other command needs it

        raise StoreUnavailable(*unreadable(path, error)) from error
    except OSError as error:
        raise StoreUnavailable(
            f"{path}: cannot be opened: {error.strerror}", "check the folder's permissions and mount"
        ) from error

"""The store: opening, waiting, backup, check."""
# ruff: noqa: PTH104, PTH108, PTH110, PTH116 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import apsw

from tenure.core.errors import InvalidInput, StoreAway, StoreCorrupt
from tenure.core.records import KINDS
from tenure.stores.port import BACKUP, DURABLE, PROCESSES, WAKE_UPS, Clock
from tenure.stores.sqlite import place, schema
from tenure.stores.sqlite.connections import Connections, Link, connect
from tenure.stores.sqlite.failures import translated
from tenure.stores.sqlite.lock import TurnLock
from tenure.stores.sqlite.transaction import SqliteTransaction

LAST = "SELECT max(sequence) FROM event"
POLL = 0.02  # seconds between looks for what other processes wrote
LONG_LOG = 128 * 4096  # bytes of log beyond which whoever closes clears it

# Open stores of (process, path). SQLite keeps track of its file locks in memory, which a fork copies and the kernel
# does not: a child that goes on with them, or opens the same file, believes in locks that it hasn't got.
_opened: Counter[tuple[int, str]] = Counter()


class Sqlite:
    """Fulfils the port with one file. Opening makes it unless `create` is False."""

    features = frozenset({DURABLE, PROCESSES, WAKE_UPS, BACKUP})

    def __init__(
        self,
        path: str,
        *,
        clock: Clock | None = None,
        random: Callable[[int], bytes] = os.urandom,
        create: bool = True,
        patience: float = 10.0,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[threading.Condition, float], object] = threading.Condition.wait,
        mounts: str | None = None,
    ) -> None:
        """`patience`: seconds to wait for the turn to write. `mounts`: a table like /proc/self/mounts, for tests."""
        self.path = os.path.realpath(path)  # one name for all, or links would lead to other lock files
        self.url = f"sqlite://{self.path}"
        self.clock = clock or _host_clock
        self.patience = patience
        self.monotonic = monotonic
        self.written = threading.Condition()
        self._pause = pause
        self._random = random
        self._seen = 0  # the last sequence that this process has committed
        self._process = os.getpid()
        if any(path == self.path and process != self._process for process, path in _opened):
            raise self._forked()
        place.refuse_network(self.path, mounts)
        self.turn = TurnLock(self.path + ".lock")
        self.connections = Connections(self.path, self.patience)
        try:
            self._open(create)
        except apsw.Error as error:
            self.connections.close()
            raise translated(error, self.path) from error
        except BaseException:
            self.connections.close()
            raise
        _opened[self._process, self.path] += 1
        self._closed = False

    def begin(self, tenant: str, *, write: bool) -> SqliteTransaction:
        if tenant != "local":
            raise InvalidInput(f"tenant {tenant!r}: an SQLite store keeps only the tenant 'local'")
        if self._process != os.getpid():
            raise self._forked()
        return SqliteTransaction(self, tenant, write)

    def mark(self) -> int:
        ((last,),) = self._read(LAST)
        return last or 0

    def wait(self, mark: int, timeout: float) -> bool:
        """Commits of this process are noticed at once, those of others within 20 ms."""
        until = self.monotonic() + timeout
        while self.mark() <= mark:
            left = until - self.monotonic()
            if left <= 0:
                return False
            with self.written:
                if self._seen <= mark:
                    self._pause(self.written, min(left, POLL))
        return True

    def announce(self, sequence: int) -> None:
        """Wake those in this process who wait for events up to `sequence`, now committed."""
        with self.written:
            self._seen = max(self._seen, sequence)
            self.written.notify_all()

    def settled_here(self) -> None:
        with self.begin("local", write=True) as transaction:
            transaction.move_to(place.place_of(self.path))
        self.is_copy = False

    def backup(self, target: str) -> None:
        """In one step, so that writers, who go on, cannot make it begin again."""
        path = os.path.realpath(target)
        if os.path.lexists(path):
            raise InvalidInput(f"{target} exists already; a backup goes to a new file")
        link = self.connections.take()
        try:
            copy_whole(link, path)
        except BaseException as error:
            link.close()
            if isinstance(error, FileExistsError):
                raise InvalidInput(f"{target} exists already; a backup goes to a new file") from None
            if isinstance(error, OSError):
                raise StoreAway(f"{target}: cannot be made: {error.strerror}") from error
            if isinstance(error, apsw.Error):
                raise translated(error, path) from error
            raise
        self.connections.give(link)

    def check(self) -> list[str]:
        from tenure.stores.sql.orphans import orphans  # here: no other verb needs it

        try:
            wrong = [str(line) for (line,) in self._read("PRAGMA integrity_check")]
            if wrong != ["ok"]:
                return wrong
            found = []
            for what, text in orphans().items():
                ((count,),) = self._read(text)
                if count:
                    found.append(f"{count} rows of {what} name a task that is not there")
            for table in (*(kind.table for kind in KINDS.values()), "event"):
                ((count,),) = self._read(f"SELECT count(*) FROM {table} WHERE tenant <> 'local'")  # noqa: S608 - our own names
                if count:
                    found.append(f"{count} rows of {table} belong to another tenant")
        except StoreCorrupt as error:
            return [error.message]
        return found

    def close(self) -> None:
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        self._clear_log()
        self.connections.close()
        self.turn.close()
        _opened[self._process, self.path] -= 1
        _opened.__iadd__(Counter())  # forgets what is at nought

    def _clear_log(self) -> None:
        """Bring a long log into the database.

        SQLite would do so whenever the last connection closes, at three syncs a command. Never doing it is worse: after
        the last close nobody remembers what was brought over, so a row of single commands lets the log grow for
        ever and reads all of it each time (12 ms instead of 2).
        """
        try:
            if os.stat(f"{self.path}-wal").st_size <= LONG_LOG:
                return
            link = self.connections.take()
            link.connection.set_busy_timeout(0)  # where others are at work, they will see to it
            link.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            link.close()
        except (OSError, apsw.Error, StoreAway):
            pass

    def _forked(self) -> StoreAway:
        return StoreAway(
            f"{self.path} was open when this process was forked, and SQLite's locks do not survive that",
            "Start processes with spawn, or close the store before forking.",
        )

    def _open(self, create: bool) -> None:
        try:
            empty = os.stat(self.path).st_size == 0
        except FileNotFoundError:
            if not create:
                raise StoreAway(f"there is no store at {self.path}") from None
            self._make()
        except OSError as error:
            raise StoreAway(f"{self.path}: cannot be opened: {error.strerror}") from error
        else:
            if empty:  # we never leave one behind: it was cut off
                raise StoreCorrupt(f"{self.path} is empty", "It was left as it is. Restore a backup.")
        link = self.connections.take()
        try:
            found = schema.look(link, self.path) or self._upgrade(link)
        except BaseException:
            link.close()
            raise
        self.connections.give(link)
        self.schema = found.schema
        self.is_copy = found.place != place.place_of(self.path)

    def _make(self) -> None:
        """A whole new store under another name, then moved to its own: nobody ever meets half of one."""
        place.make_folder(self.path)
        self.turn.acquire(self.patience, self.monotonic)
        draft = f"{self.path}.new"
        try:
            if os.path.exists(self.path):  # another process was first
                return
            for left in (f"{self.path}-wal", f"{self.path}-journal"):
                if os.path.exists(left):
                    raise StoreCorrupt(
                        f"{left} lies there without its database, which a new one must not be mixed with",
                        "Put the database back, or move this file away.",
                    )
            place.make_private(draft, anew=True)
            link = connect(draft, self.patience, wal=False)
            try:
                schema.make(link, self._random(4).hex(), place.place_of(draft), self.clock())
                link.all("PRAGMA journal_mode = WAL")
                link.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            finally:
                link.close()
            os.rename(draft, self.path)
            place.sync_new(self.path)
        except OSError as error:
            raise StoreAway(f"{self.path}: cannot be made: {error.strerror}") from error
        finally:
            self.turn.release()

    def _upgrade(self, link: Link) -> schema.Found:
        """Apply what is pending, under the write lock, after a backup beside the file."""
        self.turn.acquire(self.patience, self.monotonic)
        try:
            found = schema.look(link, self.path)  # another process may have been first
            if found is None:
                self._back_up_beside(link)
                schema.upgrade(link, self.clock())
                found = schema.look(link, self.path)
        finally:
            self.turn.release()
        if found is None:
            raise StoreCorrupt(f"{self.path}: migrations were applied and are still pending")
        return found

    def _back_up_beside(self, link: Link) -> None:
        ((number,),) = link.all("SELECT schema FROM meta")
        target = f"{self.path}.schema-{number:04d}.backup"
        if os.path.exists(target):
            return  # of an upgrade that was cut off later: the older one is the better one
        try:
            copy_whole(link, target)
        except OSError as error:
            raise StoreAway(f"{target}: cannot be made: {error.strerror}") from error

    def _read(self, text: str) -> list[tuple[Any, ...]]:
        if self._process != os.getpid():
            raise self._forked()
        link = self.connections.take()
        try:
            rows = link.all(text)
        except apsw.Error as error:
            link.close()
            raise translated(error, self.path) from error
        self.connections.give(link)
        return rows


def copy_whole(link: Link, target: str) -> None:
    """As `copy_into`, at a name that nothing has, which a copy that was cut off never gets."""
    draft = f"{target}.new"
    place.make_private(draft, anew=True)
    try:
        copy_into(link, draft)
        try:
            os.link(draft, target)  # and not renamed: what another process has put there meanwhile stays
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            os.rename(draft, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)
    place.sync_folder(target)


def copy_into(link: Link, path: str) -> None:
    """One moment of the database, as a database without a log beside it, synced, at an empty file."""
    target = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with target.backup("main", link.connection, "main") as copying:
            while not copying.done:
                copying.step(-1)
    finally:
        target.close()
    place.sync_folder(path)


def _host_clock() -> int:
    return time.time_ns() // 1000

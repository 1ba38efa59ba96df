"""The store: opening, waiting, backup, check."""
# ruff: noqa: PTH104, PTH108, PTH110, PTH116 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import apsw

from tenure.core import limits
from tenure.core.errors import InvalidInput, StoreCorrupt, StoreUnavailable
from tenure.core.records import KINDS
from tenure.stores.host_clock import reader_of
from tenure.stores.port import BACKUP, DURABLE, HOST_CLOCK, PROCESSES, WAKE_UPS, Clock
from tenure.stores.sqlite import schema, store_file
from tenure.stores.sqlite.connections import Connections, SqliteConnection, connect
from tenure.stores.sqlite.errors import moved, translated
from tenure.stores.sqlite.lock import TurnLock
from tenure.stores.sqlite.noted_sequence import EVERY, note, noted
from tenure.stores.sqlite.transaction import SqliteTransaction

T = TypeVar("T")

LAST = "SELECT max(sequence) FROM event"
COPIED = "copy"  # stands in a backup where a store has its device and inode
POLL = 0.02  # seconds between looks for what other processes wrote
LONG_LOG = 128 * 4096  # bytes of log beyond which whoever closes clears it

# Open stores of (process, path). SQLite keeps track of its file locks in memory, which a fork copies and the kernel
# does not: a child that goes on with them, or opens the same file, believes in locks that it hasn't got.
_opened: Counter[tuple[int, str]] = Counter()


class Sqlite:
    """Fulfils the port with one file. Opening makes it unless `create` is False."""

    features = frozenset({DURABLE, PROCESSES, WAKE_UPS, BACKUP, HOST_CLOCK})

    def __init__(
        self,
        path: str,
        *,
        clock: Clock | None = None,
        random: Callable[[int], bytes] = os.urandom,
        create: bool = True,
        patience: float = limits.WRITE_WAIT,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[threading.Condition, float], object] = threading.Condition.wait,
        mounts: str | None = None,
    ) -> None:
        """`patience`: seconds to wait for the turn to write. `mounts`: a table like /proc/self/mounts, for tests."""
        self.path = os.path.realpath(path)  # one name for all, or links would lead to other lock files
        self.url = f"sqlite://{self.path}"
        self.clock = reader_of(clock)
        self.patience = patience
        self.monotonic = monotonic
        self.written = threading.Condition()
        self._pause = pause
        self._random = random
        self._seen = 0  # the last sequence that this process has committed, and in which epoch
        self._seen_epoch = ""
        self._noted = 0  # of that, what the user's state folder says
        self._noted_at = monotonic()
        self._lost: str | None = None  # what happened to the file, once it is not used any more
        self._opening = threading.Lock()
        self._process = os.getpid()
        if any(path == self.path and process != self._process for process, path in _opened):
            raise self._forked()
        store_file.refuse_network(self.path, mounts)
        self.turn = TurnLock(self.path + ".lock")
        self._open(create)
        _opened[self._process, self.path] += 1
        self._closed = False

    def begin(self, tenant: str, *, write: bool) -> SqliteTransaction:
        if tenant != "local":
            raise InvalidInput(f"tenant {tenant!r}: an SQLite store keeps only the tenant 'local'")
        return SqliteTransaction(self, self._ready(), tenant, write)

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

    def announce(self, sequence: int, epoch: str, ended: str | None = None) -> None:
        """Wake those in this process who wait for events up to `sequence`, now committed; `ended` is the epoch before.

        Nobody announces what was not committed, or committed to a file that is gone.
        """
        with self.written:
            self._seen, self._seen_epoch = max(self._seen, sequence), epoch
            self.written.notify_all()
        if ended is not None:
            note(self._place, {ended: sequence, epoch: sequence}, os.environ)
        elif self.monotonic() - self._noted_at >= EVERY:
            self._note()

    def _note(self) -> None:
        self._noted_at = self.monotonic()
        if self._seen > self._noted:
            self._noted = self._seen
            note(self._place, {self._seen_epoch: self._seen}, os.environ)

    def lose(self, connections: Connections, change: str) -> None:
        """The files are not those that were opened: these connections serve nobody any more."""
        connections.close()
        if self.connections is connections:
            self._lost = change

    def _ready(self) -> Connections:
        if self._process != os.getpid():
            raise self._forked()
        if self._lost is not None:
            self._open_again(self._lost)
        return self.connections

    def _open_again(self, change: str) -> None:
        """Open what lies at the path now as any store is opened; raises Moved or StoreAway all the same.

        So whoever asks again meets a store that has said whether it is a copy, and an engine that has heard it.
        """
        with self._opening:
            if self._lost is None:
                return  # another thread was first
            if not os.path.exists(self.path):
                raise moved(change)
            self.turn.close()  # its files may be gone too
            seen = {self._seen_epoch: self._seen}
            self._open(False, seen)
            self._seen = self._noted = 0
            self._lost = None
        raise StoreUnavailable(
            f"{change} while this process had the store open; nothing was written",
            f"{self.path} was opened again: send it again.",
        )

    def settled_here(self) -> None:
        with self.begin("local", write=True) as transaction:
            transaction.move_to(store_file.place_of(self.path))
        self.is_copy = False

    def backup(self, target: str) -> None:
        """In one step, so that writers, who go on, cannot make it begin again. The copy says that it is one."""
        path = os.path.realpath(target)
        taken = InvalidInput(f"{target} exists already; a backup goes to a new file")
        if os.path.lexists(path):
            raise taken
        try:
            self._use(lambda link: copy_whole(link, path), path)
        except FileExistsError:
            raise taken from None
        except OSError as error:
            raise StoreUnavailable(f"{target}: cannot be made: {error.strerror}") from error

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
        self._note()
        if self._lost is None:
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
        except (OSError, apsw.Error, StoreUnavailable):
            pass

    def _forked(self) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self.path} was open when this process was forked, and SQLite's locks do not survive that",
            "Start processes with spawn, or close the store before forking.",
        )

    def _open(self, create: bool, seen: Mapping[str, int] | None = None) -> None:
        """`seen`: the last sequence of an epoch that this process knows of, where it has had a store here before."""
        try:
            empty = os.stat(self.path).st_size == 0
        except FileNotFoundError:
            if not create:
                raise StoreUnavailable(f"there is no store at {self.path}") from None
            self._make()
        except OSError as error:
            raise StoreUnavailable(f"{self.path}: cannot be opened: {error.strerror}") from error
        else:
            if empty:  # we never leave one behind: it was cut off
                raise StoreCorrupt(f"{self.path} is empty", "It was left as it is. Restore a backup.")
            try:
                self._look_at_log()
            except OSError as error:
                raise StoreUnavailable(f"{self.path}: cannot be opened: {error.strerror}") from error
        connections = Connections(self.path, self.patience)
        link = None
        try:
            link = connections.take()
            found = schema.look(link, self.path) or self._upgrade(link)
            ((last,),) = link.all(LAST)
            here = store_file.place_of(self.path)
            known = max(kept.get(found.epoch, 0) for kept in (noted(here, os.environ), seen or {}))
        except BaseException as error:
            if link is not None:
                link.close()
            connections.close()
            if isinstance(error, apsw.Error):
                raise translated(error, self.path) from error
            if isinstance(error, OSError):
                raise StoreUnavailable(f"{self.path}: cannot be opened: {error.strerror}") from error
            raise
        connections.give(link)
        self.schema, self._place = found.schema, here
        self.is_copy = found.place != here or (last or 0) < known
        self.connections = connections

    def _look_at_log(self) -> None:
        """Before the file is opened: is the log beside it its own?

        Removed while others have the store open: their shared index speaks of pages of the log that they have, and
        with a new log these would be read as damage. Left of a file that a backup was copied over: it would be read
        into the backup, so it goes aside.
        """
        _, log, index = store_file.names_of(self.path)
        is_open_here = (self._process, self.path) in _opened
        try:
            is_foreign = os.stat(log).st_size > 0 and not is_open_here and store_file.is_one_file(self.path)
        except FileNotFoundError:
            if os.path.exists(index) and (is_open_here or store_file.is_shared(index)):
                raise StoreUnavailable(
                    f"{log} was removed while a process had the store open",
                    "End what uses it (tenure run, serve, daemon, mcp, workers), then open it again; what only the log "
                    "had is lost. `tenure db restore` puts a backup in its place.",
                ) from None
            return
        if not is_foreign:
            return
        self.turn.acquire(self.patience, self.monotonic)
        try:
            if os.path.exists(index) and store_file.is_shared(index):
                raise StoreUnavailable(
                    f"a backup was copied over {self.path} while a process had the store open",
                    "End what uses it (tenure run, serve, daemon, mcp, workers), then open it again.",
                )
            store_file.put_aside(log)
        finally:
            self.turn.release()

    def _make(self) -> None:
        """A whole new store under another name, then moved to its own: nobody ever meets half of one."""
        store_file.make_folder(self.path)
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
            store_file.make_private(draft, anew=True)
            link = connect(draft, self.patience, wal=False)
            try:
                schema.make(link, self._random(4).hex(), store_file.place_of(draft), self.clock().wall)
                link.all("PRAGMA journal_mode = WAL")
                link.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            finally:
                link.close()
            os.rename(draft, self.path)
            store_file.sync_new(self.path)
        except OSError as error:
            raise StoreUnavailable(f"{self.path}: cannot be made: {error.strerror}") from error
        except apsw.Error as error:
            raise translated(error, self.path) from error
        finally:
            self.turn.release()

    def _upgrade(self, link: SqliteConnection) -> schema.FoundFile:
        """Apply what is pending, under the write lock, after a backup beside the file."""
        self.turn.acquire(self.patience, self.monotonic)
        try:
            found = schema.look(link, self.path)  # another process may have been first
            if found is None:
                self._back_up_beside(link)
                schema.upgrade(link, self.clock().wall)
                found = schema.look(link, self.path)
        finally:
            self.turn.release()
        if found is None:
            raise StoreCorrupt(f"{self.path}: migrations were applied and are still pending")
        return found

    def _back_up_beside(self, link: SqliteConnection) -> None:
        ((number,),) = link.all("SELECT schema FROM meta")
        target = f"{self.path}.schema-{number:04d}.backup"
        if os.path.exists(target):
            return  # of an upgrade that was cut off later: the older one is the better one
        try:
            copy_whole(link, target)
        except OSError as error:
            raise StoreUnavailable(f"{target}: cannot be made: {error.strerror}") from error

    def _read(self, text: str) -> list[tuple[Any, ...]]:
        return self._use(lambda link: link.all(text))

    def _use(self, ask: Callable[[SqliteConnection], T], path: str | None = None) -> T:
        """What `ask` gives, of a link to the file that lies at the path. An error names `path`, if one is given."""
        connections = self._ready()
        if (change := connections.change()) is not None:
            self.lose(connections, change)
            raise moved(change)
        link = connections.take()
        try:
            answer = ask(link)
        except BaseException as error:
            link.close()  # one that met a fault may fail when that is over
            if isinstance(error, apsw.Error):
                raise translated(error, path or self.path) from error
            raise
        connections.give(link)
        return answer


def copy_whole(link: SqliteConnection, target: str) -> None:
    """As `copy_into`, at a name that nothing has, which a copy that was cut off never gets."""
    draft = f"{target}.new"
    store_file.make_private(draft, anew=True)
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
    store_file.sync_folder(target)


def copy_into(link: SqliteConnection, path: str) -> None:
    """One moment of the database, as a database without a log beside it, synced, at an empty file.

    It says of itself that it is a copy, so that it begins a new epoch when it is opened as a store, wherever it lies.
    """
    target = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with target.backup("main", link.connection, "main") as copying:
            while not copying.done:
                copying.step(-1)
        target.execute("PRAGMA journal_mode = DELETE").fetchall()  # so that no log can be taken for its own
        target.execute("UPDATE meta SET place = ?", (COPIED,)).fetchall()
    finally:
        target.close()
    store_file.sync_folder(path)

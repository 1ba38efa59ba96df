"""The store: opening, waiting, backup, check."""
# ruff: noqa: PTH104, PTH110, PTH116 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from tenure.core import limits
from tenure.core.errors import InvalidInput, NoStore, StoreCorrupt, StoreUnavailable, close_all
from tenure.core.records import KINDS
from tenure.stores.host_clock import reader_of
from tenure.stores.port import BACKUP, DURABLE, HOST_CLOCK, PROCESSES, SNAPSHOTS, WAKE_UPS, Clock, ForLeader
from tenure.stores.sqlite import store_file
from tenure.stores.sqlite.connections import Connections, SqliteConnection, TurnLock, connect
from tenure.stores.sqlite.errors import moved, translated
from tenure.stores.sqlite.store_file import FoundFile
from tenure.stores.sqlite.transaction import SqliteTransaction
from tenure.user_state import NOTE_EVERY, note, noted

if TYPE_CHECKING:
    from tenure.stores.sqlite.commit_watch import CommitWatch

T = TypeVar("T")

LAST = "SELECT max(sequence) FROM event"
LONG_LOG = 128 * 4096  # bytes of log beyond which `close` clears it

# Open stores of (process, path). SQLite keeps its file locks in memory, which a fork copies; the kernel does not copy
# the locks. A child that uses the store, or opens the same file, relies on locks that it does not hold.
_opened: Counter[tuple[int, str]] = Counter()


class Sqlite:
    """Implements the port with one file. Opening creates it unless `create` is False."""

    features = frozenset({DURABLE, PROCESSES, WAKE_UPS, BACKUP, HOST_CLOCK, SNAPSHOTS})

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
        """`patience`: seconds to wait for the write lock. `mounts`: a table like /proc/self/mounts, for tests."""
        self.path = os.path.realpath(path)  # one name for all: symbolic links must not lead to other lock files
        self.url = f"sqlite://{self.path}"
        self.clock = reader_of(clock)
        self.patience = patience
        self.monotonic = monotonic
        self.written = threading.Condition()
        self._pause = pause
        self._watch: CommitWatch | None = None
        self._random = random
        self._seen = 0  # the last sequence that this process has committed, and its epoch
        self._seen_epoch = ""
        self._noted = 0  # the last one in the user's state folder
        self._noted_at = monotonic()
        self._lost: str | None = None  # what happened to the file, once it is no longer used
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
        _refuse_others(tenant)
        return SqliteTransaction(self, self._ready(), tenant, write)

    def mark(self, tenant: str) -> int:
        _refuse_others(tenant)
        ((last,),) = self._read(LAST)
        return last or 0

    def marks(self, tenants: Collection[str]) -> dict[str, int]:
        return {tenant: self.mark(tenant) for tenant in tenants}

    def tenants_due(self, tenants: Collection[str], until: int, since: int) -> dict[str, ForLeader]:
        from tenure.stores.tenants_due import tenants_due  # here: no command needs it

        return tenants_due(self, tenants, until, since)

    def wait(self, marks: Mapping[str, int], timeout: float) -> frozenset[str]:
        """Commits of this process are noticed at once, those of others within 20 ms, or 50 after two quiet seconds."""
        _refuse_others(*marks)
        until = self.monotonic() + timeout
        for tenant, mark in marks.items():  # one at most
            watch = self._watch or self._new_watch()
            heard = watch.heard  # before the look: a commit after it is news
            while self.mark(tenant) <= mark:
                if self.monotonic() >= until:
                    return frozenset()
                watch.wait(heard, lambda mark=mark: self._seen > mark, until)  # type: ignore[misc]
                heard = watch.heard
        return frozenset(marks)

    def _new_watch(self) -> CommitWatch:
        from tenure.stores.sqlite.commit_watch import CommitWatch  # here: most commands never wait

        with self.written:
            if self._watch is None:
                self._watch = CommitWatch(lambda: self.connections, self.written, self._pause, self.monotonic)
            return self._watch

    def announce(self, sequence: int, epoch: str, ended: str | None = None) -> None:
        """Wake waiters of this process after a commit up to `sequence`; `ended` is the previous epoch, if it ended.

        Not called for a commit that failed, or that went to a file that was removed.
        """
        with self.written:
            self._seen, self._seen_epoch = max(self._seen, sequence), epoch
            self.written.notify_all()
        if ended is not None:
            note(self._place, {ended: sequence, epoch: sequence}, os.environ)
        elif self.monotonic() - self._noted_at >= NOTE_EVERY:
            self._note()

    def _note(self) -> None:
        self._noted_at = self.monotonic()
        if self._seen > self._noted:
            self._noted = self._seen
            note(self._place, {self._seen_epoch: self._seen}, os.environ)

    def lose(self, connections: Connections, change: str) -> None:
        """The files are not those that were opened: these connections must not be used any more."""
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
        """Open the file that lies at the path now, like any store. Always raises Moved or StoreUnavailable.

        The caller's next attempt then uses a store whose `is_copy` is known, and an engine that has read it.
        """
        with self._opening:
            if self._lost is None:
                return  # another thread was first
            if not os.path.exists(self.path):
                raise moved(change)
            self.turn.close()  # its files may have been removed too
            seen = {self._seen_epoch: self._seen}
            self._open(False, seen)
            self._seen = self._noted = 0
            self._lost = None
        raise StoreUnavailable(
            f"{change} while this process had the store open; nothing was written",
            f"{self.path} was opened again. Send the command again.",
        )

    def begin_epochs(self, besides: str) -> list[str]:
        return []

    def settled_here(self) -> list[str]:
        with self.begin("local", write=True) as transaction:
            transaction.move_to(store_file.place_of(self.path))
        self.is_copy = False
        return []

    def backup(self, target: str) -> None:
        """In one step, so that concurrent writers cannot make it start over. The copy is marked as one."""
        from tenure.stores.sqlite.backup import copy_whole  # here: no other verb needs it

        path = os.path.realpath(target)
        taken = InvalidInput(f"{target} exists already; a backup goes to a new file")
        if os.path.lexists(path):
            raise taken
        try:
            self._use(lambda connection: copy_whole(connection, path), path)
        except FileExistsError:
            raise taken from None
        except OSError as error:
            raise StoreUnavailable(f"{target}: cannot be created: {error.strerror}") from error

    @property
    def is_lost(self) -> bool:
        """Whether its file was removed or replaced, and not opened again since."""
        return self._lost is not None

    @property
    def place(self) -> str:
        """Device and inode of its file: by them its last event is noted."""
        return self._place

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
                    found.append(f"{count} rows of {what} name a task that does not exist")
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
        _opened[self._process, self.path] -= 1
        _opened.__iadd__(Counter())  # drops entries that are zero
        first = [] if self._watch is None else [self._watch.close]
        if self._lost is None:
            first += [self._clear_log]
        close_all(*first, self._note, self.connections.close, self.turn.close)

    def _clear_log(self) -> None:
        """Move a long log into the database.

        SQLite would do so whenever the last connection closes, at three syncs per command. Never doing it is worse: no
        process remembers how much was moved, so with single commands the log grows for ever, and each of them reads
        all of it (12 ms instead of 2).
        """
        try:
            if os.stat(f"{self.path}-wal").st_size <= LONG_LOG:
                return
            connection = self.connections.take()
            connection.raw.set_busy_timeout(0)  # another process that is at work will do it
            connection.raw.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            connection.close()
        except (OSError, apsw.Error, StoreUnavailable):
            pass

    def _forked(self) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self.path} was open when this process was forked, and SQLite's locks do not survive that",
            "Start processes with spawn, or close the store before forking.",
        )

    def _open(self, create: bool, seen: Mapping[str, int] | None = None) -> None:
        """`seen`: the last sequence of each epoch that this process has seen in a store at this path."""
        with self._errors("opened"):
            try:
                status = os.stat(self.path)
                if stat.S_ISDIR(status.st_mode):
                    raise NoStore(f"{self.path} is a folder", "Name the file in it, as in .tenure/tenure.db.")
                if status.st_size == 0:  # we never leave an empty file behind: it was truncated
                    raise StoreCorrupt(f"{self.path} is empty", "It was left as it is. Restore a backup.")
            except FileNotFoundError:
                if not create:
                    from tenure.store_folder import lost_at  # here: nobody else needs it

                    raise lost_at(self.path, os.environ) or NoStore.at(f"at {self.path}") from None
                with self._errors("created"):
                    self._make()
            else:
                self._check_log()
            connections = Connections(self.path, self.patience)
            connection = None
            try:
                connection = connections.take()
                found = store_file.look(connection, self.path) or self._upgrade(connection)
                here = store_file.place_of(self.path)
                known = max(kept.get(found.epoch, 0) for kept in (noted(here, os.environ), seen or {}))
                ((last,),) = connection.all(LAST)  # after the note: another process may commit, and note it, in between
            except BaseException:
                close_all(*(() if connection is None else (connection.close,)), connections.close)
                raise
        connections.give(connection)
        self.schema, self._place = found.schema, here
        self.is_copy = found.place != here or (last or 0) < known
        self.connections = connections

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Errors of SQLite and of the file system as ours; `what` could not be done with the file."""
        try:
            yield
        except apsw.Error as error:
            raise translated(error, self.path) from error
        except OSError as error:
            if isinstance(error, PermissionError) and what == "opened":
                from tenure.store_folder import unreadable  # here: no other command needs it

                raise StoreUnavailable(*unreadable(self.path, error)) from error
            raise StoreUnavailable(f"{self.path}: cannot be {what}: {error.strerror}") from error

    def _check_log(self) -> None:
        """Before the file is opened: does the log beside it belong to it?

        If it was removed while other processes have the store open, their shared index refers to pages of the removed
        log; a new log would be read as damage. If it remains from a file that a backup was copied over, SQLite would
        read it into the backup, so it is renamed.
        """
        _, log, index = store_file.names_of(self.path)
        is_open_here = (self._process, self.path) in _opened
        try:
            is_foreign = os.stat(log).st_size > 0 and not is_open_here and store_file.is_one_file(self.path)
        except FileNotFoundError:
            if os.path.exists(index) and (is_open_here or store_file.is_shared(index)):
                raise StoreUnavailable(
                    f"{log} was removed while a process had the store open",
                    "Stop its users (tenure run, serve, daemon, mcp, workers), then open it again; changes that only "
                    "the log had are lost. `tenure db restore` puts a backup in its place.",
                ) from None
            return
        if not is_foreign:
            return
        self.turn.acquire(self.patience, self.monotonic)
        try:
            if os.path.exists(index) and store_file.is_shared(index):
                raise StoreUnavailable(
                    f"a backup was copied over {self.path} while a process had the store open",
                    "Stop its users (tenure run, serve, daemon, mcp, workers), then open it again.",
                )
            store_file.put_aside(log)
        finally:
            self.turn.release()

    def _make(self) -> None:
        """Create the store under another name, then rename it: no process ever opens half of one."""
        from tenure.stores.sqlite import schema  # here: only a new or an older file needs it

        store_file.make_folder(self.path)
        self.turn.acquire(self.patience, self.monotonic)
        draft = f"{self.path}.new"
        try:
            if os.path.exists(self.path):  # another process was first
                return
            for left in (f"{self.path}-wal", f"{self.path}-journal"):
                if os.path.exists(left):
                    raise StoreCorrupt(
                        f"{left} is a log without its database; a new database must not read it",
                        "Put the database back, or move this file to another folder.",
                    )
            store_file.make_private(draft, replace=True)
            connection = connect(draft, self.patience, wal=False)
            try:
                schema.make(connection, self._random(4).hex(), store_file.place_of(draft), self.clock().wall)
                connection.all("PRAGMA journal_mode = WAL")
                connection.raw.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
            finally:
                connection.close()
            os.rename(draft, self.path)
            store_file.sync_new(self.path)
        finally:
            self.turn.release()

    def _upgrade(self, connection: SqliteConnection) -> FoundFile:
        """Apply pending migrations, under the write lock, after a backup beside the file."""
        from tenure.stores.sqlite import schema

        self.turn.acquire(self.patience, self.monotonic)
        try:
            found = store_file.look(connection, self.path)  # another process may have been first
            if found is None:
                self._back_up_beside(connection)
                schema.upgrade(connection, self.clock().wall)
                found = store_file.look(connection, self.path)
        finally:
            self.turn.release()
        if found is None:
            raise StoreCorrupt(f"{self.path}: migrations were applied and are still pending")
        return found

    def _back_up_beside(self, connection: SqliteConnection) -> None:
        from tenure.stores.sqlite.backup import copy_whole

        ((number,),) = connection.all("SELECT schema FROM meta")
        target = f"{self.path}.schema-{number:04d}.backup"
        if os.path.exists(target):
            return  # of an interrupted upgrade: the older backup is the better one
        try:
            copy_whole(connection, target)
        except OSError as error:
            raise StoreUnavailable(f"{target}: cannot be created: {error.strerror}") from error

    def _read(self, text: str) -> list[tuple[Any, ...]]:
        return self._use(lambda connection: connection.all(text))

    def _use(self, ask: Callable[[SqliteConnection], T], path: str | None = None) -> T:
        """The result of `ask` on a connection, once the files are known to be in place. An error names `path`."""
        connections = self._ready()
        if (change := connections.change()) is not None:
            self.lose(connections, change)
            raise moved(change)
        connection = connections.take()
        try:
            answer = ask(connection)
        except BaseException as error:
            connection.close()  # after an I/O error it may keep failing
            if isinstance(error, apsw.Error):
                raise translated(error, path or self.path) from error
            raise
        connections.give(connection)
        return answer


def _refuse_others(*tenants: str) -> None:
    for tenant in tenants:
        if tenant != "local":
            raise InvalidInput(f"tenant {tenant!r}: an SQLite store keeps only the tenant 'local'")

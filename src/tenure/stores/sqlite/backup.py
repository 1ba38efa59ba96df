"""Backups: an exact copy of a store, and the restore that puts one in a store's place.

A restore makes a checked draft beside the store, then renames it. The previous store keeps its bytes under another
name. There is a whole store at every moment.
"""
# ruff: noqa: PTH104, PTH108, PTH110, PTH113, PTH118, PTH208 - as in the store

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import NoReturn
from urllib.parse import quote

import apsw

from tenure.core.errors import InvalidInput, StoreCorrupt, StoreUnavailable
from tenure.stores.sqlite import store_file
from tenure.stores.sqlite.connections import SqliteConnection
from tenure.stores.sqlite.errors import translated

COPIED = "copy"  # stands in a backup where a store has its device and inode
# Where SQLite keeps its readers' locks: an open connection in WAL mode holds one there.
_READERS = 0x40000002
_SIZE = 510
_COMPANIONS = ("-wal", "-shm", "-journal")


def copy_whole(connection: SqliteConnection, target: str) -> None:
    """As `copy_into`, to a new name, which an interrupted copy never gets. Raises FileExistsError where it is taken."""
    draft = f"{target}.new"
    store_file.make_private(draft, replace=True)
    try:
        copy_into(connection, draft)
        try:
            os.link(draft, target)  # not renamed: that would replace a file that another process has put there
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            os.rename(draft, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)
    store_file.sync_folder(target)


def copy_into(connection: SqliteConnection, path: str) -> None:
    """One snapshot of the database, without a log beside it, synced, into an empty file.

    It is marked as a copy, so that it begins a new epoch when it is opened as a store, wherever it lies.
    """
    target = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        with target.backup("main", connection.raw, "main") as copying:
            while not copying.done:
                copying.step(-1)
        target.execute("PRAGMA journal_mode = DELETE").fetchall()  # so that it accepts no log that lies beside it
        target.execute("UPDATE meta SET place = ?", (COPIED,)).fetchall()
    finally:
        target.close()
    store_file.sync_folder(path)


def looked_at(path: str) -> tuple[str, int, str]:
    """The epoch and the last event of a backup, and the first fault of its pages: empty where it is sound."""
    connection = apsw.Connection(
        f"file:{quote(path)}?mode=ro&immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        ((wrong,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
        if wrong != "ok":
            return "", 0, str(wrong)
        ((epoch, last),) = connection.execute("SELECT epoch, (SELECT max(sequence) FROM event) FROM meta").fetchall()
        return str(epoch), int(last or 0), ""
    except apsw.Error as error:
        return "", 0, str(error)
    finally:
        connection.close()


def make_draft(backup: str, target: str) -> str:
    """A copy of the backup beside the target, after a check of its bytes and its schema; returns the copy's path.

    Raises InvalidInput, StoreCorrupt or SchemaMismatch where it is not a valid backup. The backup is only read.
    """
    backup, target = os.path.realpath(backup), os.path.realpath(target)
    if backup == target:
        raise InvalidInput(f"{target} is the store itself, not a backup of it")
    if not os.path.isfile(backup):
        raise InvalidInput(f"there is no backup {backup}", "`tenure db backup FILE` makes one")
    store_file.make_folder(target)
    draft = f"{target}.restoring"
    forget_draft(draft)  # of an interrupted restore
    try:
        store_file.make_private(draft)
    except OSError as error:
        raise StoreUnavailable(f"{draft}: cannot be created: {error.strerror}") from error
    try:
        _copy_checked(backup, draft)
    except BaseException:
        forget_draft(draft)
        raise
    return draft


def _copy_checked(backup: str, draft: str) -> None:
    # A file without a log beside it is opened as immutable: backups may be read-only, and so may their folder.
    alone = not os.path.exists(f"{backup}-wal")
    name = f"file:{quote(backup)}?mode=ro{'&immutable=1' if alone else ''}"
    try:
        connection = SqliteConnection(apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI))
        try:
            wrong = [str(line) for (line,) in connection.all("PRAGMA integrity_check(5)")]
            if wrong != ["ok"]:
                raise StoreCorrupt(f"{backup} is damaged: {wrong[0]}", "It was left as it is. Restore another backup.")
            store_file.look(connection, backup)
            copy_into(connection, draft)
        finally:
            connection.close()
    except apsw.Error as error:
        meant = translated(error, backup)
        if isinstance(meant, StoreCorrupt):
            raise StoreCorrupt(f"{backup} is not a sound SQLite database: {error}", "Name another backup.") from error
        raise meant from error


def forget_draft(draft: str) -> None:
    """Delete a draft, and files that opening it left beside it."""
    folder, name = os.path.split(draft)
    for found in os.listdir(folder):
        if found == name or (found.startswith(name) and not found[len(name)].isalnum()):
            os.unlink(os.path.join(folder, found))


def put_in_place(draft: str, target: str, name: str) -> str | None:
    """Rename the draft to the target. Returns the new path of the previous store; None where there was none.

    That path ends with `name`. Raises StoreUnavailable, with nothing done, while another process has the store open.
    """
    target = os.path.realpath(target)
    aside = f"{target}.{name}"
    if os.path.lexists(aside):
        raise InvalidInput(f"{aside} exists already: refusing to overwrite the previous store")
    _as_one_file(draft)
    existed = os.path.lexists(target)
    try:
        if not existed:
            _refuse_log_alone(target)
        elif _as_one_file(target):
            os.link(target, aside)  # a second name, so that the rename below leaves no moment without a store
        else:
            _put_damaged_aside(target, aside)
        os.rename(draft, target)
        store_file.sync_folder(target)
    except OSError as error:
        raise StoreUnavailable(f"{target}: the restored store cannot be put there: {error.strerror}") from error
    forget_draft(draft)
    return aside if existed else None


def _as_one_file(path: str) -> bool:
    """Move its log into the database, so that a rename takes all of it; False where it is too damaged for that.

    This also proves that no other process has it open: SQLite leaves WAL only when it is alone.
    """
    _refuse_while_open(path)
    if not _is_database(path):
        return False
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(0)
        connection.execute("PRAGMA synchronous = FULL").fetchall()
        return connection.execute("PRAGMA journal_mode = DELETE").fetchall() == [("delete",)]
    except (apsw.BusyError, apsw.LockedError):
        _in_use(path)
    except apsw.Error:
        return False
    finally:
        connection.close()


def _is_database(path: str) -> bool:
    """Opened read-only: a connection that may write deletes a log that does not belong to the file."""
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return False
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except apsw.Error:
        return False
    else:
        return True
    finally:
        connection.close()


def _refuse_while_open(path: str) -> None:
    """Checks the locks that SQLite holds on the file, whatever its bytes are. This process must not have it open."""
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, _SIZE, _READERS)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            _in_use(path)
        raise
    finally:
        os.close(handle)


def _in_use(path: str) -> NoReturn:
    raise StoreUnavailable(
        f"{path} is open in another process; nothing was changed",
        "Stop its users (tenure run, daemon, watch, mcp, agents' sessions), then restore again.",
    ) from None


def _refuse_log_alone(target: str) -> None:
    """A log without its database would be read into the restored one."""
    for companion in ("-wal", "-journal"):
        if os.path.exists(f"{target}{companion}"):
            raise InvalidInput(
                f"{target}{companion} is a log without its database; the restored one must not read it",
                "Move this file to another folder, then restore again.",
            )


def _put_damaged_aside(target: str, aside: str) -> None:
    """A file that cannot be read is renamed with its log: a restored database must never read that log."""
    os.rename(target, aside)
    for companion in _COMPANIONS:
        with suppress(FileNotFoundError):
            os.rename(f"{target}{companion}", f"{aside}{companion}")

"""A backup put in the place of a store: first a checked draft beside it, then one rename.

The store that was there is never removed: it keeps its bytes under another name. At no moment is there no store, and
nobody meets half of one.
"""
# ruff: noqa: PTH104, PTH108, PTH110, PTH113, PTH118, PTH208 - as in the store

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import NoReturn

import apsw

from tenure.core.errors import InvalidInput, StoreCorrupt, StoreUnavailable
from tenure.stores.sqlite import schema, store_file
from tenure.stores.sqlite.connections import SqliteConnection
from tenure.stores.sqlite.errors import translated
from tenure.stores.sqlite.store import copy_into

# Where SQLite has the locks of whoever reads a file: while a connection in WAL mode is open, it holds one there.
_READERS = 0x40000002
_SIZE = 510
_COMPANIONS = ("-wal", "-shm", "-journal")


def make_draft(backup: str, target: str) -> str:
    """A copy of the backup beside the target, once its bytes and its schema were found sound; the copy's path.

    Raises InvalidInput, StoreCorrupt or SchemaMismatch for what is no backup of ours. The backup is only read.
    """
    backup, target = os.path.realpath(backup), os.path.realpath(target)
    if backup == target:
        raise InvalidInput(f"{target} is the store itself, not a backup of it")
    if not os.path.isfile(backup):
        raise InvalidInput(f"there is no backup {backup}", "`tenure db backup FILE` makes one")
    store_file.make_folder(target)
    draft = f"{target}.restoring"
    forget_draft(draft)  # of a restore that was cut off
    try:
        store_file.make_private(draft)
    except OSError as error:
        raise StoreUnavailable(f"{draft}: cannot be made: {error.strerror}") from error
    try:
        _copy_checked(backup, draft)
    except BaseException:
        forget_draft(draft)
        raise
    return draft


def _copy_checked(backup: str, draft: str) -> None:
    # A file without a log beside it is read as it lies there: whoever keeps backups may have made them read-only.
    alone = not os.path.exists(f"{backup}-wal")
    name = f"file:{_escaped(backup)}?mode=ro{'&immutable=1' if alone else ''}"
    try:
        link = SqliteConnection(apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI))
        try:
            wrong = [str(line) for (line,) in link.all("PRAGMA integrity_check(5)")]
            if wrong != ["ok"]:
                raise StoreCorrupt(f"{backup} is damaged: {wrong[0]}", "It was left as it is. Restore another backup.")
            schema.look(link, backup)
            copy_into(link, draft)
        finally:
            link.close()
    except apsw.Error as error:
        meant = translated(error, backup)
        if isinstance(meant, StoreCorrupt):
            raise StoreCorrupt(f"{backup} is not a sound SQLite database: {error}", "Name another backup.") from error
        raise meant from error


def _escaped(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


def forget_draft(draft: str) -> None:
    """Take away a draft, and whatever opening it left beside it."""
    folder, name = os.path.split(draft)
    for found in os.listdir(folder):
        if found == name or (found.startswith(name) and not found[len(name)].isalnum()):
            os.unlink(os.path.join(folder, found))


def put_in_place(draft: str, target: str, name: str) -> str | None:
    """Have the target's name lead to the draft. Where the store that was there lies now; None where there was none.

    `name` is what its new name ends with. Raises StoreAway while another process has it open: nothing was done then.
    """
    target = os.path.realpath(target)
    aside = f"{target}.{name}"
    if os.path.lexists(aside):
        raise InvalidInput(f"{aside} is there already: what was the store would be lost under it")
    _as_one_file(draft)
    try:
        if not os.path.lexists(target):
            _refuse_log_alone(target)
            os.rename(draft, target)
            aside_or_none = None
        elif _as_one_file(target):
            os.link(target, aside)
            os.rename(draft, target)  # in one step: there is always a store of that name
            aside_or_none = aside
        else:
            _put_damaged_aside(target, aside)
            os.rename(draft, target)
            aside_or_none = aside
        store_file.sync_folder(target)
    except OSError as error:
        raise StoreUnavailable(f"{target}: the restored store cannot be put there: {error.strerror}") from error
    forget_draft(draft)
    return aside_or_none


def _as_one_file(path: str) -> bool:
    """Bring its log into the database, so that a rename takes all of it; False where it is too damaged for that.

    It is also the proof that nobody has it open: SQLite leaves WAL only when it is alone.
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
    """Asked as one who only reads: whoever may write takes a log away that does not fit to what it is beside."""
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
    """By the locks that SQLite holds on the file, whatever its bytes are. Our own process must not have it open."""
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
        "End what uses it (tenure run, daemon, watch, mcp, agents' sessions), then restore again.",
    ) from None


def _refuse_log_alone(target: str) -> None:
    """A log without its database would be read into the restored one."""
    for companion in ("-wal", "-journal"):
        if os.path.exists(f"{target}{companion}"):
            raise InvalidInput(
                f"{target}{companion} lies there without its database, which the restored one must not be mixed with",
                "Move this file away, then restore again.",
            )


def _put_damaged_aside(target: str, aside: str) -> None:
    """What cannot be read goes as it is, its log with it: a restored database must never meet that."""
    os.rename(target, aside)
    for companion in _COMPANIONS:
        with suppress(FileNotFoundError):
            os.rename(f"{target}{companion}", f"{aside}{companion}")

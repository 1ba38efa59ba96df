"""SQLite's errors as ours: each states whether anything may have been written."""

from __future__ import annotations

import apsw

from tenure.core.errors import Bug, Conflict, InvalidInput, OutcomeUnknown, StoreCorrupt, StoreUnavailable, TenureError

# apsw raises these for a value that no column can hold: a lone surrogate, an integer beyond 64 bits, an odd type.
BAD_VALUES = (UnicodeEncodeError, OverflowError, TypeError)


class Moved(StoreUnavailable):
    """The store's file, or one beside it, was removed or replaced after it was opened. Nothing was written."""

    change = ""  # which file, and what happened to it


def moved(change: str) -> Moved:
    error = Moved(
        f"{change} while this process had the store open; nothing was written",
        "Put it back, or restore a backup with `tenure db restore`. Finished results are kept and sent then.",
    )
    error.change = change
    return error


def moved_at_commit(change: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{change} while this was written; the change may be lost with it",
        "Put it back, or restore a backup with `tenure db restore`; then send it again with the same request id.",
    )


def translated(error: apsw.Error, path: str) -> TenureError:
    """Our error for a failed statement. The transaction is rolled back, so nothing was written."""
    if isinstance(error, apsw.ConstraintError):
        return Conflict(f"{path}: {error}")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return _damaged(error, path)
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreUnavailable(f"{path}: another program holds it locked")
    if isinstance(error, apsw.FullError):
        return StoreUnavailable(
            f"{path}: the disk is full; nothing was written", "free some space there, then try again"
        )
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError | apsw.AuthError):
        return StoreUnavailable(f"{path}: {error}")
    if isinstance(error, apsw.TooBigError):
        return InvalidInput(f"{path}: a value is larger than a row can be")
    if isinstance(error, apsw.IOError | apsw.NoMemError | apsw.InterruptError | apsw.ProtocolError):
        return StoreUnavailable(f"{path}: {error}; nothing was written")
    return Bug(f"{path}: {type(error).__name__}: {error}")


def is_spent(error: BaseException | None) -> bool:
    """Must the connection be closed? After an I/O error it may stay read-only, or keep failing."""
    passing = apsw.BusyError | apsw.LockedError | apsw.ConstraintError | apsw.TooBigError
    return isinstance(error, apsw.Error) and not isinstance(error, passing)


def _damaged(error: apsw.Error, path: str) -> TenureError:
    """SQLite also reports a failed read of the disk (EIO) as corruption, so the file is read once more."""
    try:
        for name in (path, f"{path}-wal"):
            _read_through(name)
        if _is_sound(path):
            return StoreUnavailable(f"{path}: a read failed, and the file is sound; nothing was written", _AGAIN)
    except (apsw.CorruptError, apsw.NotADBError):
        pass
    except apsw.Error as second:
        return StoreUnavailable(f"{path}: cannot be read: {second}; nothing was written", _AGAIN)
    return StoreCorrupt(
        f"{path}: {error}", "It was left as it is. Restore a backup, or take a copy before any attempt at repair."
    )


_AGAIN = "Send it again once the disk works; `tenure doctor --verify` checks all of it."


def _read_through(name: str) -> None:
    """Raises apsw.IOError where a part cannot be read.

    Through SQLite's own file: closing another descriptor of the file here would release SQLite's locks on it.
    """
    try:
        file = apsw.VFSFile("", name, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    except apsw.CantOpenError:
        return  # there is no log
    try:
        size = file.xFileSize()
        for start in range(0, size, 1 << 20):
            file.xRead(min(1 << 20, size - start), start)
    finally:
        file.xClose()


def _is_sound(path: str) -> bool:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute("PRAGMA integrity_check(1)").fetchall() == [("ok",)]
    finally:
        connection.close()


def at_commit(error: apsw.Error, path: str) -> TenureError:
    """Our error for a failed COMMIT.

    A full disk interrupted the transaction before its last frame, so no recovery will find it. After any other I/O
    error (above all a failed sync) the last frame may be in the file, and recovery after a crash would accept it.
    """
    if isinstance(error, apsw.IOError):
        return OutcomeUnknown(
            f"{path}: {error} at commit; the change may or may not last", "Send it again with the same request id."
        )
    meant = translated(error, path)
    if isinstance(error, apsw.CorruptError) and not isinstance(meant, StoreCorrupt):
        return OutcomeUnknown(f"{meant.message} at commit", "Send it again with the same request id.")
    return meant


def bad_value(error: Exception) -> InvalidInput:
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput("text that is not valid UTF-8", "re-encode it, or drop the bytes")
    return InvalidInput(f"a value cannot be stored: {error}")

"""SQLite's errors as ours: each says whether anything may have been done."""

from __future__ import annotations

import apsw

from tenure.core.errors import Bug, Conflict, InvalidInput, OutcomeUnknown, StoreAway, StoreCorrupt, TenureError

# What apsw raises for a value that no column can hold: a lone surrogate, an integer beyond 64 bits, an odd type.
BAD_VALUES = (UnicodeEncodeError, OverflowError, TypeError)


class Moved(StoreAway):
    """The store's file, or one beside it, is no longer what was opened. Nothing was written."""

    change = ""  # which, and what happened to it


def moved(change: str) -> Moved:
    error = Moved(
        f"{change} while this process had the store open; nothing was written",
        "Put it back, or restore a backup with `tenure db restore`. What is finished is kept and sent then.",
    )
    error.change = change
    return error


def moved_at_commit(change: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"{change} while this was written; the change may be lost with it",
        "Put it back, or restore a backup with `tenure db restore`; then send it again with the same request id.",
    )


def translated(error: apsw.Error, path: str) -> TenureError:
    """What a failed statement means. The transaction is rolled back, so nothing was done."""
    if isinstance(error, apsw.ConstraintError):
        return Conflict(f"{path}: {error}")
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return StoreCorrupt(
            f"{path}: {error}", "It was left as it is. Restore a backup, or take a copy before any attempt at repair."
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreAway(f"{path}: another program holds it locked")
    if isinstance(error, apsw.FullError):
        return StoreAway(f"{path}: the disk is full; nothing was written")
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError | apsw.PermissionsError | apsw.AuthError):
        return StoreAway(f"{path}: {error}")
    if isinstance(error, apsw.TooBigError):
        return InvalidInput(f"{path}: a value is larger than a row can be")
    if isinstance(error, apsw.IOError | apsw.NoMemError | apsw.InterruptError | apsw.ProtocolError):
        return StoreAway(f"{path}: {error}; nothing was written")
    return Bug(f"{path}: {type(error).__name__}: {error}")


def at_commit(error: apsw.Error, path: str) -> TenureError:
    """What a failed COMMIT means.

    A full disk cut the transaction off before its last frame, so no recovery will find it. After any other I/O error
    (a failed sync, above all) the last frame may lie in the file, and recovery after a crash would believe it.
    """
    if isinstance(error, apsw.IOError):
        return OutcomeUnknown(
            f"{path}: {error} at commit; the change may or may not last", "Send it again with the same request id."
        )
    return translated(error, path)


def bad_value(error: Exception) -> InvalidInput:
    return InvalidInput(f"a value cannot be stored: {error}")

"""MariaDB's errors as ours: each states whether anything may have been written."""

from __future__ import annotations

from tenure.core.errors import (
    Bug,
    Conflict,
    InvalidInput,
    SchemaMismatch,
    StoreCorrupt,
    StoreUnavailable,
    TenureError,
)
from tenure.stores.sql import server_errors
from tenure.stores.sql.server_errors import unknown

DEADLOCK, LOCK_WAIT = 1213, 1205
_DUPLICATE = 1062
AGAIN = frozenset({DEADLOCK, LOCK_WAIT, 1020})  # also at a commit: the transaction was rolled back
# too long, out of range, not a text, of another type, a row or a packet beyond its limit
_BAD_VALUE = frozenset({1406, 1264, 1366, 1292, 1265, 1118, 1153, 1301, 1690, 3140})
_NO_SUCH = frozenset({1146, 1054, 1356, 1072, 1176, 1364})  # table, column, key; a column without a value
_UNKNOWN_USER = frozenset({1045, 1698})
_DENIED = frozenset({1044, 1142, 1143, 1227})
_DAMAGED = frozenset({126, 127, 1034, 1194, 1195, 1712, 1877, 1932})
# the server is read-only, full, out of memory or connections, shutting down, or it stopped the statement
_UNAVAILABLE = frozenset(
    {1021, 1030, 1037, 1038, 1040, 1041, 1047, 1049, 1053, 1114, 1129, 1130, 1180, 1203, 1226, 1290, 1317, 1792, 1836}
    | {1927, 1969, 2002, 2003, 2006, 2013, 4031}
)


class Failed(server_errors.Failed):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def translated(error: Failed, url: str) -> TenureError:
    """Our error for a failed statement before the commit: nothing was written."""
    code, text = error.code, f"{url}: {error.message}"
    if code == _DUPLICATE or code in AGAIN:
        return Conflict(text)
    if code in _BAD_VALUE:
        return InvalidInput(f"a value cannot be stored: {error.message}")
    if code in _DAMAGED:
        return StoreCorrupt(
            text, "It was left as it is. Restore a backup, or take a copy before any attempt at repair."
        )
    if code in _NO_SUCH:
        return SchemaMismatch(text, "Another program changed its tables. Restore a backup.")
    if code in _UNKNOWN_USER:
        return StoreUnavailable(text, "Check the user in the URL, and the password there or in MYSQL_PWD.")
    if code in _DENIED:
        return StoreUnavailable(text, "The user needs all privileges on the database that the URL names.")
    if code in _UNAVAILABLE:
        return StoreUnavailable(text)
    return Bug(f"{url}: {code}: {error.message}")


def at_commit(error: Failed, url: str) -> TenureError:
    """Our error for a COMMIT that the server refused. Of others than a conflict it does not report what happened."""
    return translated(error, url) if error.code in AGAIN else unknown(f"COMMIT failed ({error.message})", url)

"""PostgreSQL's errors as ours: each states whether anything may have been written."""

from __future__ import annotations

from typing import NamedTuple

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

UNIQUE = "23505"
UNTOUCHED = "22012"  # division by zero touched rows: see PostgresTable
LOCK_TIMEOUT = "55P03"
# A pooler has given our connection another session, or the statements were discarded; or columns were added.
LOST_STATEMENTS = frozenset({"26000", "42P05", "0A000"})
AGAIN = frozenset({"40001", "40P01", *LOST_STATEMENTS})  # serialisation, deadlock: retry the whole transaction


ABOUT_TABLES = ("42", "3F")  # classes of states: names, columns, types
NO_SUCH = frozenset({"42P01", "42703", "42883", "3F000"})  # table, column, function, schema


class Failed(server_errors.Failed):
    """The server has rolled the transaction back."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state


class Notice(NamedTuple):
    severity: str
    message: str


def translated(error: Failed, url: str) -> TenureError:
    """Our error for a failed statement. The transaction is rolled back, so nothing was written."""
    state, text = error.state, f"{url}: {error.message}"
    if state == UNTOUCHED:
        return Conflict(f"{url}: a row is not as it was loaded")
    if state == UNIQUE or state in AGAIN:
        return Conflict(text)
    if state == LOCK_TIMEOUT:
        return StoreUnavailable(f"{url}: could not get the project's write lock in time: others hold it")
    if state in ("22003", "22021", "22P02", "22P05", "54000"):
        return InvalidInput(f"a value cannot be stored: {error.message}")
    if state in ("XX001", "XX002"):
        return StoreCorrupt(
            text, "It was left as it is. Restore a backup, or take a copy before any attempt at repair."
        )
    if state in NO_SUCH:
        return SchemaMismatch(text, "Another program changed its tables. Restore a backup.")
    if state == "25006":
        return StoreUnavailable(f"{url}: the server only reads now (a standby, or a primary that was demoted)")
    if state == "42501":
        return StoreUnavailable(
            text,
            "The role must own the schema that the URL names, be allowed to create it in the database, or have been "
            "prepared with `tenure db rls on`. `tenure db upgrade` with TENURE_OWNER_URL creates schemas of tenants.",
        )
    # resources, operator intervention (shutdown, a timeout), system errors, connections, roles and names
    if state[:2] in ("53", "57", "58", "08", "28", "3D", "25"):
        return StoreUnavailable(text)
    return Bug(f"{url}: {state}: {error.message}")

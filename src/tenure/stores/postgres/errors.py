"""PostgreSQL's errors as ours: each says whether anything may have been done."""

from __future__ import annotations

from typing import NamedTuple

from tenure.core.errors import (
    Bug,
    Conflict,
    InvalidInput,
    OutcomeUnknown,
    SchemaMismatch,
    StoreCorrupt,
    StoreUnavailable,
    TenureError,
)

# What a value that no column can hold raises on our side: a lone surrogate, an integer beyond 64 bits, an odd type.
BAD_VALUES = (UnicodeEncodeError, OverflowError, TypeError)

UNIQUE = "23505"
UNTOUCHED = "22012"  # a division by the number of touched rows: see Dialect.fails_untouched
LOCK_TIMEOUT = "55P03"
# A pooler has given our connection another server's session, or somebody discarded it; or columns were added.
LOST_STATEMENTS = frozenset({"26000", "42P05", "0A000"})
AGAIN = frozenset({"40001", "40P01", *LOST_STATEMENTS})  # serialisation, deadlock: run the whole once more


class Failed(Exception):
    """A statement failed on the server, which has taken the transaction back."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state
        self.message = message


class Lost(Exception):
    """The connection is gone. What was not answered may have been done, if it was a COMMIT."""


class Notice(NamedTuple):
    severity: str
    message: str


def translated(error: Failed, url: str) -> TenureError:
    """What a failed statement means. The transaction is rolled back, so nothing was done."""
    state, text = error.state, f"{url}: {error.message}"
    if state == UNTOUCHED:
        return Conflict(f"{url}: a row is not as it was loaded")
    if state == UNIQUE or state in AGAIN:
        return Conflict(text)
    if state == LOCK_TIMEOUT:
        return StoreUnavailable(f"{url}: others have been writing to the same project without a break for us")
    if state in ("22003", "22021", "22P02", "22P05", "54000"):
        return InvalidInput(f"a value cannot be stored: {error.message}")
    if state in ("XX001", "XX002"):
        return StoreCorrupt(
            text, "It was left as it is. Restore a backup, or take a copy before any attempt at repair."
        )
    if state in ("42P01", "42703", "3F000"):
        return SchemaMismatch(text, "Its tables were changed by somebody else. Restore a backup.")
    if state == "25006":
        return StoreUnavailable(f"{url}: the server only reads now (a standby, or a primary that was demoted)")
    if state == "42501":
        return StoreUnavailable(
            text, "The role must own the schema that the URL names, or be allowed to make it in the database."
        )
    # resources, operator intervention (shutdown, a timeout of ours), system errors, connections, roles and names
    if state[:2] in ("53", "57", "58", "08", "28", "3D", "25"):
        return StoreUnavailable(text)
    return Bug(f"{url}: {state}: {error.message}")


def lost(error: Lost, url: str) -> StoreUnavailable:
    return StoreUnavailable(f"{url}: the connection was lost before the commit; nothing was done ({error})")


def unknown(why: object, url: str) -> OutcomeUnknown:
    return OutcomeUnknown(f"{url}: {why}; the change may or may not last", "Send it again with the same request id.")


def bad_value(error: Exception) -> InvalidInput:
    return InvalidInput(f"a value cannot be stored: {error}")

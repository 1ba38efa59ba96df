"""The server's errors as ours: each states whether anything may have been written."""

from __future__ import annotations

from tenure.core.errors import (
    Bug,
    Conflict,
    InvalidInput,
    OutcomeUnknown,
    StoreCorrupt,
    StoreUnavailable,
    TenureError,
)

# Raised on our side for a value that cannot be kept: a lone surrogate, an integer beyond 64 bits, an odd type.
BAD_VALUES = (UnicodeEncodeError, OverflowError, TypeError)

# How a server refuses now, before it has written anything: the first word of its answer, or redis-py's class for that.
_AWAY = {
    "READONLY": "the server only reads: it is a replica",
    "OOM": "the server's memory (`maxmemory`) is full",
    "MISCONF": "the server cannot write to its disk",
    "NOREPLICAS": "the server has too few replicas to accept writes",
    "LOADING": "the server is still reading its data",
    "MASTERDOWN": "the server is a replica that has lost its primary",
    "CLUSTERDOWN": "the cluster is down",
    "MOVED": "the server belongs to a cluster; the store needs a single server",
    "BUSY": "another script keeps the server busy",
    "NOPERM": "the server's user may not use a command or key that the store needs",
}
_CLASSES = {
    "ReadOnlyError": "READONLY",
    "OutOfMemoryError": "OOM",
    "MasterDownError": "MASTERDOWN",
    "ClusterDownError": "CLUSTERDOWN",
    "MovedError": "MOVED",
    "NoPermissionError": "NOPERM",
}

_PASSING = (
    "Connection refused", "Connection closed", "Connection reset", "timed out", "Timeout", "max number of clients",
    "loading the dataset", "connection was lost", *(_AWAY[word] for word in ("READONLY", "LOADING", "MASTERDOWN")),
)  # fmt: skip


class Lost(Exception):
    """The connection was lost. The last command may have been done."""


class Torn(Exception):
    """Rows changed during a read."""


def translated(error: Exception, url: str) -> TenureError:
    """Our error for an answer that is an error. Nothing was written."""
    said = str(error)
    word = _CLASSES.get(type(error).__name__, said.partition(" ")[0])
    if word in _AWAY:
        return StoreUnavailable(f"{url}: {_AWAY[word]} ({said})")
    if "WRONGTYPE" in said:
        return StoreCorrupt(
            f"{url}: a key is not tenure's: {said}",
            "Another program writes in this space. Give the store another one with ?space=NAME.",
        )
    return Bug(f"{url}: {said}")


def lost(error: Lost, url: str) -> StoreUnavailable:
    return StoreUnavailable(f"{url}: the connection was lost before the commit; nothing was done ({error})")


def unknown(why: object, url: str) -> OutcomeUnknown:
    return OutcomeUnknown(f"{url}: {why}; the change may or may not last", "Send it again with the same request id.")


def bad_value(error: Exception) -> InvalidInput:
    return InvalidInput(f"a value cannot be stored: {error}")


def changed() -> Conflict:
    return Conflict("rows changed during the transaction")


def may_pass(why: str) -> bool:
    """Whether it is worth trying again after opening the store failed with `why`: nobody answers, or not yet.

    Not where a server answers and refuses, nor where the host is unknown.
    """
    return any(text in why for text in _PASSING)

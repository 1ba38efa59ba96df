"""The server's errors as ours: each states whether anything may have been written."""

from __future__ import annotations

from tenure.core.errors import (
    Bug,
    Conflict,
    StoreCorrupt,
    StoreUnavailable,
    TenureError,
)

# How a server refuses now, before it has written anything: the first word of its answer, or redis-py's class for that.
_UNAVAILABLE = {
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

PASSING = (
    "Connection refused", "Connection closed", "Connection reset", "timed out", "Timeout", "max number of clients",
    "loading the dataset", "connection was lost", _UNAVAILABLE["READONLY"], _UNAVAILABLE["LOADING"],
    _UNAVAILABLE["MASTERDOWN"],
)  # fmt: skip


class Torn(Exception):
    """Rows changed during a read."""


def translated(error: Exception, url: str) -> TenureError:
    """Our error for an answer that is an error. Nothing was written."""
    text = str(error)
    word = _CLASSES.get(type(error).__name__, text.partition(" ")[0])
    if word in _UNAVAILABLE:
        return StoreUnavailable(f"{url}: {_UNAVAILABLE[word]} ({text})")
    if "WRONGTYPE" in text:
        return StoreCorrupt(
            f"{url}: a key is not tenure's: {text}",
            "Another program writes in this space. Give the store another one with ?space=NAME.",
        )
    return Bug(f"{url}: {text}")


def changed() -> Conflict:
    return Conflict("rows changed during the transaction")

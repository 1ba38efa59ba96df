"""How a store is, in fixed words: probes need no key, so a stranger who asks learns no host, port, role or name.

The words for an error are those of `caller_errors`.
"""

from __future__ import annotations

from typing import NamedTuple

from tenure.core.caller_errors import in_fixed_words
from tenure.core.errors import SchemaMismatch, StoreCorrupt, TenureError

OK, UNAVAILABLE, READ_ONLY, OTHER_SCHEMA, DAMAGED = DATABASES = (
    "ok", "unavailable", "read_only", "other_schema", "damaged",
)  # fmt: skip
_IN_THE_LOG = "this server's log says why"


class Health(NamedTuple):
    database: str  # one of DATABASES
    reason: str | None = None  # in words, for everybody; None: it is well


def health_of(read: TenureError | None, write: TenureError | None) -> Health:
    """`read`: the error of a read just now; `write`: of the last write, where none has succeeded since."""
    if read is None:
        if write is None:
            return Health(OK)
        return Health(READ_ONLY, f"the store can be read, and writes to it fail, as on a full disk: {_IN_THE_LOG}")
    database = UNAVAILABLE
    if isinstance(read, SchemaMismatch):
        database = OTHER_SCHEMA
    elif isinstance(read, StoreCorrupt):
        database = DAMAGED
    return Health(database, f"{in_fixed_words(read).message}: {_IN_THE_LOG}")

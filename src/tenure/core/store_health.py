"""How a store is, in fixed words: probes need no key, so a stranger who asks learns no host, port, role or name."""

from __future__ import annotations

from typing import NamedTuple

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
    if isinstance(read, SchemaMismatch):
        return Health(OTHER_SCHEMA, "the store's tables are not those of this version of tenure: start the newer one")
    if isinstance(read, StoreCorrupt):
        return Health(DAMAGED, f"the store is damaged: {_IN_THE_LOG}")
    if read is not None:
        return Health(UNAVAILABLE, f"the store cannot be reached, or refuses this server: {_IN_THE_LOG}")
    if write is not None:
        return Health(READ_ONLY, f"the store can be read, and writes to it fail, as on a full disk: {_IN_THE_LOG}")
    return Health(OK)

"""One file on one machine: SQLite in WAL mode, every commit synced.

    store.py        the store: opening, waiting, check
    transaction.py  one transaction and its queries
    connections.py  connections with their settings, their pool, and the write lock between processes
    store_file.py   the file: where it lies, who may read it, whether it is a copy, whether its schema is ours
    schema.py       migrations
    backup.py       backup and restore
    errors.py       SQLite's errors as ours

Invariants:
- A write takes the write lock (`TurnLock`), then BEGIN IMMEDIATE, and only then reads anything, the clock included. So
  it never meets SQLITE_BUSY half way, and its reads stay true until it commits.
- The file is untrusted input: its schema is compared with ours at opening, and triggers and views never run.
- A damaged file is refused and left as it is.
"""

from tenure.stores.sqlite.store import Sqlite

__all__ = ["Sqlite"]

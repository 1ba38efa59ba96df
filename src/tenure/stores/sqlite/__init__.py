"""One file on one machine: SQLite in WAL mode, every commit synced.

    store.py        the store: opening, waiting, backup, check
    transaction.py  one transaction, and every query of it
    connections.py  connections with their settings, and the stack of idle ones
    lock.py         whose turn it is to write, between processes
    place.py        the file itself: where it lies, who may read it, whether it is a copy
    schema.py       migrations, and the comparison of the file's schema with ours
    failures.py     SQLite's errors as ours

Invariants:
- A write takes the turn (lock.py), then BEGIN IMMEDIATE, and only then reads anything, the clock included. So it never
  meets SQLITE_BUSY half way, and what it read stays true until it commits.
- The file is untrusted input: its schema is compared with ours at opening, and triggers and views never run.
- A file that is not sound is refused and left as it is.
"""

from tenure.stores.sqlite.store import Sqlite

__all__ = ["Sqlite"]

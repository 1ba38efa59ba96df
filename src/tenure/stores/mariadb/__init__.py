"""A database of a MariaDB server, 10.11 or newer: for a team that already runs one.

    store.py            the store: opening, waiting, check
    pipeline.py         one transaction: how it begins, queries and ends, with few round trips
    transaction.py      its verbs
    statement_texts.py  the statements that are not made from a struct
    wake_ups.py         the thread that asks for all waiters
    connection.py       one connection: statements in one round trip
    answers.py          what the server answers
    address.py          the URL
    schema.py           migrations, and which servers are refused
    errors.py           MariaDB's errors as ours

Invariants:
- **One writer per project.** A write transaction takes the project's row in `turn` before it reads anything there, the
  clock and the epoch included. Projects do not wait for each other.
- **Sequences are in the order of commits.** They come from one row, which a transaction locks in its last round trip.
  So commits that append wait for each other, and batches carry the throughput; in return a reader of the log needs
  nothing more than a cursor.
- Turns are taken by name, then the row of `meta`, shared, then the end of the log. A transaction that takes another
  turn later, or begins an epoch, may meet a deadlock: the server ends one of the two, whose engine starts over.
- A commit whose outcome is unknown is never reported as done or as not done: see `_commit`.
- Every statement names the tenant.
"""

from tenure.stores.mariadb.store import Mariadb

__all__ = ["Mariadb"]

"""Keys of a Valkey server, or of Redis 7 or newer: for a team that already runs one.

    store.py            the store: opening, waiting, its place and its epoch
    transaction.py      one transaction: what it writes, and its commit
    commit.py           the script that compares versions and applies a list of writes
    session.py          reads with versions: all of one moment
    finding.py          queries over rows, lanes and due tasks
    event_log.py        the log
    turns.py            the turn, by which writers and torn readers wait for each other
    rows.py             rows as bytes; which fields have an index
    keys.py             names of keys; values that sort as bytes
    check.py            entries that are not as their rows are
    server_settings.py  durability, version, replication
    connection.py       connections and their pool
    address.py          the URL
    errors.py           the server's errors as ours

Invariants:
- **Versions decide.** Every project has a version, and every commit changes that of each project it writes to. A
  transaction compares the versions that it read first with those at each later read, and the script compares them
  again before it writes. Nothing else protects a row: a turn may be lost at any time.
- **One script, no rule in it.** It compares texts and applies a list; core has decided on the list.
- Every key that the script uses is declared, and begins with the tenant's hash tag.
- The time of a transaction is read with its versions. A commit more than five seconds later is refused, so a process
  that was stopped cannot write with an old time.
- A commit on another server than the one the store was last known on is refused: see `Valkey.look_where_it_is`.
- A commit whose outcome is unknown is never reported as done or as not done.
"""

from tenure.stores.valkey.store import Valkey

__all__ = ["Valkey"]

"""A schema of a PostgreSQL database, 13 or newer: for a team, and for several machines.

    store.py               the store: opening, waiting, check
    pipeline.py            one transaction: how it begins, queries and ends, with few round trips
    transaction.py         its verbs
    hot_statements.py      the statements of the fast path
    statement_texts.py     the other statements that are not made from a struct
    tables.py              statements of one table; kinds that are kept as two tables
    places.py              the check that tasks are found where they should be
    log_statements.py      queries of the log
    event_blocks.py        events that a batch wrote as one row
    log_cursor.py          following the log without skipping an event that commits late
    notifications.py       the thread that listens for all waiters
    connection.py          one connection: statements in one round trip, prepared where that is safe
    connection_pool.py     the pool of them
    values.py              Python's values as parameters, and back
    address.py             the URL
    schema.py              migrations
    row_security.py        policies and the rights of a role that sees one tenant at a time
    planner_statistics.py  statistics for tables that are still empty
    errors.py              PostgreSQL's errors as ours

Invariants:
- **One writer per project.** A write transaction takes the project's lock (an advisory lock that ends with it) before
  it reads anything there, the clock and the epoch included. The engine reads by index, counts rows and relies on rows
  that are absent; row locks would not cover that, and would be taken in the order of its commands, which deadlocks.
  Projects do not wait for each other.
- **Unless only the fast path writes.** Its statements guard their rows in the write itself, so they take the project's
  lock shared: results, renewals and one batch of claims run at the same time, and never beside a transaction that
  decides. The second writer of a row starts over.
- Locks are taken in one order: projects and their claims by the number of the lock, then the epoch's, shared, then the
  writer's floor, before its first event; nobody waits for a floor. So there is no deadlock.
- No session state: any transaction may run on any session. Only the listening thread has a session for itself.
- A commit whose outcome is unknown is never reported as done or as not done: see `_commit`.
- Every statement names the tenant, and runs in a transaction that has set it before: see `row_security.py`.
- An indexed column is compared with a column or a value, never with a function; a bound of the log has its other side.
"""

from tenure.stores.postgres.store import Postgres

__all__ = ["Postgres"]

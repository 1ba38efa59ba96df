"""A schema of a PostgreSQL database, 13 or newer: for a team, and for several machines.

    store.py        the store: opening, waiting, check
    journeys.py     one transaction: how it begins, asks and ends, with few journeys to the server
    transaction.py  its verbs
    hot.py          the statements of the short way
    queries.py      every other statement text that is not made from a struct
    log.py          questions to the log
    blocks.py       events that a batch wrote as one row, and their words
    writing.py      changes as statements
    cursors.py      going on in the log, without skipping what commits late
    waiting.py      the thread that listens for all who wait
    link.py         one connection: statements in one round trip, prepared where that is safe
    connections.py  the pool of them
    values.py       Python's values as parameters, and back
    address.py      what a URL says
    schema.py       migrations
    failures.py     PostgreSQL's errors as ours

Invariants:
- **One writer a project.** A write transaction takes the project's lock (an advisory one that ends with it) before it
  reads anything there, the clock and the epoch included. The engine reads by index, counts what it finds and goes by
  what is not there; locks on rows would leave all of that open, and would be taken in the order of its commands,
  which deadlocks. Projects do not wait for each other.
- **Unless nothing but fused verbs write.** Those guard their rows in the write itself, so they take the project's lock
  shared: results, renewals and one batch of claims run side by side, and never beside one who decides. Who comes second
  to a row begins anew.
- Locks are taken in one order: projects and their claims by the number of the lock, then the epoch's, shared, then the
  writer's floor, before its first event, which nobody waits for. So nobody deadlocks.
- No session state: any transaction may run on any session. Only the thread that listens keeps a session to itself.
- What is not known to be committed is never told as such, and the other way round: see `_commit`.
- Every statement names the tenant.
"""

from tenure.stores.postgres.store import Postgres

__all__ = ["Postgres"]

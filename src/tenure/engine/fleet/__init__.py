"""Pools: the leader starts agents on ready tasks. Push is an offer and a spawner; the claim stays the gate.

Three transactions and one call, each of which may be the last thing that a process does:

1. *Choose, offer, record* (`offers.py`), under the leader's term: the best ready task that the place's agent may claim
   is offered to it for 120 s, and a `Spawn` row says so. No process exists yet; no generation grows.
2. After the commit the spawner is called (`spawner_threads.py`), in a thread: it may hang, fail, answer twice or late.
3. Its answer is saved under the term (`upkeep.py`): a handle, or the end of the spawn.
4. The process claims with its spawn's id (`spawned_claims.py`). The row decides, with the clock of that transaction.

Why no more than `size` processes of a pool are ever able to claim: a place has one agent's name and at most one live
spawn; a spawn is live while it runs, or until its offer is over; it serves the first session that claims with it, and
no other. Both the choice and the claim hold the project's write lock, and each reads the rows in its own transaction.
So a process whose spawn is lost, or that a spawner started a second time, gets DENIED_SPAWN and ends, whatever the
leader or the spawner believes. A crash between any two steps leaves a task that is offered for up to 120 s and a spawn
that is lost after that; nothing has to be cleaned up.

The suite `testing/engine/pools.py` shows each of these on every store. A new field of `Spawn` needs no event: its rows
are not replayed. A new way for a spawn to end goes into `core/pools.py: end_of`.
"""

"""Pools: the leader starts agents on ready tasks. Push is an offer and a spawner; the claim stays the gate.

Three transactions and one call, each of which may be the last thing that a process does:

1. *Choose, offer, record* (`offers.py`), under the leader's term: the best ready task that the place's agent may claim
   is offered to it for 120 s, and a `Spawn` row records it. No process exists yet; no generation grows.
2. After the commit the spawner is called (`spawner_threads.py`), in a thread: it may hang, fail, answer twice or late.
3. Its answer is saved under the term (`upkeep.py`): a handle, or the end of the spawn.
4. The process claims with its spawn's id (`spawned_claims.py`). The row decides, with the clock of that transaction.

Why no more than `size` processes of a pool are ever able to claim: a place has one agent's name and at most one live
spawn; a spawn is live while it runs, or until its offer is over; it serves the first session that claims with it, and
no other. Both the choice and the claim hold the project's write lock, and each reads the rows in its own transaction.
So a process whose spawn is lost, or that a spawner started a second time, gets DENIED_SPAWN and ends, whatever the
leader or the spawner believes. A crash before the claim leaves a task that is offered for up to 120 s and a spawn that
is lost after that; nothing has to be cleaned up.

A leader that dies between 2 and 3 leaves a spawn without a handle, whose process may claim, and then die too. So the
next leader asks the spawner for the processes of such spawns, by their ids. A process that is found is saved like an
answer. "There is none" ends the spawn and its claims, as the report of an end does, under three conditions: this
process is not waiting for the answer to that call; the spawner has the home that the row names, since the files of
another machine prove nothing; and it was asked 20 s after the spawn began, when the call of an older leader has arrived
or never will. A call that waited even longer in a queue costs one process: its claim is denied. A spawner that does not
know leaves the spawn out, and the lease decides. A new leader starts nothing, for up to two seconds, until its spawners
have reported what runs: else leaders that each die at their first spawn would never learn that a process is gone.

The suites `testing/engine/pools.py` and `unsaved_spawns.py` show each of these on every store. A new field of
`Spawn` needs no event: its rows are not replayed. A new way for a spawn to end goes into `core/pools.py: end_of`.
"""

"""Ours, the raw limit and PgQueuer on one durable PostgreSQL server: cycles, latencies, pick-up, sizes, look-ups.

    measuring.py   the parts of a run, their rounds, the arguments
    scale.py       how long and how much
    ground.py      the server, a store of ours in a separate schema, and the check of its rows
    filling.py     many tasks in little time
    drains.py      claims, renewals, submits and whole cycles in batches
    creations.py   tasks created a thousand at a time
    idle_reader.py claims beside a reader that stays in its transaction
    rivals.py      the raw limit, and PgQueuer in its own venv
    arrivals.py    the open loop: latencies at a fixed rate
    pickups.py     an idle worker in another process
    sizes.py       a claim among many ready, many finished and none that fits
    singles.py     one at a time, beside a bare prepared statement with the same writes
    policies.py    what row-level security costs
    lookups.py     history and lists, on PostgreSQL and SQLite
    profiling.py   where the time goes
    costs.py       processor time of both sides, log and round trips: independent of other load on the machine
    goals.py       every figure's name and goal

Ours is used through public entry points only: `Engine.run`, `Batcher`, `Client`.
"""

from __future__ import annotations


def main(argv: list[str]) -> int:
    from bench.postgres.measuring import main as measure  # needs a driver that may not be installed

    return measure(argv)

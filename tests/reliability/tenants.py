"""Two tenants on one store: random requests of one, with names and keys of the other in them, tell it nothing.

Each request goes to the server of a tenant in two worlds: in one its store keeps a second tenant, which has as much and
the same task keys, in the other there is none. Every answer is equal in both to the byte, and no row of the second
tenant changes. Half of the requests are made while all ids of the two tenants are equal too.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tenure.stores.memory import Memory
from tenure.stores.port import Store
from tenure.testing.clock import FakeClock
from tests.reliability import results
from tests.server.tenant_worlds import Apart

MOST_SHOWN = 10
A_WORLD = 500  # requests to one pair of worlds: later ones meet what earlier ones left behind


class Stores:
    """New stores, in memory or in databases of one PostgreSQL server."""

    def __init__(self, postgres: bool) -> None:
        self._postgres = postgres
        self._count = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        if not self._postgres:
            yield
            return
        from tests.servers.postgres import PostgresServer

        with PostgresServer() as self._server:
            yield

    def open(self, clock: FakeClock, name: str) -> Store:
        self._count += 1
        if not self._postgres:
            return Memory(f"memory://{name}", clock=clock)
        from tenure.stores.postgres import Postgres

        return Postgres(self._server.create(f"{name}{self._count}"), clock=clock)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./x reliability tenants", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL instead of memory")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    began, stores = time.monotonic(), Stores(options.postgres)
    findings: list[str] = []
    statuses: Counter[int] = Counter()
    reached: set[str] = set()
    done = worlds = 0
    with stores.running():
        while done < options.requests:
            apart = Apart(stores.open, seed + worlds, theirs=1 + (worlds + 1) % 2)
            for sent in list(apart.every_operation()):
                apart.ask(sent)
            apart.run(min(A_WORLD, options.requests - done) - apart.done)
            findings += apart.end()
            statuses += apart.statuses
            reached |= apart.reached
            done, worlds = done + apart.done, worlds + 1
    told = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
    print(
        f"seed {seed}: {done} requests, {len(reached)} operations with effect, {time.monotonic() - began:.0f} s\n{told}"
    )
    for finding in findings[:MOST_SHOWN]:
        print(finding)
    numbers: dict[str, results.Figure] = {
        "requests": done, "worlds": worlds, "with_effect": len(reached), "differences": len(findings),
    }  # fmt: skip
    results.tell("tenants", numbers, variant="postgres" if options.postgres else "")
    print("every answer was equal" if not findings else f"FAILED: {len(findings)} differences")
    return 1 if findings else 0

"""The project as it was (`--at`), at instants of random histories, compared with snapshots that were taken then.

The rows that the log gives must be those that were stored, and queries must answer what they answered, at the instant
and after the event: see `tenure/testing/engine/past.py`. The histories archive tasks, sweep, and begin new epochs.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tenure.stores.memory import Memory
from tenure.stores.port import Store
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.engine.past import faults, snapshots
from tenure.testing.factories import Scene
from tests.reliability import results
from tests.reliability.ground import server_of
from tests.servers.store_servers import SERVERS

STORES = ("memory", "sqlite", *SERVERS)
LENGTH, SHARE = 250, 0.2  # steps of a history, and how many of them are remembered


def opened(kind: str, folder: Path, clock: FakeClock) -> Store:
    """A new store of this kind; servers are found by the environment."""
    if kind == "memory":
        return Memory(clock=clock)
    if kind == "sqlite":
        return Sqlite(str(folder / "store.db"), clock=clock)
    return SERVERS[kind].open_store(folder, clock)


def compared(kind: str, seed: int, instants: int, say: Callable[[str], object]) -> tuple[int, int]:
    """How many histories and snapshots there were; every difference is said."""
    seen = histories = 0
    while seen < instants:
        with tempfile.TemporaryDirectory() as folder:
            clock = FakeClock()
            store = opened(kind, Path(folder), clock)
            try:
                scene = Scene(store, clock, seed + histories)
                taken = list(snapshots(scene, seed + histories, LENGTH, SHARE))
                for then in taken:
                    for fault in faults(scene, then):
                        say(f"seed {seed + histories}: {fault}")
            finally:
                store.close()
        seen, histories = seen + len(taken), histories + 1
    return histories, seen


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x reliability past", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--instants", type=int, default=500)
    parser.add_argument("--store", choices=STORES, default="sqlite")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args(argv)
    seed = random.randrange(1 << 32) if options.seed is None else options.seed
    began, wrong = time.monotonic(), list[str]()
    with server_of(options.store):
        histories, seen = compared(options.store, seed, options.instants, wrong.append)
    for line in wrong[:10]:
        print(line[:2000])
    figures: dict[str, results.Figure] = {
        "seed": seed, "histories": histories, "instants": seen, "differences": len(wrong),
        "seconds": round(time.monotonic() - began),
    }  # fmt: skip
    results.tell("past", figures, variant="" if options.store == "sqlite" else options.store)
    print("the past is what was there" if not wrong else "FAILED")
    return 1 if wrong else 0

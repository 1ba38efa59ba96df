"""`tenure serve` with shorter times, killed at a drawn point of a spawn: before, during or after a spawner's call.

The offer and the leader's lease are shortened by the same factor: a leader that was killed is replaced within its
lease, and that is a quarter of the offer.
"""

from __future__ import annotations

import os
import signal
import sys
from concurrent.futures import Future
from typing import Any, NoReturn

from tenure.cli.main import main
from tenure.core import pools
from tenure.engine.duties.coordinator import LEASE, Coordinator
from tenure.engine.fleet.spawner_threads import SpawnerThreads
from tenure.spawners.port import Spawned, SpawnRequest

POINTS = ("before", "during", "after")


def shorten_leases(factor: float) -> None:
    """The server names the lease of its coordinator: a default would change nothing."""
    begin = Coordinator.__init__

    def begin_shorter(self: Coordinator, *given: Any, lease: float = LEASE, **more: Any) -> None:
        begin(self, *given, lease=lease * factor, **more)

    Coordinator.__init__ = begin_shorter  # type: ignore[method-assign]


def killed_at(point: str, number: int) -> None:
    """Kill this process at its n-th spawn."""
    spawn, calls = SpawnerThreads.spawn, list[str]()

    def killing(self: SpawnerThreads, name: str, request: SpawnRequest, timeout: float) -> Future[Spawned]:
        calls.append(request.spawn)
        is_last = len(calls) == number
        if is_last and point == "before":
            die()
        future = spawn(self, name, request, timeout)
        if is_last and point == "during":
            die()
        if is_last:
            future.add_done_callback(lambda _: die())  # answered, and not saved
        return future

    SpawnerThreads.spawn = killing  # type: ignore[method-assign]


def die(*_: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


if __name__ == "__main__":
    shorter = float(os.environ["FLEET_OFFER"]) * 1_000_000 / pools.OFFER
    pools.OFFER = round(pools.OFFER * shorter)
    shorten_leases(shorter)
    if os.environ.get("FLEET_KILL"):
        at, _, nth = os.environ["FLEET_KILL"].partition(" ")
        killed_at(at, int(nth))
    sys.exit(main(sys.argv[1:]))

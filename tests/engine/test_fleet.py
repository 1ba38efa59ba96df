"""Pools with threads: a spawner that hangs delays neither leases nor another spawner."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tenure.agents.leader_process import LeaderProcess, Place
from tenure.client import Client
from tenure.core import commands as c
from tenure.core.records import Spawn
from tenure.engine.fleet.fleet import Fleet
from tenure.engine.fleet.offers import Address
from tenure.engine.fleet.spawner_threads import SpawnerThreads
from tenure.server.coordinator import coordinator_of
from tenure.sinks.settings import Messaging
from tenure.spawners.port import Spawned, SpawnRequest, State

SOON = 20.0


class HeldSpawner:
    """Hangs until it is released."""

    def __init__(self) -> None:
        self.released, self.asked = threading.Event(), threading.Event()
        self.threads: set[int] = set()
        self.ended: list[str] = []
        self.closed = 0

    def spawn(self, request: SpawnRequest, timeout: float) -> Spawned:
        self.asked.set()
        self.threads.add(threading.get_ident())
        assert self.released.wait(60)
        return Spawned(handle=request.spawn)

    def home(self) -> str:
        return "here"

    def find(self, spawns: Sequence[str]) -> Mapping[str, Spawned | None]:
        return {}

    def status(self, handles: Sequence[str]) -> Mapping[str, State]:
        return dict.fromkeys(handles, "running")

    def end(self, handle: str, graceful: bool) -> None:
        self.ended.append(handle)

    def close(self) -> None:
        self.closed += 1


class QuickSpawner(HeldSpawner):
    def __init__(self) -> None:
        super().__init__()
        self.released.set()


class Fleeted:
    def __init__(self, path: Path) -> None:
        self.client = Client(str(path / "tenure.db"), "p", agent="ann", session="s", create=True)
        self.client.init()
        self.held, self.quick = HeldSpawner(), QuickSpawner()
        coordinator = coordinator_of(self.client.engine)
        self.calls = SpawnerThreads({"held": lambda: self.held, "quick": lambda: self.quick})
        fleet = Fleet(self.client.engine, self.calls, lambda: Address("store"), coordinator.led)
        self.leader = LeaderProcess(coordinator, Messaging({}), Place(str(path), "p", {}))
        self.leader._parts.append(fleet)
        self.leader.start()

    def spawns(self) -> list[Spawn]:
        return self.client.engine.read_settled(("p",), lambda work: work.find(Spawn, {"project": "p"}))


def wait_for(holds: object, seconds: float = SOON) -> None:
    assert callable(holds)
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not happen in time"
        threading.Event().wait(0.05)


@pytest.fixture
def fleeted(tmp_path: Path) -> Iterator[Fleeted]:
    found = Fleeted(tmp_path)
    yield found
    found.held.released.set()
    found.leader.stop()
    found.client.close()


def test_a_spawner_that_hangs_delays_neither_leases_nor_another_spawner(fleeted: Fleeted) -> None:
    client = fleeted.client
    client.set_pool("stuck", "claude", spawner="held", size=1, types=["stuck"])
    client.add("one", type="stuck")
    assert fleeted.held.asked.wait(SOON)
    leased = client.add("leased", type="other").task or {}
    client.claim(leased["key"], lease=1.0)
    client.set_pool("crew", "claude", spawner="quick", size=1, types=["quick"])
    client.add("two", type="quick")
    assert fleeted.quick.asked.wait(SOON)
    wait_for(lambda: any(e["kind"] == "task.lease_expired" for e in client.log(limit=500)))
    wait_for(lambda: any(s.spawner == "quick" and s.handle for s in fleeted.spawns()))
    assert not fleeted.held.released.is_set()
    assert [s.handle for s in fleeted.spawns() if s.spawner == "held"] == [None]
    fleeted.held.released.set()
    wait_for(lambda: all(s.handle for s in fleeted.spawns()))


def test_a_terminated_agent_is_ended_while_its_spawner_hangs_in_other_calls(fleeted: Fleeted) -> None:
    client = fleeted.client
    fleeted.held.released.set()
    client.set_pool("crew", "claude", spawner="held", size=1)
    client.add("one")
    wait_for(lambda: any(s.handle for s in fleeted.spawns()))
    fleeted.held.released.clear()
    client.set_pool("more", "claude", spawner="held", size=8)
    for number in range(8):
        client.add(f"task {number}")
    wait_for(lambda: len(fleeted.held.threads) > 1)
    (spawn,) = [s for s in fleeted.spawns() if s.pool == "crew"]
    client.do(c.Terminate(project="p", agent="crew-1", graceful=False))
    wait_for(lambda: spawn.handle in fleeted.held.ended, 5.0)


def test_spawners_are_closed_with_their_threads_and_each_thread_opens_its_own(fleeted: Fleeted) -> None:
    opened: list[QuickSpawner] = []

    def open_one() -> QuickSpawner:
        opened.append(QuickSpawner())
        return opened[-1]

    calls = SpawnerThreads({"one": open_one})
    calls.status("one", ("a",)).result(SOON)
    calls.end("one", "a", False).result(SOON)
    assert (len(opened), calls.known) == (2, frozenset({"one"}))
    calls.close()
    assert [one.closed for one in opened] == [1, 1]

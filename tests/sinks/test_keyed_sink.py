"""A relay to a Valkey server with `keys = true`: its stream, its keys and a rewind, from a real store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tenure import Client
from tenure.agents.leader_process import opened
from tenure.core import commands as c
from tenure.engine.relay.relay import Relay, Settings
from tenure.server.coordinator import coordinator_of
from tenure.sinks.settings import SinkSettings
from tests.servers.valkey import ValkeyServer

START = "tenure:keyed:local"


class World:
    def __init__(self, folder: Path, valkey: ValkeyServer) -> None:
        self.client = Client(str(folder / "tenure.db"), "p", agent="ann", session="s", create=True)
        self.client.do(c.DefineProject(project="p"))
        self.coordinator = coordinator_of(self.client.engine)
        self.coordinator.step()
        self.now = 1000.0
        settings = SinkSettings("keyed", valkey.url().replace("redis://", "redis+stream://"), prefix="keyed", keys=True)
        self.relay = Relay(
            self.client.engine, Settings("keyed"), lambda: opened(settings, self.client.engine, lambda: self.now),
            self.coordinator.led,
            lambda: self.now,
        )  # fmt: skip
        self.redis: Any = redis.Redis.from_url(valkey.url(), decode_responses=True)

    def run(self) -> None:
        self.coordinator.step()
        while self.relay.step() == 0.0:
            pass

    def length(self) -> int:
        return sum(self.redis.xlen(key) for key in self.redis.scan_iter(match="tenure:keyed:evt*", _type="stream"))

    def close(self) -> None:
        self.relay.stop()
        self.coordinator.resign()
        self.redis.flushdb()
        self.redis.close()
        self.client.close()


@pytest.fixture
def world(tmp_path: Path, valkey: ValkeyServer) -> Iterator[World]:
    world = World(tmp_path, valkey)
    world.run()
    yield world
    world.close()


def test_keys_follow_events_and_snapshots(world: World) -> None:
    task = world.client.add("work").task
    assert task is not None
    world.run()
    assert world.redis.zrange(f"{START}:tasks:ready", 0, -1) == [task["id"]]
    receipt = world.client.claim(task["key"]).receipt
    world.run()
    assert world.redis.hgetall(f"{START}:tasks:active") == {task["id"]: "ann"}
    assert world.redis.zrange(f"{START}:tasks:ready", 0, -1) == []
    world.redis.delete(f"{START}:tasks:active")  # somebody's mistake: the next snapshot corrects it
    world.now += 61
    world.run()
    assert world.redis.hgetall(f"{START}:tasks:active") == {task["id"]: "ann"}
    assert world.redis.get(f"{START}:agent:status:ann") == "active"
    assert world.client.submit(receipt or "", "done").ok
    world.run()
    assert world.redis.hgetall(f"{START}:tasks:active") == {}


def test_a_rewind_appends_again_what_the_stream_already_had(world: World) -> None:
    world.client.add("work")
    world.run()
    before = world.length()
    world.run()
    assert world.length() == before
    world.client.do(c.RewindRelay(project="", sink="keyed", to=0))
    world.run()
    assert world.length() >= 2 * before

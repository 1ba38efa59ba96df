"""A relay to a Valkey server with `keys = true`: its stream, its keys and a rewind, from a real store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from tenure import Client
from tenure.agents.leader_process import opened
from tenure.core import commands as c
from tenure.engine.relay.relay import Relay, Settings
from tenure.server.coordinator import coordinator_of
from tenure.sinks.settings import SinkSettings
from tests.servers.valkey import ValkeyServer

START = "tenure:keyed:local:p"
ALERTS = "tenure:keyed:local:usage:alerts"


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
    assert world.redis.zrange(f"{START}:tasks:ready:10", 0, -1) == [task["id"]]
    receipt = world.client.claim(task["key"]).receipt
    world.run()
    assert world.redis.hgetall(f"{START}:tasks:active") == {task["id"]: "ann"}
    assert world.redis.zrange(f"{START}:tasks:ready:10", 0, -1) == []
    world.redis.delete(f"{START}:tasks:active")  # somebody's mistake: the next snapshot corrects it
    world.now += 61
    world.run()
    assert world.redis.hgetall(f"{START}:tasks:active") == {task["id"]: "ann"}
    assert world.redis.get(f"{START}:agent:status:ann") == "active"
    assert world.client.submit(receipt or "", "done").ok
    world.run()
    assert world.redis.hgetall(f"{START}:tasks:active") == {}


def test_each_queue_is_in_the_order_of_claims(world: World) -> None:
    """Work of one boost keeps its order with time, so there is one queue a boost."""
    for boost in (0.0, 10.0):
        for title in ("one", "two", "urgent"):
            world.client.add(title, boost=boost, priority="critical" if title == "urgent" else "normal")
        world.run()
        world.now += 61
    world.run()
    titles = {task["id"]: task["title"] for task in world.client.tasks()}
    for key in ("tasks:ready:0", "tasks:ready:1000"):
        assert [titles[id] for id in world.redis.zrange(f"{START}:{key}", 0, -1)] == ["urgent", "one", "two"]


def test_alerts_name_project_and_task_and_end_when_the_budget_is_raised(world: World) -> None:
    task = world.client.add("dear").task
    assert task is not None
    world.client.set_budget(f"task:{task['key']}", usd="1")
    receipt = world.client.claim(task["key"]).receipt or ""
    world.client.do(c.ReportUsage(project="p", receipt=receipt, model="opus", fresh=1, cost_usd="0.95"))
    world.run()
    (ninety, _) = [msgspec.json.decode(text) for text in world.redis.lrange(ALERTS, 0, -1)]
    names = ("project", "task_id", "task", "level", "threshold", "percent")
    assert [ninety[name] for name in names] == ["p", task["id"], task["key"], "warning", 90, 95]
    assert ninety["message"] == f"budget task:{task['key']}: 95 % used, $0.95 of $1.00"
    world.now += 61
    world.run()
    funds = world.redis.hgetall(f"{START}:usage:task:{task['id']}")
    assert (funds["allocated"], funds["currency"], funds["cost"]) == ("1.0", "usd", "0.95")
    world.client.set_budget(f"task:{task['key']}", usd="100")
    world.now += 2
    world.run()
    assert world.redis.lrange(ALERTS, 0, -1) == []


def test_a_rewind_appends_again_what_the_stream_already_had(world: World) -> None:
    world.client.add("work")
    world.run()
    before = world.length()
    world.run()
    assert world.length() == before
    world.client.do(c.RewindRelay(project="", sink="keyed", to=0))
    world.run()
    assert world.length() >= 2 * before

"""The keys in a Valkey server say what the log and the snapshots say, and nothing that is over."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import redis

from tenure.core.instants import format_instant
from tenure.core.records import Task
from tenure.sinks.envelope import Facts, messages_of
from tenure.sinks.port import Message, SinkUnavailable
from tenure.sinks.redis_keys import Agent, OfProject, RuntimeKeys, Snapshot
from tenure.testing.samples import event_of, row_of
from tests.servers.valkey import ValkeyServer

NOW = 1_700_000_000_000_000
_prefixes = itertools.count(1)


class Keys:
    """The mirror of one tenant, and a reader of it."""

    def __init__(self, server: ValkeyServer) -> None:
        prefix = f"k{next(_prefixes)}"
        self.mirror = RuntimeKeys(f"{server.url().replace('redis://', 'redis+stream://')}?prefix={prefix}")
        self.client = redis.Redis.from_url(server.url(), decode_responses=True)
        self.start = f"tenure:{prefix}:local"

    def key(self, name: str, project: str = "p") -> str:
        return f"{self.start}:{project}:{name}"

    def all(self) -> set[str]:
        return {key.removeprefix(f"{self.start}:") for key in self.client.scan_iter(match=f"{self.start}:*")}


@pytest.fixture
def keys(valkey: ValkeyServer) -> Iterator[Keys]:
    keys = Keys(valkey)
    yield keys
    keys.mirror.close()
    keys.client.close()


def told(
    kind: str, state: str | None = None, agent: str | None = "ann", project: str = "p", **details: Any
) -> list[Message]:
    is_of_task = kind.startswith("task.")
    about = {"task": "t"} if is_of_task else {}
    event = event_of(
        kind=kind, time=NOW, project=project, agent=agent, new_state=state, version=1, details=details, **about
    )
    return messages_of(event, Facts("local", task=row_of(Task, id="t") if is_of_task else None, agent_type="coder"))


def test_a_task_moves_from_ready_to_active_and_away(keys: Keys) -> None:
    assert keys.mirror.apply(told("task.ready", "ready", agent=None)) == ({"p"}, False)
    keys.mirror.replace_queues("local", {"p": {100: ["t"]}})
    assert keys.client.zrange(keys.key("tasks:ready:100"), 0, -1) == ["t"]
    for _ in range(2):  # a repeat changes nothing
        keys.mirror.apply(told("task.claimed", "claimed", lease_until=NOW, previous_generation=0))
    assert keys.client.hgetall(keys.key("tasks:active")) == {"t": "ann"}
    assert keys.client.smembers(keys.key("agent:tasks:ann")) == {"t"}
    assert keys.client.zcard(keys.key("tasks:ready:100")) == 0
    keys.mirror.apply(told("task.edited", "claimed", agent="root", holder="ann", changes=[], before={}))
    assert keys.client.hgetall(keys.key("tasks:active")) == {"t": "ann"}  # whoever acted
    cancelled = {"cause": "person", "reason": "", "before": {}}
    keys.mirror.apply(told("task.cancelled", "cancelled", agent="root", holder="ann", **cancelled))
    assert keys.all() == set()


def test_agents_and_sessions_of_one_name_in_two_projects_stay_apart(keys: Keys) -> None:
    other = OfProject(agents=(Agent("ann", "stale", NOW),), contexts={"s": {"agent": "ann", "tasks": []}})
    mine = OfProject(agents=(Agent("ann", "active", NOW, ("x",)),), contexts={"s": {"agent": "ann", "tasks": ["x"]}})
    keys.mirror.replace(Snapshot("local", NOW, {"p": mine, "a:b": other}))
    assert keys.client.smembers(keys.key("agent:tasks:ann")) == {"x"}
    assert [keys.client.get(keys.key("agent:status:ann", of)) for of in ("p", "a~3ab")] == ["active", "stale"]
    assert '"tasks":["x"]' in keys.client.get(keys.key("session:context:s"))
    keys.mirror.apply(told("agent.draining", project="q"))
    assert keys.client.get(keys.key("agent:status:ann")) == "active"


def test_a_snapshot_leaves_the_keys_of_a_tenant_whose_prefix_is_this_tenants_name(keys: Keys) -> None:
    theirs = f"{keys.start}:other:p:agent:status:ann"
    keys.client.set(theirs, "active")
    keys.mirror.replace(Snapshot("local", NOW))
    assert keys.client.get(theirs) == "active"


def test_an_agent_has_a_status_and_a_heartbeat_that_goes(keys: Keys) -> None:
    keys.mirror.apply(told("agent.registered"))
    assert keys.client.get(keys.key("agent:status:ann")) == "active"
    assert keys.client.get(keys.key("agent:heartbeat:ann")) == format_instant(NOW)
    assert 0 < keys.client.ttl(keys.key("agent:heartbeat:ann")) <= 60
    keys.mirror.apply(told("agent.stale"))
    assert keys.client.smembers(keys.key("stale_agents")) == {"ann"}
    keys.mirror.apply(told("agent.recovered"))
    assert keys.client.smembers(keys.key("stale_agents")) == set()


def test_the_list_has_the_alerts_that_hold_now(keys: Keys) -> None:
    assert keys.mirror.apply(told("budget.alert", budget="project", threshold=90, percent=91)) == (set(), True)
    for found in ([{"threshold": 90}, {"threshold": 50}], []):
        keys.mirror.replace_alerts("local", found)
        listed = keys.client.lrange(f"{keys.start}:usage:alerts", 0, -1)
        assert [msgspec.json.decode(text) for text in listed] == found


def test_events_are_published_on_their_channels(keys: Keys) -> None:
    with keys.client.pubsub(ignore_subscribe_messages=True) as channel:
        channel.subscribe(f"{keys.start}:tasks:events", f"{keys.start}:agents:events")
        channel.get_message(timeout=5)
        channel.get_message(timeout=5)
        keys.mirror.apply([*told("task.noted", "ready"), *told("agent.left"), *told("project.created")])
        got = [channel.get_message(timeout=5) for _ in range(2)]
    kinds = [msgspec.json.decode(one["data"])["kind"] for one in got if one is not None]
    assert kinds == ["evt.task.noted", "evt.agent.coder.left"]


def test_a_snapshot_replaces_all_that_is_there(keys: Keys) -> None:
    keys.mirror.apply(told("agent.registered", agent="gone"))
    keys.mirror.replace_queues("local", {"p": {1: ["t"]}})
    state = OfProject(
        agents=(Agent("ann", "active", NOW - 10_000_000, ("x",)), Agent("bo", "stale", NOW - 600_000_000)),
        ready={0: ["z", "y"], 1000: ["b"]},
        active={"x": "ann"},
        contexts={"s-ann": {"agent": "ann", "tasks": ["x"]}},
        usage={"cost": "1.5"},
        usage_of_tasks={"x": {"cost": "1.5"}},
    )
    for _ in range(2):
        keys.mirror.replace(Snapshot("local", NOW, {"p": state}, [{"threshold": 50}]))
    assert keys.all() == {"usage:alerts"} | {
        f"p:{name}" for name in (
            "agent:heartbeat:gone", "agent:heartbeat:ann", "agent:status:ann", "agent:status:bo", "agent:tasks:ann",
            "stale_agents", "tasks:active", "tasks:ready:0", "tasks:ready:1000", "session:context:s-ann",
            "usage:current", "usage:task:x",
        )
    }  # fmt: skip
    assert keys.client.zrange(keys.key("tasks:ready:0"), 0, -1) == ["z", "y"]
    assert 0 < keys.client.ttl(keys.key("agent:heartbeat:ann")) <= 50
    assert 0 < keys.client.ttl(keys.key("session:context:s-ann")) <= 3600
    assert keys.client.smembers(keys.key("stale_agents")) == {"bo"}
    keys.mirror.replace(Snapshot("local", NOW))
    assert {key for key in keys.all() if ":heartbeat:" not in key} == {"p:session:context:s-ann"}


def test_a_server_that_is_down_is_unavailable() -> None:
    mirror = RuntimeKeys("redis+stream://user:s3cret@127.0.0.1:1")
    with pytest.raises(SinkUnavailable) as raised:
        mirror.replace(Snapshot("local", NOW))
    assert "s3cret" not in raised.value.message

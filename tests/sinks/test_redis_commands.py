"""A sink in a Valkey server with `commands = true`: programs outside publish commands, the leader answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from tenure import Client
from tenure.core import commands as c
from tenure.core.commands import Register
from tenure.engine.relay import channel_commands
from tenure.engine.relay.channel_commands import ChannelCommands
from tenure.server.coordinator import coordinator_of
from tenure.sinks.redis_commands import RedisCommandChannel
from tests.servers.valkey import ValkeyServer

START = "tenure:commanded:local:coordinator"


class World:
    def __init__(self, folder: Path, valkey: ValkeyServer, projects: tuple[str, ...] = ()) -> None:
        self.client = Client(str(folder / "tenure.db"), "p", agent="ann", session="s", create=True)
        self.client.do(c.DefineProject(project="p"))
        self.client.do(c.DefineProject(project="q"))
        self.coordinator = coordinator_of(self.client.engine)
        self.coordinator.step()
        self.reports: list[str] = []
        url = valkey.url().replace("redis://", "redis+stream://") + "?prefix=commanded"
        self.commands = ChannelCommands(
            self.client.engine, "out", projects, lambda: RedisCommandChannel(url, "local"), self.coordinator.led,
            failed=self.reports.append,
        )  # fmt: skip
        self.redis: Any = redis.Redis.from_url(valkey.url(), decode_responses=True)
        self.answers = self.redis.pubsub(ignore_subscribe_messages=True)
        self.answers.subscribe(f"{START}:answers")
        self.answers.get_message(timeout=5)
        self.commands.step()  # subscribes

    def send(self, **asked: object) -> dict[str, Any]:
        return self.send_bytes(msgspec.json.encode(asked))

    def send_bytes(self, body: bytes) -> dict[str, Any]:
        assert self.redis.publish(f"{START}:commands", body) == 1
        self.commands.step()
        answer = self.answers.get_message(timeout=5)
        assert answer is not None
        found: dict[str, Any] = msgspec.json.decode(answer["data"])
        return found

    def close(self) -> None:
        self.commands.stop()
        self.coordinator.resign()
        self.answers.close()
        self.redis.close()
        self.client.close()


@pytest.fixture
def world(tmp_path: Path, valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(channel_commands, "LISTENS", 0.2)
    world = World(tmp_path, valkey)
    yield world
    world.close()


def held(world: World) -> str:
    world.client.do(Register(project="p", agent="bo"))
    task = world.client.add("work").task
    assert task is not None
    assert world.client.claim(task["key"]).receipt is not None
    return str(task["id"])


def test_a_task_is_reassigned_as_the_sinks_own_principal(world: World) -> None:
    task = held(world)
    answer = world.send(command="reassign_task", project="p", task_id=task, agent_id="bo", id="r1")
    assert (answer["id"], answer["outcome"]) == ("r1", "UPDATED"), answer
    shown = world.client.show(task)
    assert (shown["state"], shown["offer"]["to"] if "offer" in shown else shown.get("offer_to")) == ("ready", "bo")
    (event,) = [event for event in world.client.log(kind="task.reassigned") if event["task"] == task]
    assert event["user"] == "sink:out"


def test_a_repeat_with_the_same_id_has_one_effect(world: World) -> None:
    task = held(world)
    for _ in range(2):
        assert (
            world.send(command="reassign_task", project="p", task_id=task, agent_id="bo", id="r1")["outcome"]
            == "UPDATED"
        )
    assert len(world.client.log(kind="task.reassigned")) == 1


def test_recover_ends_a_claim_or_settles_what_is_due(world: World) -> None:
    task = held(world)
    assert world.send(command="recover")["settled"] == 0
    assert world.send(command="recover", project="p", task_id=task)["outcome"] == "UPDATED"
    assert world.client.show(task)["state"] == "ready"


def test_bad_messages_are_answered_with_what_is_wrong(world: World) -> None:
    for body in (b"not json", b'{"command": "drop_everything"}', b'{"command": "recover", "force": true}', b"x" * 9000):
        assert world.send_bytes(body)["outcome"] == "INVALID_INPUT"
    missing = world.send(command="reassign_task", task_id="t")
    assert "project" in missing["message"]
    assert world.send(command="reassign_task", project="p", task_id="P-404", agent_id="bo")["outcome"] == "NOT_FOUND"
    assert world.reports == []


def test_a_sink_for_some_projects_commands_no_others(
    tmp_path: Path, valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_commands, "LISTENS", 0.2)
    world = World(tmp_path, valkey, ("q",))
    try:
        task = held(world)
        refused = world.send(command="reassign_task", project="p", task_id=task, agent_id="bo")
        assert refused["outcome"] in ("NOT_ALLOWED", "NOT_FOUND")
        assert world.send(command="recover", project="p")["outcome"] == "NOT_ALLOWED"
        assert world.send(command="recover")["outcome"] == "UPDATED"
        assert world.client.show(task)["state"] == "claimed"
    finally:
        world.close()


def test_who_does_not_lead_does_not_listen(world: World) -> None:
    world.coordinator.resign()
    world.commands.step()
    assert world.redis.publish(f"{START}:commands", b'{"command": "recover"}') == 0


def test_a_server_that_is_away_is_reported_once(tmp_path: Path) -> None:
    client = Client(str(tmp_path / "tenure.db"), "p", create=True)
    client.do(c.DefineProject(project="p"))
    coordinator = coordinator_of(client.engine)
    coordinator.step()
    reports: list[str] = []
    commands = ChannelCommands(
        client.engine, "out", (), lambda: RedisCommandChannel("redis+stream://u:s3cret@127.0.0.1:1", "local"),
        coordinator.led, failed=reports.append,
    )  # fmt: skip
    for _ in range(3):
        assert commands.step() > 0
    assert len(reports) == 1
    assert "s3cret" not in reports[0]
    coordinator.resign()
    client.close()

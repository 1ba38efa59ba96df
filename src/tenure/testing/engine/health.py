"""Health: what agents say they do and use, who counts as an agent, and when one is offline."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands.holder_commands import Process
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.queries import Agents, Processes, ShowAgent
from tenure.core.records import Agent, HealthMinute
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene

MINUTE = 60_000_000


def agent(scene: Scene, name: str = "ann") -> dict[str, Any]:
    found: dict[str, Any] = read_query(scene.engine, ShowAgent(project=PROJECT, agent=name))
    return found


def beat(scene: Scene, name: str = "ann", **fields: Any) -> None:
    assert scene.do(c.Heartbeat, agent=name, **fields).outcome == "OK"


def process(number: int) -> Process:
    return Process(host="build", boot="b", pid=number, start=7)


def where(number: int) -> dict[str, Any]:
    return {"host": "build", "boot": "b", "pid": number, "pid_start": 7}


class Health(Stage):
    def test_a_heartbeat_says_what_the_agent_does_and_uses(self, scene: Scene) -> None:
        first, second = scene.add("one"), scene.add("two")
        scene.do(c.Register, agent="ann", managed=True, heartbeat=30.0)
        scene.take(first)
        scene.take(second)
        beat(scene, task=first, step="tests", percent=40, memory_mb=812, cpu_percent=130, metadata={"host": "a"})
        seen = agent(scene)
        assert {name: seen[name] for name in ("task", "step", "percent", "memory_mb", "cpu_percent", "managed")} == {
            "task": first,
            "step": "tests",
            "percent": 40,
            "memory_mb": 812,
            "cpu_percent": 130,
            "managed": True,
        }
        assert (seen["metadata"], seen["next_heartbeat_at"]) == ({"host": "a"}, scene.now + 30_000_000)

    def test_a_heartbeat_leaves_what_it_does_not_say(self, scene: Scene) -> None:
        scene.do(c.Register, agent="ann")
        beat(scene, health="degraded", memory_mb=5, metadata={"a": 1})
        beat(scene)
        seen = agent(scene)
        assert (seen["health"], seen["memory_mb"], seen["metadata"]) == ("degraded", 5, {"a": 1})
        beat(scene, health="healthy")
        assert agent(scene)["health"] == "healthy"

    def test_progress_of_the_claim_goes_before_the_heartbeats(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        beat(scene, task=key, step="early", percent=5)
        scene.do(c.Progress, receipt=receipt, percent=60, step="late", done_in=600)
        seen = agent(scene)
        assert (seen["step"], seen["percent"], seen["expected_at"]) == ("late", 60, scene.now + 600_000_000)
        scene.submit(receipt)
        assert [agent(scene)[name] for name in ("task", "step", "percent", "expected_at")] == [None] * 4

    def test_the_last_hour_is_kept_one_row_a_minute(self, scene: Scene) -> None:
        scene.do(c.Register, agent="ann")
        scene.clock.advance(MINUTE - scene.now % MINUTE)
        for minute in range(130):
            beat(scene, memory_mb=minute, cpu_percent=1)
            scene.pass_time(seconds=30)
            beat(scene, memory_mb=minute // 2, cpu_percent=3)  # the most of a minute counts
            scene.pass_time(seconds=30)
        minutes = agent(scene)["minutes"]
        assert [m["memory_mb"] for m in minutes] == list(range(70, 130))
        assert {m["cpu_percent"] for m in minutes} == {3}
        assert len(scene.rows(HealthMinute)) == 60
        scene.pass_time(minutes=30)
        assert [m["memory_mb"] for m in agent(scene)["minutes"]] == list(range(100, 130))

    def test_a_heartbeat_without_figures_writes_no_minute(self, scene: Scene) -> None:
        beat(scene)
        assert scene.rows(HealthMinute) == []

    @pytest.mark.parametrize(
        "fields", [{"percent": 101}, {"percent": -1}, {"memory_mb": -1}, {"cpu_percent": -5}, {"health": "fine"}]
    )
    def test_impossible_figures_are_refused(self, scene: Scene, fields: dict[str, Any]) -> None:
        scene.do(c.Register, agent="ann")
        with pytest.raises(InvalidInput):
            beat(scene, **fields)

    def test_a_task_that_does_not_exist_is_refused(self, scene: Scene) -> None:
        with pytest.raises(NotFound):
            beat(scene, task="Z-999")

    def test_agents_are_listed_by_who_looks_after_them(self, scene: Scene) -> None:
        scene.do(c.Register, agent="worker", managed=True)
        scene.next("shell", agent_type="human")

        def named(managed: bool | None) -> list[str]:
            found = read_query(scene.engine, Agents(project=PROJECT, managed=managed))
            return [str(agent["name"]) for agent in found]

        assert (named(None), named(True), named(False)) == (["shell", "worker"], ["worker"], ["shell"])

    # --- who counts, and for how long ---

    def test_a_persons_shell_goes_home_and_rings_no_alert(self, scene: Scene) -> None:
        scene.next("mia", agent_type="human")
        scene.next("bot", agent_type="claude")
        assert [agent(scene, name)["status"] for name in ("mia", "bot")] == ["idle", "idle"]
        assert agent(scene, "mia")["next_heartbeat_at"] is None
        scene.pass_time(minutes=31)
        scene.engine.sweep()
        assert [agent(scene, name)["status"] for name in ("mia", "bot")] == ["offline", "stale"]
        assert [event.agent for event in scene.events(kind="agent.stale")] == ["bot"]
        scene.next("mia")
        assert agent(scene, "mia")["status"] == "idle"

    def test_an_agent_known_by_its_claims_alone_is_stale_after_30_minutes(self, scene: Scene) -> None:
        scene.take(scene.add(), "ann", lease=7200)
        scene.do(c.Register, agent="worker")  # it says how often it gives a sign of life: 180 s
        scene.pass_time(minutes=29)
        assert [agent(scene, name)["status"] for name in ("ann", "worker")] == ["active", "stale"]
        scene.pass_time(minutes=1)
        assert agent(scene)["status"] == "stale"

    @pytest.mark.parametrize("sign", ["msg", "inbox", "add"])
    def test_what_an_agent_does_is_a_sign_of_life(self, scene: Scene, sign: str) -> None:
        scene.do(c.Register, agent="ann")
        scene.do(c.Register, agent="bo")
        scene.pass_time(minutes=10)
        scene.engine.sweep()
        if sign == "msg":
            scene.do(c.Send, sender="ann", to="bo", text="hello", by=AGENT)
        elif sign == "inbox":
            scene.do(c.Read, agent="ann", by=AGENT)
        else:
            scene.do(c.Add, task=c.NewTask(title="found on the way"), by=AGENT)
        assert [agent(scene, name)["status"] for name in ("ann", "bo")] == ["idle", "stale"]
        assert [event.agent for event in scene.events(kind="agent.recovered")] == ["ann"]

    def test_a_message_makes_no_agent_of_its_sender(self, scene: Scene) -> None:
        scene.do(c.Register, agent="bo")
        scene.do(c.Send, sender="cli", to="bo", text="hello")
        assert [row.id for row in scene.rows(Agent)] == ["bo"]

    # --- agents whose process is gone ---

    def test_an_agent_dies_with_its_process(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Register, agent="ann", **where(1))
        scene.do(c.Register, agent="bo", **where(2))
        scene.take(key, process=process(1), lease=600)
        listed = read_query(scene.engine, Processes(project=PROJECT))
        assert [(p["pid"], list(p["tasks"])) for p in listed] == [(1, [key]), (2, [])]
        assert scene.do(c.Gone, processes=(process(1),)).changed == (key,)
        assert [agent(scene, name)["status"] for name in ("ann", "bo")] == ["offline", "idle"]
        (event,) = scene.events(kind="agent.died")
        assert (event.agent, event.level, event.details["pid"]) == ("ann", "warning", 1)
        assert scene.do(c.Gone, processes=(process(1),)).outcome == "UNCHANGED"

    def test_an_idle_agent_dies_too_and_comes_back_with_its_next_sign(self, scene: Scene) -> None:
        scene.do(c.Register, agent="ann", **where(1))
        assert scene.do(c.Gone, processes=(process(1),)).outcome == "OK"
        assert agent(scene)["status"] == "offline"
        assert read_query(scene.engine, Processes(project=PROJECT)) == []
        scene.do(c.Register, agent="ann", **where(3))
        assert agent(scene)["status"] == "idle"

    def test_an_agent_that_lives_elsewhere_does_not_die_with_one_process(self, scene: Scene) -> None:
        first, second = scene.add(), scene.add()
        scene.do(c.Register, agent="moved", **where(9))  # it has been started again, as another process
        scene.take(first, "moved", process=process(1))
        scene.take(second, "twice", session="one", process=process(2))
        scene.next("twice", session="two", types=("none",))  # the same name in another session
        scene.do(c.Gone, processes=(process(1), process(2)))
        assert [agent(scene, name)["status"] for name in ("moved", "twice")] == ["idle", "idle"]
        assert scene.events(kind="agent.died") == []

    def test_an_agent_known_by_its_claim_alone_dies_with_the_claims_process(self, scene: Scene) -> None:
        scene.take(scene.add(), process=process(4))
        scene.do(c.Gone, processes=(process(4),))
        assert agent(scene)["status"] == "offline"

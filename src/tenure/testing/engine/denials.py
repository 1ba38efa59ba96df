"""Denials and `why`: what keeps a task from an agent, and until when."""

from __future__ import annotations

from typing import Any

from tenure.core import commands as c
from tenure.core.commands import Dependency
from tenure.core.queries import Ready, Why
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene


def why(scene: Scene, task: str) -> dict[str, Any]:
    found: dict[str, Any] = read_query(scene.engine, Why(project=PROJECT, task=task))
    return found


def reasons(scene: Scene, task: str) -> str:
    return "; ".join(why(scene, task)["reasons"])


def ready(scene: Scene) -> list[str]:
    return [task["key"] for task in read_query(scene.engine, Ready(project=PROJECT))]


class Denials(Stage):
    def test_a_stopped_line_says_so_where_nothing_is_claimed(self, scene: Scene) -> None:
        scene.add()
        scene.do(c.StopLine, scope="project:", reason="lunch")
        answer = scene.next()
        assert answer.outcome == "NO_TASK"
        assert "claiming is stopped for the whole project: lunch" in answer.message
        assert "tenure go" in (answer.hint or "")
        assert ready(scene) == []
        scene.do(c.StartLine, scope="project:")
        assert len(ready(scene)) == 1

    def test_a_stop_of_another_agent_is_not_named(self, scene: Scene) -> None:
        scene.do(c.StopLine, scope="agent:bo", reason="lunch")
        answer = scene.next("ann")
        assert ("lunch" in answer.message, answer.hint) == (False, None)
        assert "lunch" in scene.next("bo").message

    def test_a_reserved_task_is_not_listed_as_ready_and_why_names_the_end(self, scene: Scene) -> None:
        free, reserved = scene.add(), scene.add(touches=("src/**",))
        scene.do(c.Reserve, agent="bo", session="s-bo", patterns=("src/a.py",), lease=120)
        assert ready(scene) == [scene.task(free).key]
        assert "would overlap src/a.py, reserved by agent bo" in reasons(scene, reserved)
        assert "in 2 min" in reasons(scene, reserved)
        denied = scene.claim(reserved)
        assert (denied.outcome, denied.retry_in) == ("DENIED_CONFLICT", 120)
        assert "in 2 min" in denied.message

    def test_why_says_of_nobody_that_it_can_take_what_a_claim_has_reserved(self, scene: Scene) -> None:
        first = scene.add(touches=("src/**",))
        scene.take(first, "bo")
        other = scene.add(touches=("src/a.py",))
        view = why(scene, other)
        name = scene.task(first).key
        assert {one["agent"]: one["why_not"] for one in view["agents"]} == {
            "bo": [f"would overlap src/**, held by bo for {name}; that lease ends in 5 min"]
        }
        assert "no known agent can take it" in view["reasons"]

    def test_why_says_that_the_holder_of_a_reservation_can_take_the_task(self, scene: Scene) -> None:
        for agent in ("ann", "bo"):
            scene.do(c.Register, agent=agent, session=f"s-{agent}")
        reserved = scene.add(touches=("src/**",))
        scene.do(c.Reserve, agent="bo", session="s-bo", patterns=("src/a.py",), lease=120)
        could = {one["agent"]: one["why_not"] for one in why(scene, reserved)["agents"]}
        assert could.pop("bo") == []
        assert could["ann"][0].startswith("would overlap src/a.py, held by bo")

    def test_a_message_says_dead_letter_as_lists_do(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        assert scene.fail(scene.take(key)).message == f"{scene.task(key).key} is a dead letter"

    def test_why_says_that_a_dependency_is_dead_or_cancelled(self, scene: Scene) -> None:
        going, dead, cancelled = scene.add("a"), scene.add("b"), scene.add("c")
        needs = tuple(Dependency(task=key) for key in (going, dead, cancelled))
        last = scene.add("d", depends_on=needs)
        scene.bury(dead)
        scene.do(c.Cancel, task=cancelled)
        text = reasons(scene, last)
        names = {name: scene.task(name).key for name in (going, dead, cancelled)}
        assert f"waiting for {names[going]};" in text
        assert f"waiting for {names[dead]}, which is a dead letter: retry it" in text
        assert f"waiting for {names[cancelled]}, which is cancelled" in text

    def test_denials_name_a_time(self, scene: Scene) -> None:
        held = scene.add()
        scene.take(held, "bo", lease=600)
        denied = scene.claim(held, "ann")
        assert (denied.outcome, denied.lease) == ("DENIED_ACTIVE_CLAIM", 600)
        assert "its lease ends in 10 min" in denied.message
        later = scene.add(not_before=scene.now + 3_600_000_000)
        denied = scene.claim(later)
        assert (denied.outcome, denied.retry_in) == ("DENIED_NOT_READY", 3600)
        assert "in 1 h" in denied.message
        offered = scene.add()
        scene.know("bo")
        scene.do(c.Assign, task=offered, agent="bo", seconds=90)
        denied = scene.claim(offered, "ann")
        assert (denied.outcome, denied.retry_in) == ("DENIED_OFFERED", 90)
        assert "in 1 min 30 s" in denied.message

    def test_why_has_no_raw_instants(self, scene: Scene) -> None:
        later = scene.add(not_before=scene.now + 3_600_000_000)
        text = reasons(scene, later)
        assert "UTC, in 1 h" in text
        assert str(scene.now + 3_600_000_000) not in text

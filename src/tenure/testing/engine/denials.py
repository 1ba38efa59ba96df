"""Denials and `why`: what keeps a task from an agent, and until when."""

from __future__ import annotations

from typing import Any

from tenure.core import commands as c
from tenure.core import runners
from tenure.core.commands import Dependency
from tenure.core.queries import Briefing, DeadLetters, Ready, Show, Todo, Why
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene


def why(scene: Scene, task: str) -> dict[str, Any]:
    found: dict[str, Any] = read_query(scene.engine, Why(project=PROJECT, task=task))
    return found


def reasons(scene: Scene, task: str) -> str:
    return "; ".join(why(scene, task)["reasons"])


def could(scene: Scene, task: str) -> dict[str, list[str]]:
    return {one["agent"]: one["why_not"] for one in why(scene, task)["agents"]}


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

    def test_why_names_limits_generations_budgets_and_runners_as_claims_do(self, scene: Scene) -> None:
        for agent in ("ann", "bo"):
            scene.do(c.Register, agent=agent, session=f"s-{agent}", max_concurrent_tasks=1 if agent == "ann" else None)
        held, key, worn = scene.add(), scene.add(), scene.add(max_attempts=2)
        scene.take(held, "ann")
        scene.fail(scene.take(worn, "bo"), retry_after=0)
        assert could(scene, key) == {"ann": ["holds 1 tasks; max_concurrent_tasks is 1"], "bo": []}
        scene.do(c.SetBudget, scope="agent:bo", usd="1", default_estimate="2")
        (why_not,) = could(scene, key)["bo"]
        assert why_not.startswith("would reserve $2.00; budget agent:bo has $1.00 left")
        assert "no known agent can take it" in why(scene, key)["reasons"]
        scene.do(c.RemoveBudget, scope="agent:bo")
        scene.do(c.DefineProject, limits={"max_concurrent_claims": 1})
        live = f"project {PROJECT} has 1 live claims, its max_concurrent_claims limit"
        assert could(scene, key)["bo"] == [live]
        scene.do(c.DefineProject, limits={"max_generations_per_task": 1})
        used_up = "claimed 1 times in this run without a result, its max_generations_per_task limit"
        assert could(scene, worn)["bo"] == [used_up]
        assert used_up in why(scene, worn)["reasons"]
        scene.take(key, "bo", metadata=runners.mark("a word", submits=False))
        scene.do(c.DefineProject, limits={"max_active_sessions": 2})
        scene.do(c.Register, agent="cy")
        left = could(scene, scene.add())
        assert "its session works on A-002-work for a runner, which claims the other tasks" in left["bo"]
        assert left["cy"] == [
            f"would need a new session: project {PROJECT} has 2 active sessions, its max_active_sessions limit"
        ]

    def test_why_names_the_budget_for_which_a_dearer_agent_has_set_the_task_aside(self, scene: Scene) -> None:
        scene.do(c.DefineProject, routing=True)
        for agent, model in (("ann", "opus"), ("bo", "haiku")):
            scene.do(c.Register, agent=agent, models=(model,))
        scene.do(c.SetBudget, scope="project", usd="0.5", default_estimate="0.1")
        key = scene.add(constraints={"estimated_tokens": 200_000})
        assert [agent for agent, why_not in could(scene, key).items() if not why_not] == ["bo"]
        for agent in ("ann", "bo"):
            assert scene.next(agent).outcome == "NO_TASK"
        assert "would reserve" in could(scene, key)["bo"][0]
        assert scene.claim(key, "bo").outcome == "GRANTED"  # by name it is judged by bo's own price

    def test_why_of_a_task_that_no_budget_covers_says_of_nobody_that_it_can_take_it(self, scene: Scene) -> None:
        scene.know("ann", "bo")
        scene.do(c.SetBudget, scope="project", usd="0", default_estimate="1")
        key = scene.add()
        view = why(scene, key)
        short = "would reserve $1.00; budget project has $0.00 left ($0.00 spent, $0.00 reserved)"
        assert view["reasons"] == [short, "no known agent can take it"]
        assert could(scene, key) == {"ann": [short], "bo": [short]}

    def test_a_dead_letter_names_lost_claims_agents_and_attempts_in_every_view(self, scene: Scene) -> None:
        key = scene.add(max_attempts=10)
        scene.fail(scene.take(key, "ann"), message="compiler missing", retry_after=0)
        for agent in ("bo", "cy"):
            scene.take(key, agent, lease=60)
            scene.pass_time(seconds=61)
        how = "generation 2 of bo: its lease ran out; generation 3 of cy: its lease ran out"
        error = f"the last 2 claims were lost ({how}); generation 1 had failed: compiler missing"
        text = f"after 3 of 10 attempts: {error}; 3 different agents failed it, so nobody tries it again"
        (letter,) = read_query(scene.engine, DeadLetters(project=PROJECT))
        assert (letter["error_class"], letter["error"], letter["why"]) == ("lease_expired", error, text)
        assert [one["error"] for one in letter["history"][1:]] == ["its lease ran out"] * 2
        shown = read_query(scene.engine, Show(project=PROJECT, task=key))
        assert (shown["last_error"]["message"], shown["dead_letter"]) == (error, text)
        assert why(scene, key)["reasons"] == [f"dead letter {text}"[:300]]
        (waits,) = read_query(scene.engine, Todo(project=PROJECT))
        assert waits["text"] == text
        scene.do(c.Retry, task=key)
        (event,) = scene.events(kind="task.dead_lettered")
        assert (event.message, event.details["error"]) == (text, error)
        assert read_query(scene.engine, Briefing(project=PROJECT, task=key))["failure"]["message"] == error

    def test_the_next_holder_reads_that_the_claims_before_were_lost(self, scene: Scene) -> None:
        key = scene.add()
        assert "failure" not in read_query(scene.engine, Briefing(project=PROJECT, task=key))
        scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=61)
        text = "the last claim was lost (generation 1 of ann: its lease ran out)"
        receipt = ""
        for is_held in (False, True):
            receipt = scene.take(key, "bo") if is_held else receipt
            failure = read_query(scene.engine, Briefing(project=PROJECT, task=key))["failure"]
            assert (failure["message"], failure["error_class"], failure["agent"]) == (text, "lease_expired", "ann")
        scene.fail(receipt, message="broken", retry_after=0)
        assert read_query(scene.engine, Briefing(project=PROJECT, task=key))["failure"]["message"] == "broken"

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

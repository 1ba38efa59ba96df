"""Reads of agents, logs, lists and dags: what they show, and what their filters mean."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask, Totals
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.records import RetryPolicy, Task
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.graphs import new
from tenure.testing.engine.stage import Stage, last_changed
from tenure.testing.factories import AGENT, PROJECT, Scene

TRACE = "a" * 32
STACK = "Traceback (most recent call last):\n  in work\nValueError: token=hunter2 is bad"


def look(scene: Scene, kind: type[q.Query], **fields: Any) -> Any:
    return read_query(scene.engine, kind(project=PROJECT, **fields))


def titles(scene: Scene, **filters: Any) -> list[str]:
    return [task["title"] for task in look(scene, q.Tasks, **filters)]


class Reads(Stage):
    # --- agents ---------------------------------------------------------------------------------------------------

    def test_agents_are_listed_by_status(self, scene: Scene) -> None:
        scene.know("ann", "bo", "cy", "dee")
        scene.take(scene.add(), "ann")
        scene.do(c.Drain, agent="bo")
        scene.do(c.Terminate, agent="cy")
        by_status = {one["name"]: one["status"] for one in look(scene, q.Agents)}
        assert by_status == {"ann": "active", "bo": "draining", "cy": "offline", "dee": "idle"}
        for name, status in by_status.items():
            assert [one["name"] for one in look(scene, q.Agents, status=(status,))] == [name]
        assert len(look(scene, q.Agents, status=("idle", "active"))) == 2
        with pytest.raises(InvalidInput, match="status"):
            look(scene, q.Agents, status=("well",))

    def test_the_health_of_an_agent_is_its_own_word_and_its_silence(self, scene: Scene) -> None:
        scene.do(c.Register, agent="ann", heartbeat=30.0, stale_after=90.0, managed=True)
        scene.do(c.Heartbeat, agent="ann", health="ok", memory_mb=10)
        scene.pass_time(seconds=45)
        health = look(scene, q.AgentHealth, agent="ann")
        assert (health["health"], health["status"], health["silent_for"]) == ("healthy", "idle", 45.0)
        assert (health["heartbeat"], health["stale_after"]) == (30.0, 90.0)
        assert [minute["health"] for minute in health["minutes"]] == ["healthy"]
        scene.do(c.Heartbeat, agent="ann", health="degraded")
        scene.pass_time(seconds=90)
        health = look(scene, q.AgentHealth, agent="ann")
        assert (health["health"], health["status"]) == ("degraded", "stale")
        with pytest.raises(NotFound):
            look(scene, q.AgentHealth, agent="nobody")

    def test_the_tasks_of_an_agent_are_those_it_holds(self, scene: Scene) -> None:
        first, second = scene.add("first"), scene.add("second")
        scene.take(second, "ann")
        scene.pass_time(seconds=1)
        receipt = scene.take(first, "ann")
        assert [task["key"] for task in look(scene, q.AgentTasks, agent="ann")] == [second, first]
        with pytest.raises(NotFound):
            look(scene, q.AgentTasks, agent="nobody")
        scene.do(c.Start, receipt=receipt)
        assert [task["key"] for task in look(scene, q.AgentTasks, agent="ann", state=("running",))] == [first]
        assert [task["key"] for task in look(scene, q.AgentTasks, agent="ann", state=("claimed",))] == [second]
        with pytest.raises(InvalidInput, match="no agent holds a task that is completed"):
            look(scene, q.AgentTasks, agent="ann", state=("completed",))

    def test_a_task_is_found_by_its_idempotency_key(self, scene: Scene) -> None:
        scene.add("other", idempotency_key="k2")
        scene.add("wanted", idempotency_key="k1")
        assert titles(scene, idempotency_key="k1") == ["wanted"]
        assert titles(scene, idempotency_key="k3") == []

    def test_an_agent_is_shown_with_what_its_budgets_leave(self, scene: Scene) -> None:
        scene.do(c.Register, agent="ann")
        assert look(scene, q.ShowAgent, agent="ann")["budgets"] == []
        scene.do(c.SetBudget, scope="agent:ann", usd="2")
        (left,) = look(scene, q.ShowAgent, agent="ann")["budgets"]
        assert left == {"budget": "agent:ann", "currency": "usd", "headroom": "2.00"}

    def test_the_first_subtask_makes_a_dag_with_the_title_of_its_parent(self, scene: Scene) -> None:
        parent = scene.add("Build the page")
        scene.do(c.Spawn, receipt=scene.take(parent, "ann"), tasks=(NewTask(title="part"),), wait=False)
        assert [dag["title"] for dag in look(scene, q.Dags)] == ["Build the page"]

    # --- the log --------------------------------------------------------------------------------------------------

    def test_one_trace_lasts_from_the_creation_of_a_task_to_its_end(self, scene: Scene) -> None:
        traced = scene.do(c.Add, task=NewTask(title="traced"), trace_id=TRACE).task or {}
        plain = scene.add("plain")
        for key in (traced["key"], plain):
            receipt = scene.do(c.ClaimTask, task=key, agent="ann", session="s", trace_id="b" * 32, by=AGENT).receipt
            scene.do(c.Submit, receipt=receipt, trace_id="c" * 32, by=AGENT)
        events = look(scene, q.TaskLog, task=traced["key"])
        assert {event["trace_id"] for event in events} == {TRACE}
        assert [event.get("request_trace_id") for event in events] == [TRACE, "b" * 32, "c" * 32]
        others = {event["trace_id"] for event in look(scene, q.TaskLog, task=plain)}
        assert others == {look(scene, q.Show, task=plain)["trace_id"]}
        assert TRACE not in others
        in_log = {e["trace_id"] for e in look(scene, q.Log) if e.get("key") == traced["key"]}
        assert in_log == {TRACE}

    def test_a_level_means_this_one_and_those_above_it(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        scene.fail(scene.take(key))
        levels = {event["kind"]: event["level"] for event in look(scene, q.TaskLog, task=key)}
        assert set(levels.values()) == {"info", "warning", "error"}
        for lowest, shown in (("debug", 3), ("info", 3), ("warning", 2), ("error", 1), ("critical", 0)):
            for kind in (q.TaskLog, q.Log):
                found = {event["level"] for event in look(scene, kind, task=key, level=lowest)}
                assert len(found) == shown, (kind, lowest)
        with pytest.raises(InvalidInput, match="level"):
            look(scene, q.Log, level="loud")

    def test_the_stack_trace_of_a_failure_is_in_the_log_without_secrets(self, scene: Scene) -> None:
        key = scene.add()
        scene.fail(scene.take(key), message="broken", trace=STACK)
        (failed,) = [e for e in look(scene, q.TaskLog, task=key) if e["kind"] == "task.failed"]
        assert failed["stack_trace"].endswith("is bad")
        assert "hunter2" not in str(failed)

    def test_progress_may_bring_a_checkpoint(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Progress, receipt=receipt, percent=30, checkpoint={"next": "tests"}, by=AGENT)
        assert scene.log(key)[-2:] == ["task.progress", "task.checkpoint"]
        seen = look(scene, q.Show, task=key)
        assert (seen["percent"], seen["checkpoint"]["data"]) == (30, {"next": "tests"})
        scene.do(c.Recover, task=key, reason="lost")
        late = scene.try_to(c.Progress, receipt=receipt, checkpoint={"next": "nothing"}, by=AGENT)
        assert getattr(late, "outcome", None) != "OK"
        assert look(scene, q.Show, task=key)["checkpoint"]["data"] == {"next": "tests"}

    # --- lists ----------------------------------------------------------------------------------------------------

    def test_of_several_tags_a_task_must_have_all(self, scene: Scene) -> None:
        scene.add("one", tags=("a",))
        scene.add("both", tags=("b", "a"))
        assert titles(scene, tag=("a",)) == ["one", "both"]
        assert titles(scene, tag=("a", "b")) == ["both"]
        assert titles(scene, tag=("a", "c")) == []

    def test_priorities_may_be_bounded_on_either_side(self, scene: Scene) -> None:
        for priority in (10, 50, 90):
            scene.add(str(priority), priority=priority)
        assert titles(scene, priority_min=50) == ["50", "90"]
        assert titles(scene, priority_max=50) == ["10", "50"]
        assert titles(scene, priority_min=0, priority_max=10) == ["10"]
        assert titles(scene, priority_range=(50, 50)) == ["50"]

    def test_a_list_has_the_fields_that_are_wanted_and_those_of_its_cursor(self, scene: Scene) -> None:
        scene.add("one", description="long")
        (task,) = look(scene, q.Tasks, fields=("title",), order="-priority")
        assert set(task) == {"id", "key", "priority", "title"}
        with pytest.raises(InvalidInput, match="field"):
            look(scene, q.Tasks, fields=("nonsense",))

    def test_what_changed_last_is_found_by_the_end_of_the_log(self, scene: Scene) -> None:
        """In pages, of some states or all, while tasks change that other pages have shown."""
        keys = [scene.add(str(n)) for n in range(12)]
        for key in (keys[3], keys[7], keys[1]):
            scene.pass_time(seconds=1)
            scene.finish(key)
        scene.pass_time(seconds=1)
        scene.take(keys[5])
        shown = {task.id: task.key for task in scene.rows(Task)}
        assert [shown[i] for i in last_changed(scene)] == [keys[5], keys[1]]
        assert [shown[i] for i in last_changed(scene, state=("completed",))] == [keys[1], keys[7]]
        (row,) = [task for task in scene.rows(Task) if task.key == keys[1]]
        after = (row.updated_at, row.id)
        assert [shown[i] for i in last_changed(scene, after=after)] == [keys[7], keys[3]]
        assert [shown[i] for i in last_changed(scene, state=("paused",))] == []
        scene.pass_time(seconds=1_000_000)  # the lease has ended: a read settles it first
        assert next(shown[i] for i in last_changed(scene)) == keys[5]

    # --- dags -----------------------------------------------------------------------------------------------------

    def test_the_status_of_a_dag_tells_whether_anything_runs(self, scene: Scene) -> None:
        first, second = scene.plan(new("a"), new("b", "a"))
        dag = scene.task(first).dag

        def status() -> str:
            (listed,) = look(scene, q.Dags)
            shown = look(scene, q.ShowDag, dag=dag)
            assert listed["status"] == shown["status"]
            return str(shown["status"])

        assert status() == "pending"
        receipt = scene.take(first)
        assert status() == "running"
        scene.submit(receipt)
        assert status() == "pending"
        scene.finish(second)
        assert status() == "completed"

    def test_a_dag_shows_its_budget_and_what_it_has_cost(self, scene: Scene) -> None:
        first, second = scene.plan(new("a"), new("b"))
        dag = scene.task(first).dag
        seen = look(scene, q.ShowDag, dag=dag)
        assert (seen["budget"], seen["usage"]) == (None, None)
        scene.do(c.SetBudget, scope=f"dag:{dag}", usd="5", default_estimate="1")
        for key, cost in ((first, "0.75"), (second, "0.5")):
            scene.submit(scene.take(key), usage=(Totals(model="m", fresh=10, cost_usd=cost),))
        seen = look(scene, q.ShowDag, dag=dag)
        assert (seen["budget"]["allocated"], seen["budget"]["consumed"]) == ("5.00", "1.25")
        assert (seen["usage"]["cost_usd"], seen["usage"]["fresh"]) == ("1.25", 20)

    def test_a_task_shows_its_retry_policy_and_what_follows_a_lost_holder(self, scene: Scene) -> None:
        plain = look(scene, q.Show, task=scene.add())
        assert (plain["retry"], plain["on_lost"]) == ({}, "retry")
        key = scene.add(on_lost="hold", retry=RetryPolicy(strategy="fixed", no_retry_on=("timeout",)))
        seen = look(scene, q.Show, task=key)
        assert (seen["retry"], seen["on_lost"]) == ({"strategy": "fixed", "no_retry_on": ("timeout",)}, "hold")
        scene.do(c.Edit, task=key, changes={"on_lost": "back_off", "retry": {}})
        seen = look(scene, q.Show, task=key)
        assert (seen["retry"], seen["on_lost"]) == ({}, "back_off")

    # --- spending, for metrics ------------------------------------------------------------------------------------

    def test_spending_is_summed_by_agent_and_model(self, scene: Scene) -> None:
        scene.do(c.SetBudget, usd="10", default_estimate="1")
        scene.do(c.SetBudget, scope="agent:ann", usd="4")
        for agent, model, cost in (("ann", "m1", "1"), ("ann", "m2", "0.5"), ("bo", "m1", "2"), ("ann", "m1", "0.25")):
            usage = (Totals(model=model, fresh=10, cached=10**6, output=3, cost_usd=cost),)
            scene.submit(scene.take(scene.add(), agent), usage=usage)
        (entry,) = read_query(scene.engine, q.Spending())
        used = {(one["agent"], one["model"]): (one["fresh"], one["output"], one["cost_usd"]) for one in entry["used"]}
        assert used == {("ann", "m1"): (20, 6, 1.25), ("ann", "m2"): (10, 3, 0.5), ("bo", "m1"): (10, 3, 2.0)}
        assert entry["today_usd"] == 3.75
        assert {(one["scope"], one["name"]): one["remaining_usd"] for one in entry["budgets"]} == {
            ("project", ""): 6.25,
            ("agent", "ann"): 2.25,
        }
        scene.pass_time(hours=24)
        assert read_query(scene.engine, q.Spending())[0]["today_usd"] == 0.0

    def test_agents_and_models_beyond_the_first_are_together(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from tenure.engine.reads import spending

        monkeypatch.setattr(spending, "MOST_AGENTS", 1)
        monkeypatch.setattr(spending, "MOST_MODELS", 1)
        for agent, model, tokens in (("ann", "m1", 100), ("bo", "m1", 7), ("cy", "m2", 5), ("bo", "m3", 1)):
            usage = (Totals(model=model, fresh=tokens, cost_usd="1"),)
            scene.submit(scene.take(scene.add(), agent), usage=usage)
        (entry,) = read_query(scene.engine, q.Spending())
        used = {(one["agent"], one["model"]): (one["fresh"], one["cost_usd"]) for one in entry["used"]}
        assert used == {("ann", "m1"): (100, 1.0), ("other", "m1"): (7, 1.0), ("other", "other"): (6, 2.0)}

    def test_the_part_of_its_places_that_an_agent_used(self, scene: Scene) -> None:
        scene.do(c.Register, agent="bo", max_concurrent_tasks=2)
        for agent in ("ann", "bo"):
            scene.take(scene.add(), agent, lease=3600.0)
        scene.pass_time(minutes=15)
        (entry,) = read_query(scene.engine, q.Spending())
        assert entry["busy"] == {"ann": 1.0, "bo": 0.5}

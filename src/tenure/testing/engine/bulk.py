"""Many tasks at once, tasks that a claimant must not get, and the stack traces of failed attempts."""

from __future__ import annotations

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.redaction import GONE
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.graphs import new
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene


class Bulk(Stage):
    def test_many_tasks_are_created_in_the_order_given_each_in_its_own_dag(self, scene: Scene) -> None:
        made = scene.do(c.AddMany, tasks=tuple(new(f"T{n}") for n in range(250)))
        assert made.tasks is not None
        assert [task["title"] for task in made.tasks] == [f"T{n}" for n in range(250)]
        assert len({scene.task(task["key"]).dag for task in made.tasks}) == 250
        assert (made.outcome, {task["state"] for task in made.tasks}) == ("CREATED", {"ready"})

    def test_a_batch_with_one_bad_task_creates_none(self, scene: Scene) -> None:
        tasks = tuple(new(f"T{n}") for n in range(20))
        with pytest.raises(InvalidInput):
            scene.do(c.AddMany, tasks=(*tasks, new("bad", "Z-404")))
        with pytest.raises(InvalidInput):
            scene.do(c.AddMany, tasks=(*tasks, new("")))
        assert scene.next().outcome == "NO_TASK"
        assert [event.kind for event in scene.events() if event.kind == "task.created"] == []

    @pytest.mark.parametrize("count", [0, 1001])
    def test_a_batch_has_from_one_to_a_thousand_tasks(self, scene: Scene, count: int) -> None:
        with pytest.raises(TooLarge, match=f"got {count}"):
            scene.do(c.AddMany, tasks=(new("x"),) * count)

    def test_tasks_of_known_idempotency_keys_are_returned_in_their_place(self, scene: Scene) -> None:
        first = scene.do(c.Add, task=new("one", idempotency_key="k1")).task
        assert first is not None
        made = scene.do(c.AddMany, tasks=(new("zero"), new("other", idempotency_key="k1"), new("two")))
        assert made.tasks is not None
        assert [task["title"] for task in made.tasks] == ["zero", "one", "two"]
        assert made.tasks[1]["id"] == first["id"]
        again = scene.do(c.AddMany, tasks=(new("other", idempotency_key="k1"),))
        assert (again.outcome, again.again) == ("EXISTS", True)

    def test_a_repeated_batch_creates_nothing_twice(self, scene: Scene) -> None:
        tasks = (new("one"), new("two"))
        first, again = (scene.do(c.AddMany, tasks=tasks, request_id="r") for _ in range(2))
        assert (again.again, again.tasks) == (True, first.tasks)
        assert scene.next_keys(3) == [task["key"] for task in first.tasks or ()]

    def test_a_batch_can_be_undone(self, scene: Scene) -> None:
        made = scene.do(c.AddMany, tasks=(new("one"), new("two")))
        assert scene.do(c.Undo, command_id=made.command_id).ok
        assert scene.next().outcome == "NO_TASK"

    def test_a_claim_gets_no_task_that_it_excludes(self, scene: Scene) -> None:
        first, second = scene.add(priority=10), scene.add(priority=50)
        id = scene.task(first).id
        got = scene.next(without=(id,))
        assert got.task is not None
        assert got.task["key"] == second
        nothing = scene.next(without=(id,))
        assert (nothing.outcome, (nothing.counts or {}).get("running_here")) == ("NO_TASK", 1)
        scene.do(c.Assign, task=first, agent="ann")
        assert scene.next(without=(id,)).outcome == "NO_TASK"  # not even where it is offered
        assert scene.next_keys(1) == [first]

    def test_a_failed_attempt_keeps_its_trace_without_secrets(self, scene: Scene) -> None:
        key = scene.add()
        claim = scene.claim(key, metadata={"host": "a"})
        trace = "Traceback …\n  connect('postgresql://bo:hunter2@db/x', token=abc123)\nValueError: no"
        scene.do(c.Fail, receipt=claim.receipt, message="ValueError: no", trace=trace)
        (entry,) = read_query(scene.engine, q.History(project=PROJECT, task=key), c.OWNER)
        assert entry["trace"].endswith("ValueError: no")
        assert ("hunter2" in entry["trace"], "abc123" in entry["trace"], GONE in entry["trace"]) == (False, False, True)
        assert entry["metadata"] == {"host": "a"}

    def test_a_long_trace_keeps_its_end(self, scene: Scene) -> None:
        key = scene.add()
        trace = "begin\n" + "frame\n" * 5000 + "ValueError: the end"
        scene.do(c.Fail, receipt=scene.claim(key).receipt, message="x", trace=trace)
        (entry,) = read_query(scene.engine, q.History(project=PROJECT, task=key), c.OWNER)
        assert entry["trace"].startswith("begin")
        assert entry["trace"].endswith("ValueError: the end")
        assert len(entry["trace"]) <= 8000

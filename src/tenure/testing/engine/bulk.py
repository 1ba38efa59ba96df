"""Many tasks at once, tasks that a claimant must not get, and the stack traces of failed attempts."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.outcomes import Outcome
from tenure.core.records import Body, Brief, Budget, RetryWords, Task, replace
from tenure.core.redaction import GONE
from tenure.engine.reads.query_table import read_query
from tenure.stores.port import Transaction
from tenure.testing.engine.graphs import new
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

# What tasks may be alike in.
_SHAPES: tuple[dict[str, Any], ...] = (
    {}, {"draft": True}, {"tags": ("a", "b")}, {"priority": 90, "type": "docs"}, {"deadline_in": 3600},
    {"not_before_in": 60}, {"touches": ("src/a.py",)}, {"retry": RetryWords(strategy="fixed")}, {"on_lost": "hold"},
    {"constraints": {"max_cost_usd": "1.50"}}, {"constraints": {"required_capabilities": ["go"], "region": "eu"}},
    {"constraints": {"estimated_duration": 60}}, {"metadata": {"a": [1]}}, {"spec": {"text": "x" * 40_000}},
    {"output": {"type": "json"}}, {"boost": 0.1, "max_attempts": 7},
)  # fmt: skip


def _kept(scene: Scene, project: str, id: str) -> str:
    """The rows and events of a task, without its id, its project and the track's counter."""

    def ask(tx: Transaction) -> list[object]:
        rows: list[object] = []
        for kind in (Task, Brief):
            rows += tx.load(kind, ((project, id),))
        rows += tx.load(Budget, ((project, f"task:{id}"),))
        for event in tx.events({"project": project, "task": id}):
            patch = tuple(part for part in event.patch if part[0] != "track")  # the first of a command counts for all
            rows.append(replace(event, id="", sequence=0, causation_id="", patch=patch))
        return rows

    text = msgspec.json.encode(scene.engine.read(ask)).decode()
    return text.replace(id.removeprefix("task_"), "ID").replace(f'"{project}"', '"PROJECT"')


class Bulk(Stage):
    def test_many_tasks_are_created_in_the_order_given_each_in_its_own_dag(self, scene: Scene) -> None:
        made = scene.do(c.AddMany, tasks=tuple(new(f"T{n}") for n in range(250)))
        assert made.tasks is not None
        assert [task["title"] for task in made.tasks] == [f"T{n}" for n in range(250)]
        assert len({scene.task(task["key"]).dag for task in made.tasks}) == 250
        assert (made.outcome, {task["state"] for task in made.tasks}) == ("CREATED", {"ready"})

    def test_tasks_created_together_are_the_same_as_if_created_one_by_one(self, scene: Scene) -> None:
        """In one batch, so at one instant: one command for all in one project, a command for each in another."""
        scene.do(c.DefineProject, project="other")
        titled = [c.NewTask(title=f"T{k} {n}", **fields) for k, fields in enumerate(_SHAPES) for n in range(3)]
        keyed = [c.NewTask(title="keyed", idempotency_key=f"k{n}") for n in range(3)]
        described = [c.NewTask(title="described", description="x" * size) for size in (0, 1, 40_000, 40_000, 0, 2)]
        tasks = (*titled, *keyed, c.NewTask(title="without a key"), *described)
        adds = [c.Add(project="other", task=task) for task in tasks]
        together, *apart = scene.run(c.AddMany(project=PROJECT, tasks=tasks), *adds)
        assert isinstance(together, Outcome)
        assert together.tasks is not None
        for one, other, task in zip(together.tasks, apart, tasks, strict=True):
            assert isinstance(other, Outcome)
            assert other.task is not None
            assert _kept(scene, PROJECT, one["id"]) == _kept(scene, "other", other.task["id"]), task

    @pytest.mark.parametrize("count", [3, 100])
    def test_every_task_of_a_batch_is_checked(self, scene: Scene, count: int) -> None:
        good = tuple(c.NewTask(title=f"T{n}") for n in range(count))
        deep: dict[str, Any] = {}
        for _ in range(200):
            deep = {"a": deep}
        for fields in (
            {"title": " "},
            {"title": "x" * 2000},
            {"description": "x" * 2_000_000},
            {"name": "n" * 256},
            {"idempotency_key": ""},
            {"tags": ("a,b",)},
            {"priority": 1000},
            {"on_lost": "x"},
            {"name": "n" * 10_000},
            {"boost": float("nan")},
            {"deadline": 1 << 70},
            {"metadata": {"a": [float("inf")]}},
            {"metadata": deep},
            {"tags": 1},
        ):
            bad = c.NewTask(**{"title": "bad", **fields})  # type: ignore[arg-type]  # its fields
            with pytest.raises((InvalidInput, TooLarge)):
                scene.do(c.AddMany, tasks=(*good, bad))
        assert scene.next().outcome == "NO_TASK"

    def test_a_large_text_that_many_tasks_share_is_counted_for_each(self, scene: Scene) -> None:
        large = {"text": "x" * 40_000}
        made = scene.do(c.AddMany, tasks=tuple(c.NewTask(title=f"T{n}", spec=large) for n in range(3)))
        assert made.tasks is not None
        (body,) = scene.engine.read(lambda tx: tx.find(Body, {"project": PROJECT}))
        assert body.uses == 3

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

    def test_what_a_program_printed_is_stored_without_secrets(self, scene: Scene) -> None:
        said = f"ApiError: sk-ant-api03-{'aB3dE6gH' * 8}-AA refused, password='hunter2'"
        kept = f"ApiError: sk-ant-{GONE} refused, password='{GONE}'"
        failed, released = scene.add(), scene.add()
        receipt = scene.take(failed)
        for _ in range(2):  # sent again, it is the same request
            scene.do(c.Fail, receipt=receipt, message=said, request_id="f")
        scene.do(c.Release, receipt=scene.take(released), reason=said)
        for key in (failed, released):
            (entry,) = read_query(scene.engine, q.History(project=PROJECT, task=key), c.OWNER)
            assert entry["error"] == kept
        error = scene.task(failed).last_error
        assert error is not None
        assert error.message == kept
        assert "hunter2" not in str(read_query(scene.engine, q.Log(project=PROJECT), c.OWNER))

    def test_a_long_trace_keeps_its_end(self, scene: Scene) -> None:
        key = scene.add()
        trace = "begin\n" + "frame\n" * 5000 + "ValueError: the end"
        scene.do(c.Fail, receipt=scene.claim(key).receipt, message="x", trace=trace)
        (entry,) = read_query(scene.engine, q.History(project=PROJECT, task=key), c.OWNER)
        assert entry["trace"].startswith("begin")
        assert entry["trace"].endswith("ValueError: the end")
        assert len(entry["trace"]) <= 8000

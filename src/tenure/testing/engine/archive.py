"""The archive: what goes there and what stays, and that no verb can tell whether a task has gone."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import archive
from tenure.core import commands as c
from tenure.core.commands import Dependency, NewTask, Totals
from tenure.core.errors import InvalidInput
from tenure.core.records import Archived, Brief, Claim, Dag, Result, Task, Track, Usage, replace
from tenure.core.task_records import Signature
from tenure.engine.archive import mover
from tenure.engine.reads import briefing as briefings
from tenure.engine.reads import dags, event_log, plan_export, tasks
from tenure.engine.runtime.rows import fields_of
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

DAYS = 24.0


def churning(scene: Scene, **limits: int) -> None:
    """Have finished tasks go at once."""
    scene.do(c.DefineProject, limits={"archive_after": 0, **limits})


def moved(scene: Scene) -> int:
    """How many tasks one round moves; nothing may be left behind by an error."""
    done = mover.move_all(scene.engine, PROJECT)
    assert done.failed == {}
    assert scene.engine.verify() == []
    return done.tasks


def archived(scene: Scene) -> list[str]:
    return [row.key for row in scene.rows(Archived, out=False)]


def look(scene: Scene, what: Any, *args: Any, **options: Any) -> Any:
    return scene.engine.read_settled((PROJECT,), lambda work: what(work, PROJECT, *args, **options))


def eventful(scene: Scene) -> str:
    """A completed task that has rows of every kind that can belong to one."""
    scene.finish(scene.add("needed"))
    scene.add("open", depends_on=("A-001",))  # so that what it waits for stays where it is
    key = scene.add(
        "eventful", depends_on=("A-001",), description="d" * 5000,
        touches=("src/**",), tags=("t",), idempotency_key="k", max_attempts=2,
        metadata={"a": [1, None]}, constraints={"max_cost_usd": "5"}, output={"validation": "review"},
    )  # fmt: skip
    first = scene.take(key, lease=60)
    scene.do(c.ReportUsage, receipt=first, model="opus", fresh=10, cost_usd="0.5")
    scene.do(c.SaveCheckpoint, receipt=first, data={"next": "x" * 5000})
    scene.pass_time(seconds=61)
    scene.bury(key, "bo")
    assert scene.submit(first, "late").work_lost
    scene.do(c.Retry, task=key)
    last = scene.take(key, "cy")
    scene.do(c.Land, receipt=last, branch="main", old="a" * 40, new="b" * 40)
    scene.do(c.PutArtifact, receipt=last, name="a", digest="d" * 64, size=1, since=scene.now)
    scene.submit(last, {"big": "r" * 5000}, usage=(Totals(model="opus", output=1),))
    scene.do(c.Approve, task=key)
    kinds = {kind: field for kind, field in archive.OWNED.items() if kind is not Signature}  # the session has no key
    assert all(scene.rows(kind, **{field: scene.task(key).id}) for kind, field in kinds.items())
    return key


class Archive(Stage):
    # --- what goes ------------------------------------------------------------------------------------------------

    def test_a_finished_task_becomes_one_row_after_its_time(self, scene: Scene) -> None:
        done, cancelled, open_ = scene.add("done"), scene.add("cancelled"), scene.add("open")
        scene.finish(done)
        scene.do(c.Cancel, task=cancelled)
        scene.pass_time(hours=90 * DAYS - 1)
        scene.engine.sweep()
        assert archived(scene) == []
        scene.pass_time(hours=1)
        scene.engine.sweep()
        assert archived(scene) == [done, cancelled]
        assert [row.key for row in scene.rows(Task)] == [open_]
        assert [len(scene.rows(kind)) for kind in (Brief, Claim, Result)] == [1, 0, 0]
        assert {event.key for event in scene.events() if event.task is not None} == {open_}

    def test_a_briefing_has_the_same_words_of_a_task_that_has_gone(self, scene: Scene) -> None:
        churning(scene)
        key = scene.add("told", max_attempts=1)
        scene.do(c.Release, receipt=scene.take(key), reason="not mine")
        scene.do(c.Note, task=key, text="mind the cache")
        scene.do(c.Edit, task=key, changes={"title": "Another"})
        scene.bury(key)
        scene.do(c.Retry, task=key, note="once more")
        scene.finish(key)

        def words() -> dict[str, Any]:
            briefing: dict[str, Any] = look(scene, briefings.briefing, key)
            return {name: briefing[name] for name in ("edited_by", "notes", "retries", "releases")}

        before = words()
        assert moved(scene) == 1
        assert words() == before
        scene.do(c.Reset, task=key)  # which brings it back
        scene.do(c.Note, task=key, text="and the disk")
        assert [note["text"] for note in words()["notes"]] == ["mind the cache", "and the disk"]

    def test_the_time_is_a_limit_of_the_project_and_may_be_nought(self, scene: Scene) -> None:
        key = scene.add()
        scene.finish(key)
        scene.do(c.DefineProject, limits={"archive_after": 60})
        scene.pass_time(seconds=59)
        scene.engine.sweep()
        assert archived(scene) == []
        churning(scene)
        scene.engine.sweep()
        assert archived(scene) == [key]
        with pytest.raises(InvalidInput):
            scene.do(c.DefineProject, limits={"history_retention": 0})

    def test_a_task_goes_by_when_it_was_last_touched_not_by_when_it_was_made(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"archive_after": 3600})
        late, noted = scene.add(), scene.add()
        scene.finish(noted)
        scene.pass_time(hours=2)
        scene.finish(late)
        scene.do(c.Note, task=noted, text="look again")
        assert moved(scene) == 0
        scene.pass_time(hours=1)
        assert moved(scene) == 2

    def test_a_sweep_again_does_nothing(self, scene: Scene) -> None:
        churning(scene)
        scene.finish(scene.add())
        scene.engine.sweep()
        before = scene.tables()
        scene.engine.sweep()
        assert scene.tables() == before

    def test_what_something_open_depends_on_stays(self, scene: Scene) -> None:
        churning(scene)
        first, second = scene.add("first"), scene.add("second", depends_on=("A-001",))
        scene.finish(first)
        assert moved(scene) == 0
        scene.finish(second)
        assert moved(scene) == 2

    def test_a_finished_task_between_goes_before_the_rest_of_its_chain(self, scene: Scene) -> None:
        churning(scene)
        for n in range(3):
            scene.add(str(n), depends_on=(f"A-{n:03d}",) if n else ())
        scene.finish("A-001", "A-002")
        assert moved(scene) == 1
        assert archived(scene) == ["A-001-0"]
        assert scene.claim("A-003").inputs == {"A-002-1": {"data": "output of A-002", **_accepted(scene, "A-002")}}
        assert look(scene, tasks.show, "A-002")["depends_on"][0]["met"]

    def test_what_is_below_a_task_no_longer_counts_for_its_place_once_it_has_gone(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"archive_after": 3600})
        rival, above = scene.add("rival"), scene.add("above")
        scene.finish(above, scene.add("below", depends_on=(above,)))
        assert scene.task(above).height == 1
        scene.pass_time(hours=1)
        scene.do(c.Note, task=above, text="look again")  # so that it stays, alone
        assert moved(scene) == 1
        assert scene.task(above).height == 0
        scene.do(c.Reset, task=above, cascade=False)
        assert scene.next_keys(2) == [rival, above]

    def test_a_dag_goes_when_all_of_it_is_finished(self, scene: Scene) -> None:
        churning(scene)
        keys = scene.plan(NewTask(title="a"), NewTask(title="b"), NewTask(title="c"))
        scene.finish(*keys[:2])
        assert moved(scene) == 0
        scene.do(c.Cancel, task=keys[2])
        assert moved(scene) == 3
        (dag,) = scene.rows(Dag)
        assert (dag.status, dag.total, dag.completed, dag.cancelled) == ("completed", 3, 2, 1)

    def test_a_parent_and_its_subtasks_go_together(self, scene: Scene) -> None:
        churning(scene)
        parent = scene.add("parent")
        receipt = scene.take(parent)
        scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="x"), NewTask(title="y")))
        scene.submit(receipt)
        scene.finish("A-001::1")
        assert moved(scene) == 0
        scene.finish("A-001::2")
        assert moved(scene) == 3
        assert look(scene, tasks.show, "A-001")["subtasks"] == ["A-001-parent::1", "A-001-parent::2"]

    def test_a_dead_letter_stays_until_it_is_resolved(self, scene: Scene) -> None:
        churning(scene)
        key = scene.add()
        scene.bury(key)
        assert moved(scene) == 0
        scene.do(c.Cancel, task=key)
        assert moved(scene) == 1

    def test_a_victim_of_a_cascade_stays_as_long_as_its_cause_can_be_retried(self, scene: Scene) -> None:
        churning(scene)
        cause = scene.add("cause")
        victim = scene.add("victim", depends_on=(Dependency(task=cause, on_failure="cancel"),))
        after = scene.add("after", depends_on=(Dependency(task=victim, on_failure="cancel"),))
        scene.bury(cause)
        assert scene.states(victim, after) == ["cancelled", "cancelled"]
        assert moved(scene) == 0
        scene.do(c.Retry, task=cause)
        assert scene.states(victim, after) == ["pending", "pending"]
        scene.finish(cause, victim, after)
        assert moved(scene) == 3

    def test_what_was_finished_below_a_task_that_was_reset_stays(self, scene: Scene) -> None:
        churning(scene)
        scene.add("a")
        scene.add("b", depends_on=("A-001",))
        scene.finish("A-001", "A-002")
        scene.do(c.Reset, task="A-001")
        assert moved(scene) == 0

    def test_what_the_log_told_of_others_is_told_again(self, scene: Scene) -> None:
        churning(scene)
        first, second = scene.plan(NewTask(title="a"), NewTask(title="b", track="B"))
        scene.add("open", depends_on=(second,))
        scene.finish(first, second)
        assert moved(scene) == 1  # with its event went the word of track B's first number
        assert scene.rows(Track, id="B")[0].last_sequence == 1

    def test_one_that_cannot_be_moved_keeps_nobody_else(self, scene: Scene) -> None:
        churning(scene)
        keys = [scene.add() for _ in range(3)]
        scene.finish(*keys)
        bad = scene.task(keys[1])
        scene.put(bad, replace(bad, version=bad.version + 1))
        scene.broken = True
        report = scene.engine.sweep()
        assert list(report.failed) == [bad.id]
        assert archived(scene) == [keys[0], keys[2]]
        assert scene.engine.sweep().failed.keys() == {bad.id}

    def test_pages_that_must_stay_do_not_hide_what_lies_behind_them(self, scene: Scene) -> None:
        churning(scene)
        count = mover.PAGE + 5
        scene.plan(*(NewTask(title=str(n)) for n in range(count)), NewTask(title="open"))
        scene.finish(*(f"A-{n:03d}" for n in range(1, count + 1)))
        scene.pass_time(seconds=1)
        last = scene.add("behind")
        scene.finish(last)
        for _ in range(3):
            scene.engine.sweep()
        assert archived(scene) == [last]

    def test_a_dry_run_counts_and_moves_nothing(self, scene: Scene) -> None:
        scene.finish(scene.add(), scene.add())
        scene.add("open")
        before = scene.tables()
        assert mover.could_move(scene.engine, PROJECT).tasks == 0
        assert mover.could_move(scene.engine, PROJECT, older=0).tasks == 2
        assert scene.tables() == before
        assert mover.move_all(scene.engine, PROJECT, older=0).tasks == 2

    # --- what can still be seen -----------------------------------------------------------------------------------

    def test_an_archived_task_is_shown_as_it_was_and_marked(self, scene: Scene) -> None:
        key = eventful(scene)
        views = {look_at: look(scene, look_at, key) for look_at in (tasks.show, tasks.history, tasks.results)} | {
            "log": look(scene, event_log.log, task=key)
        }
        churning(scene)
        scene.pass_time(seconds=1)
        assert moved(scene) == 1
        before = scene.tables()
        for look_at, seen in views.items():
            now = look(scene, event_log.log, task=key) if look_at == "log" else look(scene, look_at, key)
            if look_at is tasks.show:
                assert now.pop("archived_at") == scene.now
            assert now == seen
        for name in ("A-003", key, key[:8], scene.rows(Archived)[0].id, scene.rows(Archived)[0].id[:-2]):
            assert look(scene, tasks.show, name)["key"] == key
        assert [s["state"] for s in look(scene, tasks.states, [key])] == ["completed"]
        assert scene.tables() == before  # looking writes nothing

    def test_lists_have_archived_tasks_only_on_request_and_in_order(self, scene: Scene) -> None:
        churning(scene)
        for n, priority in enumerate((70, 20, 50, 5)):
            scene.pass_time(seconds=1)
            scene.add(str(n), priority=priority, tags=("odd",) if n % 2 else ())
        scene.finish("A-001", "A-002")
        scene.do(c.Cancel, task="A-003")
        assert moved(scene) == 3

        def keys(**filters: Any) -> list[str]:
            return [t["ref"][-1] for t in look(scene, tasks.tasks, **filters)]

        assert keys() == ["4"]
        assert keys(archived=True) == ["1", "2", "3", "4"]
        assert keys(archived=True, order="-created_at", limit=2) == ["4", "3"]
        assert keys(archived=True, order="priority") == ["4", "2", "3", "1"]
        assert keys(archived=True, state="completed") == ["1", "2"]
        assert keys(archived=True, tag=("odd",)) == ["2", "4"]
        assert keys(archived=True, agent="ann") == []
        second = look(scene, tasks.tasks, archived=True, limit=2)[-1]
        assert keys(archived=True, after=(second["created_at"], second["id"])) == ["3", "4"]
        lone = scene.rows(Archived)[0]
        assert keys(archived=True, dag=lone.id.replace("task_", "dag_")) == ["1"]

    def test_counts_by_state_and_track_stay_right(self, scene: Scene) -> None:
        churning(scene)
        scene.finish(scene.add(), scene.add(track="B"))
        scene.do(c.Cancel, task=scene.add())
        scene.add("open")
        before = look(scene, tasks.status)
        assert moved(scene) == 3
        after = look(scene, tasks.status)
        assert (after["tasks"], after["tracks"]) == (before["tasks"], before["tracks"])
        assert after["tasks"] == {"completed": 2, "cancelled": 1, "ready": 1}

    def test_a_dag_and_its_plan_are_described_as_before(self, scene: Scene) -> None:
        churning(scene)
        plan = (NewTask(title="a", name="a"), NewTask(title="b", name="b", depends_on=("a",)))
        keys = scene.plan(*plan, name="release")
        scene.finish(*keys)
        (dag,) = scene.rows(Dag)
        before = look(scene, dags.dag, dag.id), look(scene, plan_export.plans, plan="release")
        assert moved(scene) == 2
        assert (look(scene, dags.dag, dag.id), look(scene, plan_export.plans, plan="release")) == before
        assert look(scene, plan_export.plans, open_only=True) == []
        assert scene.do(c.Plan, tasks=plan, name="release").outcome == "UNCHANGED"

    def test_usage_of_archived_tasks_stays_in_every_total(self, scene: Scene) -> None:
        churning(scene)
        for n, agent in enumerate(("ann", "bo", "ann")):
            receipt = scene.take(scene.add(), agent)
            cost = None if n == 2 else f"0.{n + 1}"
            usage = (
                Totals(model="opus", fresh=n + 1, cost_usd=cost),
                Totals(model="haiku", output=5, cost_usd="0.5", operation="review"),
            )
            scene.submit(receipt, usage=usage)
            scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=n + 2, cost_usd=cost)  # late, by one token
        totals = {by: look(scene, tasks.usage, by=by) for by in ("agent", "model", "operation", "session")}
        project = look(scene, tasks.status)["usage"]
        assert moved(scene) == 3
        assert {by: look(scene, tasks.usage, by=by) for by in totals} == totals
        assert look(scene, tasks.status)["usage"] == project
        (all_in_one,) = look(scene, tasks.usage, by="task")
        assert all_in_one.pop("task") == "(archived)"
        assert all_in_one == project
        assert {row.task for row in scene.rows(Usage)} == {""}
        assert look(scene, tasks.show, "A-002")["usage"]["cost_usd"] == "0.70"


def _accepted(scene: Scene, name: str) -> dict[str, Any]:
    (result,) = scene.results(name)
    return {"state": "completed", **fields_of(result, "agent summary work_product")}

"""The self-improvement watch: where much fails somebody finds out why, once at a time, and never about itself."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, NotAllowed
from tenure.core.records import Brief, Cycles, Task, Watch
from tenure.engine.duties.coordinator import LEASE
from tenure.engine.duties.election import LeaderEngine, stand
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.unit_of_work import Refused
from tenure.engine.sources import failure_watch
from tenure.testing.engine.coordinators import Office
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import MEMBER, PROJECT, Scene

HOUR = 3600.0


def watch(scene: Scene, **fields: Any) -> None:
    wanted = Watch(**{"window": HOUR, "threshold": 0.5, "least": 4, **fields})
    assert scene.do(c.SetWatch, watch=wanted).outcome == "UPDATED"


def go_wrong(scene: Scene, count: int, error_class: str = "task", **fields: Any) -> list[str]:
    keys = [scene.add("work", max_attempts=1, **fields) for _ in range(count)]
    for key in keys:
        scene.fail(scene.take(key), error_class, message=f"{key} broke")
    return keys


def go_well(scene: Scene, count: int, **fields: Any) -> None:
    scene.finish(*[scene.add("work", **fields) for _ in range(count)])


def asked(scene: Scene) -> list[str]:
    """The subjects about which a task was made, in the order of their making."""
    tasks = [task for task in scene.rows(Task, order="created_at") if task.created_by.startswith("watch:")]
    return [task.created_by.removeprefix("watch:") for task in tasks]


def investigate(scene: Scene) -> None:
    failure_watch.investigate(scene.engine, PROJECT)


class Watches(Stage):
    def test_a_tag_of_which_much_fails_gets_a_task_that_finds_out_why(self, scene: Scene) -> None:
        watch(scene, by=("tag",))
        failed = go_wrong(scene, 3, tags=("parser",)) + go_wrong(scene, 1, "timeout", tags=("parser", "slow"))
        go_well(scene, 2, tags=("parser",))
        go_well(scene, 9, tags=("docs",))
        investigate(scene)
        investigate(scene)
        assert asked(scene) == ["tag:parser"]
        (task,) = [t for t in scene.rows(Task) if t.created_by.startswith("watch:")]
        brief = scene.row(Brief, task.id)
        assert brief.title == "Find out why 4 of 6 attempts at tag:parser failed"
        context = brief.spec["context"]
        assert context["error_classes"] == {"task": 3, "timeout": 1}
        assert {line["key"]: line["error"] for line in context["tasks"]} == {key: f"{key} broke" for key in failed}
        assert (task.type, task.priority, task.tags) == ("research", 20, ("self-improvement",))

    def test_types_and_tracks_are_watched_as_asked(self, scene: Scene) -> None:
        watch(scene, by=("type", "track"), track="Z")
        go_wrong(scene, 4, type="deploy", track="E")
        investigate(scene)
        assert sorted(asked(scene)) == ["track:E", "type:deploy"]
        assert {t.track for t in scene.rows(Task) if t.created_by.startswith("watch:")} == {"Z"}

    def test_too_few_say_nothing_and_neither_do_those_below_the_threshold(self, scene: Scene) -> None:
        watch(scene, by=("type",))
        go_wrong(scene, 3)
        investigate(scene)
        go_well(scene, 4)
        investigate(scene)
        assert asked(scene) == []

    def test_what_is_no_fault_of_the_work_does_not_count(self, scene: Scene) -> None:
        watch(scene, by=("type",))
        go_wrong(scene, 9, "environment")
        investigate(scene)
        assert asked(scene) == []

    def test_a_lease_that_ran_out_counts(self, scene: Scene) -> None:
        watch(scene, by=("type",))
        for _ in range(4):
            scene.take(scene.add(), lease=60)
        scene.pass_time(seconds=61)
        scene.engine.sweep(PROJECT)
        investigate(scene)
        assert asked(scene) == ["type:code"]

    def test_what_is_older_than_the_window_does_not_count(self, scene: Scene) -> None:
        watch(scene, by=("type",))
        go_wrong(scene, 4)
        scene.pass_time(hours=1, seconds=1)
        investigate(scene)
        assert asked(scene) == []

    def test_while_it_is_open_no_other_is_made_and_what_it_looked_into_counts_no_more(self, scene: Scene) -> None:
        watch(scene, by=("type",))
        go_wrong(scene, 4)
        investigate(scene)
        (first,) = [t for t in scene.rows(Task) if t.created_by.startswith("watch:")]
        scene.pass_time(minutes=59)
        go_wrong(scene, 4)
        scene.pass_time(minutes=30)
        investigate(scene)
        assert len(asked(scene)) == 1  # it is open
        scene.finish(first.key)
        investigate(scene)
        assert len(asked(scene)) == 1  # what failed before its end was its matter
        scene.pass_time(minutes=30)
        go_wrong(scene, 4)
        investigate(scene)
        assert len(asked(scene)) == 2

    def test_its_own_tasks_and_their_subtasks_do_not_count(self, scene: Scene) -> None:
        watch(scene, by=("type",), least=2)
        go_wrong(scene, 4)
        investigate(scene)
        (first,) = [t for t in scene.rows(Task) if t.created_by.startswith("watch:")]
        receipt = scene.take(first.key)
        spawned = scene.do(
            c.Spawn,
            receipt=receipt,
            tasks=tuple(c.NewTask(title="s", name=f"s{n}", type="research", max_attempts=1) for n in range(3)),
        )
        assert spawned.tasks is not None
        for task in spawned.tasks:
            scene.fail(scene.take(str(task["key"]), "bo"))
        scene.fail(receipt)
        investigate(scene)
        assert asked(scene) == ["type:code"]

    def test_it_is_off_until_it_is_asked_for(self, scene: Scene) -> None:
        go_wrong(scene, 20)
        investigate(scene)
        assert asked(scene) == []
        watch(scene)
        assert scene.do(c.SetWatch, watch=None).outcome == "UPDATED"
        investigate(scene)
        assert asked(scene) == []

    def test_the_leader_looks_out_and_one_that_was_deposed_makes_nothing(self, scene: Scene) -> None:
        watch(scene, by=("type",))
        go_wrong(scene, 4)
        assert stand(scene.engine, "zero", LEASE, None, Cycles()).term == 1
        led = LeaderEngine(scene.engine, "zero", 1, lambda: None)
        office = Office(scene)
        office.pass_time(LEASE)
        one = office.another("one")
        one.step()
        assert asked(scene) == ["type:code"]
        scene.do(c.SetWatch, watch=Watch(window=HOUR, least=4, by=("track",)))
        before = scene.tables()
        with pytest.raises(Refused, match="STALE_TERM"):
            failure_watch.investigate(led, PROJECT)
        assert scene.tables() == before

    def test_a_look_shows_how_much_fails_of_what(self, scene: Scene) -> None:
        go_wrong(scene, 3, type="deploy")
        go_well(scene, 1, type="deploy")
        seen = read_query(scene.engine, q.Watched(project=PROJECT))
        assert seen["on"] is False
        (worst, *_) = [line for line in seen["subjects"] if line["subject"].startswith("type:")]
        assert (worst["subject"], worst["failed"], worst["attempts"], worst["rate"]) == ("type:deploy", 3, 4, 0.75)

    @pytest.mark.parametrize(
        "fields",
        [
            {"window": 1}, {"threshold": 0.0}, {"threshold": 1.5}, {"threshold": float("nan")}, {"least": 0},
            {"by": ()}, {"by": ("agent",)}, {"by": ("tag", "tag")}, {"track": "Q"}, {"priority": 101},
        ],
    )  # fmt: skip
    def test_what_cannot_be_watched_is_refused(self, scene: Scene, fields: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput):
            scene.do(c.SetWatch, watch=Watch(**fields))

    def test_the_watch_is_for_admins(self, scene: Scene) -> None:
        with pytest.raises(NotAllowed):
            scene.do(c.SetWatch, by=MEMBER, watch=Watch())

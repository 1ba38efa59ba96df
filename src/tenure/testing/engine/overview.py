"""The overview: what the end of the log shows of how the work flows."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.errors import InvalidInput
from tenure.core.queries import Overview as Look
from tenure.engine.reads import overview as readings
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene


def seen(scene: Scene, minutes: int = 60) -> dict[str, Any]:
    found: dict[str, Any] = read_query(scene.engine, Look(project=PROJECT, minutes=minutes))
    return found


def total(view: dict[str, Any], name: str) -> int:
    return sum(int(step[name]) for step in view["steps"])


class Overview(Stage):
    def test_the_steps_count_what_happened_and_when(self, scene: Scene) -> None:
        first, second = scene.add(), scene.add()
        scene.pass_time(minutes=30)
        scene.finish(first)
        scene.pass_time(minutes=10)
        scene.fail(scene.take(second), retry_after=1000)
        view = seen(scene)
        assert (len(view["steps"]), view["is_whole"]) == (readings.STEPS, True)
        counts = {name: total(view, name) for name in ("created", "claimed", "completed", "failed", "lost")}
        assert counts == {"created": 2, "claimed": 2, "completed": 1, "failed": 1, "lost": 0}
        (at,) = [index for index, step in enumerate(view["steps"]) if step["completed"]]
        assert at == 50  # ten minutes ago, in steps of a minute

    def test_how_many_stood_where_is_told_backwards_from_now(self, scene: Scene) -> None:
        first = scene.add()
        scene.pass_time(minutes=20)
        scene.add(depends_on=(first,))
        receipt = scene.take(first, lease=3600)
        scene.pass_time(minutes=20)
        scene.submit(receipt)
        view = seen(scene)
        now = view["steps"][-1]["depth"]
        assert (now["ready"], now["held"], now["waiting"]) == (1, 0, 0)
        ten_ago, half_an_hour_ago = view["steps"][49]["depth"], view["steps"][29]["depth"]
        assert (ten_ago["ready"], ten_ago["held"], ten_ago["waiting"]) == (0, 1, 1)
        assert (half_an_hour_ago["ready"], half_an_hour_ago["held"]) == (1, 0)
        assert sum(view["steps"][0]["depth"].values()) == 0

    def test_what_time_has_brought_is_told_before_anybody_wrote_it(self, scene: Scene) -> None:
        scene.take(scene.add(), lease=30)
        scene.pass_time(minutes=5)
        view = seen(scene)
        assert total(view, "lost") == 1
        assert view["steps"][-1]["depth"]["held"] == 0

    def test_waits_and_durations_are_those_of_the_last_claims(self, scene: Scene) -> None:
        quick, slow = scene.add(), scene.add()
        scene.pass_time(seconds=10)
        one = scene.take(quick)
        scene.pass_time(seconds=90)
        two = scene.take(slow)
        scene.submit(one)
        scene.pass_time(seconds=20)
        scene.submit(two)
        view = seen(scene)
        assert view["waits"] == {"count": 2, "median": 100.0, "p95": 100.0, "longest": 100.0}
        assert (view["durations"]["count"], view["durations"]["longest"]) == (2, 90.0)

    def test_an_agent_is_as_busy_as_it_held_tasks(self, scene: Scene) -> None:
        done, held = scene.add(), scene.add()
        receipt = scene.take(done, "ann", lease=3600)
        scene.pass_time(minutes=30)
        scene.submit(receipt)
        scene.take(held, "bo", lease=3600)
        scene.pass_time(minutes=15)
        ann, bo = seen(scene)["agents"]
        assert (ann["agent"], ann["busy"], ann["completed"]) == ("ann", 0.5, 1)
        assert (bo["agent"], bo["busy"], bo["completed"]) == ("bo", 0.25, 0)

    def test_the_oldest_of_each_state_is_named(self, scene: Scene) -> None:
        first = scene.add()
        scene.pass_time(minutes=1)
        scene.add()
        held = scene.add()
        scene.pass_time(minutes=1)
        scene.take(held)
        oldest = {entry["state"]: entry for entry in seen(scene)["oldest"]}
        assert oldest["ready"]["key"] == first
        assert oldest["claimed"] == {
            "state": "claimed",
            "key": held,
            "created_at": scene.now - 60_000_000,
            "since": scene.now,
        }

    def test_a_new_project_has_an_overview_too(self, scene: Scene) -> None:
        view = seen(scene)
        assert (view["waits"], view["durations"], view["agents"], view["oldest"]) == (None, None, [], [])
        assert total(view, "completed") == 0

    def test_a_long_log_is_read_back_only_so_far_and_says_so(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(readings, "MOST_READ", 6)
        for _ in range(4):
            scene.finish(scene.add())
            scene.pass_time(minutes=1)
        view = seen(scene)
        assert (view["is_whole"], total(view, "completed")) == (False, 2)
        assert view["since"] == scene.now - 2 * 60_000_000
        monkeypatch.setattr(readings, "MOST_READ", 2000)
        monkeypatch.setattr(readings, "MOST_WALKED", 4)
        assert seen(scene)["is_whole"] is False
        assert total(seen(scene), "completed") == 2

    def test_minutes_have_bounds(self, scene: Scene) -> None:
        for minutes in (0, -1, readings.LONGEST + 1):
            with pytest.raises(InvalidInput):
                seen(scene, minutes)

    def test_another_project_s_work_is_not_told(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="other")
        scene.engine.do(c.Add(project="other", task=c.NewTask(title="theirs")))
        assert total(seen(scene), "created") == 0

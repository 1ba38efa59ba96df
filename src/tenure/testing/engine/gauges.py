"""How much stands where, for metrics: every open task in one state and one tier, every project once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask
from tenure.core.records import Task
from tenure.engine.reads import gauges
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.graphs import new
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

if TYPE_CHECKING:
    from tenure.core.views import GaugesView


def read(scene: Scene, most: int = 100) -> list[GaugesView]:
    found: list[GaugesView] = read_query(scene.engine, q.Gauges(most=most))
    return found


class Gauges(Stage):
    def test_a_clock_that_went_back_is_told_by_how_much(self, scene: Scene) -> None:
        scene.add()
        assert read(scene)[0]["clock_behind"] == 0
        scene.clock.jump(-90)
        assert read(scene)[0]["clock_behind"] == 90

    def test_each_open_task_is_counted_in_its_state_and_tier(self, scene: Scene) -> None:
        scene.plan(new("a", priority="high"), new("b", "a"), new("c"), new("d", priority=5))
        scene.add("held", priority="low")
        scene.take("A-005")
        scene.finish("A-003")
        scene.bury(scene.add("hopeless"))
        (entry,) = read(scene)
        assert entry["project"] == PROJECT
        assert entry["depth"] == {
            "pending": {"normal": 1},
            "ready": {"high": 1, "critical": 1},
            "claimed": {"low": 1},
            "dead_lettered": {"normal": 1},
        }
        assert entry["completed"] == 1

    @pytest.mark.parametrize("few", [0, 500])
    def test_many_tasks_are_told_apart_like_a_few(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch, few: int
    ) -> None:
        monkeypatch.setattr(gauges, "A_FEW", few)
        scene.plan(*(new(f"t{n}", priority="high" if n % 2 else n) for n in range(40)))
        scene.take("A-002")
        assert read(scene)[0]["depth"] == {"ready": {"critical": 5, "high": 29, "normal": 5}, "claimed": {"high": 1}}

    def test_tasks_too_many_to_be_told_apart_are_still_counted(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gauges, "A_FEW", 2)
        monkeypatch.setattr(gauges, "MOST_READ", 5)
        scene.plan(*(new(f"t{n}", priority="high") for n in range(5)))
        scene.take("A-001")
        assert read(scene)[0]["depth"] == {"ready": {"high": 4}, "claimed": {"high": 1}}
        scene.add("one more")
        assert read(scene)[0]["depth"] == {"ready": {"any": 5}, "claimed": {"high": 1}}

    def test_what_fell_due_and_nobody_settled_is_counted_until_somebody_does(self, scene: Scene) -> None:
        scene.take(scene.add(), lease=60)
        scene.fail(scene.take(scene.add()), retry_after=30)
        assert (read(scene)[0]["overdue"], read(scene)[0]["overdue_retries"]) == (0, 0)
        scene.pass_time(seconds=61)
        late = read(scene)[0]
        assert (late["overdue"], late["overdue_retries"]) == (2, 1)
        assert late["depth"] == {"claimed": {"normal": 1}, "retrying": {"normal": 1}}
        scene.engine.sweep()
        settled = read(scene)[0]
        assert (settled["overdue"], settled["overdue_retries"]) == (0, 0)
        assert settled["depth"] == {"ready": {"normal": 2}}

    def test_the_oldest_ready_task_counts_from_when_it_became_ready(self, scene: Scene) -> None:
        assert read(scene)[0]["oldest_ready"] == 0
        scene.plan(new("a"), new("b", "a"))
        scene.pass_time(seconds=100)
        assert read(scene)[0]["oldest_ready"] == 100
        scene.finish("A-001")
        assert read(scene)[0]["oldest_ready"] == 0
        scene.pass_time(seconds=7)
        assert read(scene)[0]["oldest_ready"] == 7

    def test_agents_are_counted_by_status_for_a_day_after_their_last_sign_of_life(self, scene: Scene) -> None:
        scene.take(scene.add("one"), "holds")
        scene.take(scene.add("two"), "holds")  # two tasks, one agent
        scene.next("idles", types=("none",))
        scene.next("leaves", types=("none",))
        scene.do(c.Leave, session="s-leaves")
        scene.next("drains", types=("none",))
        scene.do(c.Drain, agent="drains")
        assert read(scene)[0]["agents"] == {"offline": 1, "draining": 1, "stale": 0, "active": 1, "idle": 1}
        scene.pass_time(minutes=40)  # an agent that is known by its claims alone
        scene.next("idles", types=("none",))
        scene.engine.sweep()  # whoever held has lost its leases too
        assert read(scene)[0]["agents"] == {"offline": 1, "draining": 1, "stale": 1, "active": 0, "idle": 1}
        scene.pass_time(hours=25)
        scene.next("idles", types=("none",))
        assert read(scene)[0]["agents"] == {"offline": 0, "draining": 0, "stale": 0, "active": 0, "idle": 1}

    def test_completed_tasks_count_on_in_the_archive(self, scene: Scene) -> None:
        scene.finish(scene.add(), scene.add())
        scene.pass_time(hours=24 * 100)
        scene.engine.sweep()
        assert scene.rows(Task) == []
        assert read(scene)[0]["completed"] == 2

    def test_projects_beyond_the_first_are_counted_together(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(gauges, "AT_ONCE", 2)
        for n in range(5):
            scene.pass_time(seconds=1)
            scene.do(c.DefineProject, project=f"q{n}")
            for _ in range(n + 1):
                scene.do(c.Add, project=f"q{n}", task=NewTask(title="x"))
        scene.do(c.ClaimNext, project="q4", agent="ann", session="s")
        scene.pass_time(seconds=3)
        entries = read(scene, most=2)
        assert [entry["project"] for entry in entries] == [PROJECT, "q0", "other"]
        assert entries[1]["depth"] == {"ready": {"normal": 1}}
        assert entries[2]["depth"] == {"ready": {"normal": 2 + 3 + 4 + 4}, "claimed": {"normal": 1}}
        assert entries[2]["agents"]["active"] == 1
        assert entries[2]["oldest_ready"] == 6

"""Money that moves between budgets, through their periods; and budgets of what is archived."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask, Totals
from tenure.core.records import Budget, Dag, Task
from tenure.testing.engine.budgets import counts, set_budget, spend
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene, code_of

DAYS = 3


def allocated(scene: Scene, *ids: str) -> list[int]:
    """In cents."""
    return [scene.row(Budget, id).allocated // 10_000_000 for id in ids]


def move(scene: Scene, source: str, target: str, amount: str = "1.50") -> Any:
    return scene.try_to(c.MoveBudget, source=source, target=target, amount=amount)


def through_days(scene: Scene, *ids: str) -> list[list[int]]:
    """What each may spend on each of the next days, when nothing is spent."""
    seen = []
    for _ in range(DAYS):
        seen.append(allocated(scene, *ids))
        assert all(counts(scene, id) == (0, 0) for id in ids)
        scene.pass_time(hours=24)
    return seen


class MovedMoney(Stage):
    @pytest.mark.parametrize("kind", [("day", None), (None, "day"), ("day", "week"), ("week", "month")])
    def test_what_counts_each_day_is_not_moved_where_it_counts_less_often(
        self, scene: Scene, kind: tuple[str | None, str | None]
    ) -> None:
        first, second = kind
        set_budget(scene, usd="10", period=first)
        set_budget(scene, "agent:bo", usd="3", period=second)
        before = scene.tables()
        for source, target in (("project", "agent:bo"), ("agent:bo", "project")):
            refused = move(scene, source, target)
            assert code_of(refused) == "INVALID_INPUT"
            assert "count more often in one of them" in refused.message
        assert scene.tables() == before
        assert through_days(scene, "project", "agent:bo") == [[1000, 300]] * DAYS

    def test_days_of_different_time_zones_are_different_periods(self, scene: Scene) -> None:
        set_budget(scene, usd="10", period="day")
        set_budget(scene, "agent:bo", usd="3", period="day", zone="Asia/Tokyo")
        assert code_of(move(scene, "project", "agent:bo")) == "INVALID_INPUT"
        set_budget(scene, "agent:bo", zone="UTC")
        assert code_of(move(scene, "project", "agent:bo")) == "UPDATED"

    @pytest.mark.parametrize("period", [None, "day", "week"])
    def test_in_the_same_period_one_gives_what_the_other_gets_until_it_is_moved_back(
        self, scene: Scene, period: str | None
    ) -> None:
        set_budget(scene, usd="10", period=period)
        set_budget(scene, "agent:bo", usd="3", period=period)
        assert move(scene, "project", "agent:bo").outcome == "UPDATED"
        assert through_days(scene, "project", "agent:bo") == [[850, 450]] * DAYS
        assert move(scene, "agent:bo", "project").outcome == "UPDATED"
        assert through_days(scene, "project", "agent:bo") == [[1000, 300]] * DAYS

    def test_the_zone_of_a_budget_without_a_period_does_not_matter(self, scene: Scene) -> None:
        set_budget(scene, usd="10", zone="Asia/Tokyo")
        set_budget(scene, "agent:bo", usd="3")
        assert move(scene, "project", "agent:bo").outcome == "UPDATED"

    # --- the archive ----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("is_moved", [False, True])
    @pytest.mark.parametrize("is_cancelled", [False, True])
    def test_what_is_archived_gets_no_budget(self, scene: Scene, is_moved: bool, is_cancelled: bool) -> None:
        key = _archived(scene, is_moved=is_moved, is_cancelled=is_cancelled)
        set_budget(scene, usd="10")
        before = scene.tables()
        for scope in (f"task:{key}", f"dag:{scene.task(key).dag}"):
            for amount in ({"usd": "3"}, {"tokens": 3000}):
                refused = scene.try_to(c.SetBudget, scope=scope, **amount)
                assert code_of(refused) == "DENIED_STATE"
                assert "is archived" in refused.message
        assert scene.tables() == before

    @pytest.mark.parametrize("is_moved", [False, True])
    def test_money_goes_out_of_a_budget_that_was_archived_and_not_into_it(self, scene: Scene, is_moved: bool) -> None:
        key = _archived(scene, is_moved=is_moved, constraints={"max_cost_usd": "5"})
        set_budget(scene, usd="10")
        assert code_of(move(scene, "project", f"task:{key}")) == "DENIED_STATE"
        assert code_of(scene.try_to(c.SetBudget, scope=f"task:{key}", usd="6")) == "DENIED_STATE"
        assert scene.do(c.SetBudget, scope=f"task:{key}", usd="5").outcome == "UNCHANGED"
        assert move(scene, f"task:{key}", "project").outcome == "UPDATED"
        assert allocated(scene, "project", f"task:{scene.task(key).id}") == [1150, 350]

    def test_a_dag_gets_a_budget_while_one_of_its_tasks_is_not_archived(self, scene: Scene) -> None:
        one, two = scene.plan(NewTask(title="1", name="1"), NewTask(title="2", name="2"), name="shop")
        dag = scene.task(one).dag
        scene.finish(one)
        scene.do(c.Archive, task=one)
        assert set_budget(scene, f"dag:{dag}", usd="3").outcome == "CREATED"
        scene.do(c.RemoveBudget, scope=f"dag:{dag}")
        scene.finish(two)
        scene.do(c.Archive, task=two)
        assert code_of(scene.try_to(c.SetBudget, scope=f"dag:{dag}", usd="3")) == "DENIED_STATE"
        again = (NewTask(title="1", name="1"), NewTask(title="2", name="2"))
        assert code_of(scene.try_to(c.Plan, tasks=again, name="shop", budget="3")) == "DENIED_STATE"
        assert scene.row(Dag, dag).total == 2

    @pytest.mark.parametrize("is_one_batch", [False, True])
    def test_a_task_that_left_the_archive_gets_a_budget_with_what_it_has_cost(
        self, scene: Scene, is_one_batch: bool
    ) -> None:
        key = _archived(scene, is_moved=True)
        own = f"task:{scene.task(key).id}"
        batch = [
            c.Reset(project=PROJECT, task=key),
            c.SetBudget(project=PROJECT, scope=f"task:{key}", usd="3"),
        ]
        for part in [batch] if is_one_batch else [[one] for one in batch]:
            scene.run(*part)
        assert counts(scene, own) == (20, 0)
        spend(scene, scene.take(key, "bo"), "0.30")
        assert counts(scene, own) == (50, 250)


def _archived(scene: Scene, *, is_moved: bool, is_cancelled: bool = False, **fields: Any) -> str:
    """The key of a task that has cost 20 cents and is archived; `is_moved`: its rows lie in the archive."""
    scene.do(c.DefineProject, limits={"archive_after": 0} if is_moved else {})
    key = scene.add(**fields)
    receipt = scene.take(key)
    if is_cancelled:
        spend(scene, receipt, "0.20")
        scene.do(c.Cancel, task=key)
    else:
        scene.submit(receipt, usage=(Totals(model="x", cost_usd="0.20"),))
    if is_moved:
        scene.pass_time(seconds=1)
        scene.engine.sweep()
        assert scene.stored_rows(Task) == []
    else:
        scene.do(c.Archive, task=key)
    return key

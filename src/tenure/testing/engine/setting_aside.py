"""Ready tasks that were set aside for a budget come back, best first, whatever the order of claims is or was."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenure.core import commands as c
from tenure.core import lifecycle, priority
from tenure.core.outcomes import Outcome
from tenure.core.records import Project, Task, replace
from tenure.engine.budgets.unaffordable import LARGE_PAGE, PAGE
from tenure.testing.engine.budgets import set_budget
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene
from tenure.testing.suites.store_setting import examples

ADDED = st.tuples(
    st.just("add"),
    st.sampled_from((5, 15, 50, 65, 85)),  # one of each tier
    st.sampled_from((0, 0.1, 1)),
    st.sampled_from((None, 60, 3600)),
)
STEPS = st.lists(
    ADDED
    | st.tuples(st.just("order"), st.sampled_from(priority.ORDERS))
    | st.tuples(st.just("budget"), st.sampled_from(("0.5", "1", "3")))
    | st.tuples(st.sampled_from(("claim", "remove", "reorder", "wait"))),
    min_size=4,
    max_size=24,
)


class SettingAside(Stage):
    def test_in_the_order_by_length_what_a_raised_budget_covers_comes_back(self, scene: Scene) -> None:
        scene.do(c.DefineProject, order="shortest")
        set_budget(scene, usd="1.5", default_estimate="1")
        one, two = scene.add(), scene.add()
        assert scene.next_keys(2) == [one]
        assert _set_aside(scene) == [two]
        set_budget(scene, usd="10")
        assert scene.next_keys(2) == [two]
        assert _set_aside(scene) == []

    def test_after_an_order_that_was_changed_and_changed_back_what_a_removed_budget_kept_comes_back(
        self, scene: Scene
    ) -> None:
        for order in ("shortest", "priority"):
            scene.do(c.DefineProject, order=order)
        set_budget(scene, usd="1.5", default_estimate="1")
        one, two = scene.add(), scene.add()
        assert scene.task(one).band == 9
        assert scene.next_keys(2) == [one]
        scene.do(c.RemoveBudget)
        assert scene.next_keys(2) == [two]
        assert scene.row(Project, PROJECT).set_aside == {}

    def test_what_comes_back_is_offered_in_the_order_of_claims_over_all_turns(self, scene: Scene) -> None:
        set_budget(scene, usd="1", default_estimate="2")
        wanted = [scene.add(priority=p) for p in (20, 50)]
        for order in ("shortest", "priority", "shortest"):
            scene.do(c.DefineProject, order=order)
            wanted += [scene.add(priority=p) for p in ("high", "normal", "background")]
        critical = scene.add(priority=0)
        assert scene.next().outcome == "NO_TASK"
        assert len(_set_aside(scene)) == len(wanted) + 1
        set_budget(scene, usd="100")
        assert scene.next_keys(20) == [critical, *wanted]

    def test_the_best_of_a_crowd_comes_back_first_and_the_rest_by_pages(self, scene: Scene) -> None:
        scene.do(c.DefineProject, order="shortest")
        set_budget(scene, usd="1", default_estimate="2")
        crowd = PAGE + 10
        low = [_key(made) for made in scene.run(*[_new("low")] * crowd)]
        high = scene.add(priority="high")
        assert scene.next().outcome == "NO_TASK"
        assert len(_set_aside(scene)) == crowd + 1
        set_budget(scene, usd="1000")
        assert scene.next_keys(1) == [high]
        assert 0 < len(_set_aside(scene)) <= crowd - PAGE + 1
        assert scene.next_keys(crowd) == low

    def test_critical_tasks_of_two_orders_are_not_compared_by_rank(self, scene: Scene) -> None:
        set_budget(scene, usd="1", default_estimate="2")
        crowd = c.Add(project=PROJECT, task=c.NewTask(title="t", priority=9, boost=0))
        by_priority = [_key(made) for made in scene.run(*[crowd] * (PAGE + 1))]
        scene.do(c.DefineProject, order="shortest")
        short = scene.add(priority=9, boost=0, constraints={"estimated_duration": 1})
        assert scene.next().outcome == "NO_TASK"
        set_budget(scene, usd="1000")
        assert scene.next_keys(PAGE + 2) == [short, *by_priority]

    def test_a_removed_budget_frees_more_than_a_page_of_many_bands(self, scene: Scene) -> None:
        set_budget(scene, usd="1", default_estimate="2")
        each = LARGE_PAGE // 5
        keys = []
        for order in ("shortest", "priority", "shortest"):
            scene.do(c.DefineProject, order=order)
            for tier in ("high", "low"):
                keys += [_key(made) for made in scene.run(*[_new(tier)] * each)]
        assert scene.next().outcome == "NO_TASK"
        assert len(_set_aside(scene)) == len(keys)
        scene.do(c.RemoveBudget)
        granted = [scene.do(c.ClaimNext, agent="ann", session="s", n=100) for _ in range(len(keys) // 100)]
        assert [_key(one) for answer in granted for one in answer.claims or ()] == keys
        assert scene.next().outcome == "NO_TASK"

    def test_a_task_that_no_claim_looks_at_any_more_comes_back_when_a_budget_is_set(self, scene: Scene) -> None:
        """Stores have such rows from when bands were listed."""
        key = scene.add()
        task = scene.task(key)
        scene.put(task, replace(task, lane=None, plain=False, set_aside_for="$project@1", price=5))
        assert scene.next().outcome == "NO_TASK"
        assert scene.engine.verify() != []
        set_budget(scene, usd="5", default_estimate="1")
        assert scene.next_keys(1) == [key]

    def test_whatever_was_set_aside_can_be_claimed_once_there_is_money(self, scene: Scene) -> None:
        names = count()

        @examples(30)
        @given(steps=STEPS, is_removed=st.booleans())
        def holds(steps: list[tuple[Any, ...]], is_removed: bool) -> None:
            project = f"p{next(names)}"
            scene.do(c.DefineProject, project=project)
            for step in (*steps, ("budget", "0.5"), ("claim",)):
                _take(scene, project, *step)
            if is_removed:
                scene.try_to(c.RemoveBudget, project=project)
            else:
                scene.do(c.SetBudget, project=project, scope="project", usd="1000")
            ready = [task for task in _tasks(scene, project) if task.state == lifecycle.READY]
            ready.sort(key=lambda task: _place(task, scene.now))
            claims = [_next(scene, project) for _ in range(len(ready) + 1)]
            assert [claim.outcome for claim in claims] == ["GRANTED"] * len(ready) + ["NO_TASK"]
            assert [_key(claim) for claim in claims[:-1]] == [task.key for task in ready]

        holds()


def _take(scene: Scene, project: str, step: str, *values: Any) -> None:
    if step == "add":
        tier, boost, seconds = values
        constraints = {} if seconds is None else {"estimated_duration": seconds}
        new = c.NewTask(title="t", priority=tier, boost=boost, constraints=constraints)
        scene.do(c.Add, project=project, task=new)
    elif step == "order":
        scene.do(c.DefineProject, project=project, order=values[0])
    elif step == "budget":
        scene.do(c.SetBudget, project=project, scope="project", usd=values[0], default_estimate="1")
    elif step == "claim":
        _next(scene, project)
    elif step == "remove":
        scene.try_to(c.RemoveBudget, project=project)
    elif step == "reorder":
        scene.do(c.Reorder, project=project)
    else:
        scene.pass_time(seconds=1)


def _next(scene: Scene, project: str) -> Outcome:
    return scene.do(c.ClaimNext, project=project, agent="ann", session=f"s-{project}", lease=3600)


def _new(tier: str) -> c.Add:
    return c.Add(project=PROJECT, task=c.NewTask(title="t", priority=tier))


def _key(made: Any) -> str:
    return str(made.task["key"])


def _place(task: Task, now: int) -> tuple[int, int, int]:
    """In the order of claims, by the rule alone."""
    effective = priority.rank(task, now) - priority.ageing(task) * now
    return priority.band_of(task), effective, task.sequence


def _tasks(scene: Scene, project: str) -> list[Task]:
    found: list[Task] = scene.engine.read_settled((project,), lambda work: work.find(Task, {"project": project}))
    return found


def _set_aside(scene: Scene) -> list[str]:
    return [task.key for task in scene.rows(Task) if task.set_aside_for is not None]

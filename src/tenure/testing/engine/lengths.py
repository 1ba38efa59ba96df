"""The order by length, claims of like tasks, the lease `auto`, and hung work by the task's estimate."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import limits
from tenure.core import queries as q
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene, code_of

SECOND = 1_000_000
HOUR = 3600 * SECOND


def by_length(scene: Scene) -> None:
    assert scene.do(c.DefineProject, order="shortest").outcome == "UPDATED"


def lasting(scene: Scene, seconds: float, **fields: Any) -> str:
    """The key of a new task with this estimate."""
    return scene.add(constraints={"estimated_duration": seconds}, **fields)


def reorder(scene: Scene) -> list[int]:
    """How many tasks each page moved."""
    pages, after = [], None
    while True:
        outcome = scene.do(c.Reorder, after=after)
        pages.append(len(outcome.changed or ()))
        if outcome.next is None:
            return pages
        after = outcome.next


class Lengths(Stage):
    # --- order ----------------------------------------------------------------------------------------------------

    def test_the_shortest_task_goes_first_in_its_tier(self, scene: Scene) -> None:
        by_length(scene)
        long, short, unknown = lasting(scene, 3600), lasting(scene, 60), scene.add()
        low, high = lasting(scene, 1, priority="low"), lasting(scene, 7200, priority="high")
        critical = lasting(scene, 7200, priority="critical")
        assert scene.next_keys(6) == [critical, high, short, long, unknown, low]

    def test_a_task_waits_for_shorter_ones_only_if_they_came_within_the_difference(self, scene: Scene) -> None:
        by_length(scene)
        long = lasting(scene, 3600)
        scene.pass_time(seconds=3539)
        early = lasting(scene, 60)
        scene.pass_time(seconds=2)
        late = lasting(scene, 60)
        assert scene.next_keys(3) == [early, long, late]

    def test_estimates_count_up_to_four_hours(self, scene: Scene) -> None:
        by_length(scene)
        keys = [lasting(scene, 50 * 3600), lasting(scene, 4 * 3600), scene.add()]
        assert scene.next_keys(3) == keys  # the same length: the sequence decides

    def test_the_length_is_fixed_when_the_task_is_created(self, scene: Scene) -> None:
        by_length(scene)
        first, second = lasting(scene, 60), lasting(scene, 600)
        before = scene.task(first).rank
        scene.do(c.Edit, task=first, changes={"constraints": {"estimated_duration": 6000}})
        edited = scene.task(first)
        assert (edited.estimate, edited.length, edited.rank) == (6000 * SECOND, 60 * SECOND, before)
        assert scene.next_keys(2) == [first, second]

    def test_a_change_of_order_is_for_new_tasks_and_the_others_go_first(self, scene: Scene) -> None:
        old = [lasting(scene, 900), lasting(scene, 60, priority="background")]
        by_length(scene)
        scene.pass_time(hours=9)
        new = [lasting(scene, 30, priority="high"), lasting(scene, 1)]
        critical = lasting(scene, 1, priority="critical")
        assert scene.next_keys(5) == [critical, *old, *new]

    def test_back_in_the_order_of_priority_no_task_by_length_is_overtaken(self, scene: Scene) -> None:
        by_length(scene)
        old = lasting(scene, 900, priority="background")
        scene.do(c.DefineProject, order="priority")
        new = scene.add(priority="high")
        assert scene.next_keys(2) == [old, new]

    def test_reorder_moves_the_open_tasks(self, scene: Scene) -> None:
        long, short, waiting = lasting(scene, 900), lasting(scene, 60), lasting(scene, 30, not_before_in=60)
        done = scene.add()
        scene.finish(done)
        by_length(scene)
        new = lasting(scene, 300)
        assert reorder(scene) == [3]
        assert reorder(scene) == [0]
        assert scene.task(done).length is None
        scene.pass_time(seconds=60)
        assert scene.next_keys(4) == [waiting, short, new, long]
        assert [scene.log(key)[-2] for key in (long, short)] == ["task.reordered"] * 2
        scene.do(c.DefineProject, order="priority")
        assert reorder(scene) == [4]
        assert {scene.task(key).length for key in (long, short, new)} == {None}

    def test_reorder_goes_page_by_page(self, scene: Scene) -> None:
        many = limits.REORDERED + 3
        scene.plan(*(c.NewTask(title="t", name=f"t{n}") for n in range(many)))
        by_length(scene)
        assert reorder(scene) == [limits.REORDERED, 3]
        assert {task.order_turn for task in scene.stored_rows(type(scene.task("A-001")))} == {1}

    def test_reorder_leaves_a_claim_as_it_is(self, scene: Scene) -> None:
        key = lasting(scene, 900)
        receipt = scene.take(key)
        by_length(scene)
        assert reorder(scene) == [1]
        assert scene.submit(receipt).outcome == "ACCEPTED"

    def test_an_unknown_order_is_refused(self, scene: Scene) -> None:
        answer = scene.try_to(c.DefineProject, order="longest")
        assert code_of(answer) == "INVALID_INPUT"
        assert "priority, shortest" in str(answer)

    def test_a_project_begins_with_the_order_that_it_is_given(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="q", order="shortest", router=True, lead="off")
        view = read_query(scene.engine, q.ShowProject(project="q"))
        assert (view["order"], view["router"], view["lead"]) == ("shortest", True, "off")
        added = scene.do(c.Add, project="q", task=c.NewTask(title="t", constraints={"estimated_duration": 5}))
        assert added.task is not None
        assert scene.task(str(added.task["key"]), "q").length == 5 * SECOND

    def test_why_explains_the_order(self, scene: Scene) -> None:
        plain = scene.add()
        by_length(scene)
        why = {
            key: read_query(scene.engine, q.Why(project=PROJECT, task=key))["priority"]
            for key in (plain, lasting(scene, 90))
        }
        (old, new) = why.values()
        assert ("length" in old, new["length"]) == (False, 90.0)

    @pytest.mark.parametrize("seed", range(4))
    def test_no_task_waits_for_one_of_its_tier_that_came_four_hours_later(self, scene: Scene, seed: int) -> None:
        """A stream of work that is always more than the agent can do, on a clock that is moved by hand."""
        dice = Random(seed)  # noqa: S311  # a history that can be played again
        by_length(scene)
        waiting: dict[str, tuple[int, str]] = {}

        def arrive(tier: str, seconds: float) -> str:
            key = lasting(scene, seconds, priority=tier)
            waiting[key] = (scene.now, tier)
            return key

        first, began = arrive("normal", 50_000), scene.now
        done: list[str] = []
        for _ in range(70):
            for _ in range(2):
                arrive("normal", dice.choice((1, 60, 900, 7200, 50_000)))
            if dice.random() < 0.2:
                arrive(dice.choice(("high", "low", "background")), dice.choice((1, 900, 50_000)))
            scene.submit(str(scene.next().receipt))
            (key,) = [key for key in waiting if scene.state(key) == "completed"]
            at, tier = waiting.pop(key)
            done.append(key)
            overtaken = [other for other, (since, of) in waiting.items() if of == tier and since + 4 * HOUR < at]
            assert overtaken == []
            scene.pass_time(minutes=dice.choice((3, 9, 21)))
        assert scene.now - began > 8 * HOUR
        assert (first in done, "normal" in {tier for _, tier in waiting.values()}) == (True, True)

    # --- like tasks -----------------------------------------------------------------------------------------------

    def test_like_tasks_are_of_the_type_and_track_of_the_first(self, scene: Scene) -> None:
        best = scene.add(track="B", type="docs", priority="high")
        scene.add(track="B", type="code")
        scene.add(track="C", type="docs")
        more = [scene.add(track="B", type="docs", priority="low") for _ in range(3)]
        granted = scene.next(n=3, like=True)
        assert [claim.task["key"] for claim in granted.claims or () if claim.task] == [best, *more[:2]]
        assert len({claim.receipt for claim in granted.claims or ()}) == 3
        for claim in granted.claims or ():
            assert scene.submit(str(claim.receipt)).outcome == "ACCEPTED"

    def test_like_tasks_touch_nothing_in_common(self, scene: Scene) -> None:
        one = scene.add(touches=("src/a.py",))
        scene.add(touches=("src/*.py",))
        three = scene.add(touches=("docs/",))
        granted = scene.next(n=3, like=True)
        assert [claim.task["key"] for claim in granted.claims or () if claim.task] == [one, three]

    def test_like_tasks_may_be_fewer_or_none(self, scene: Scene) -> None:
        assert scene.next(n=3, like=True).outcome == "NO_TASK"
        key = scene.add()
        granted = scene.next(n=3, like=True)
        assert [claim.task["key"] for claim in granted.claims or () if claim.task] == [key]

    # --- lease ----------------------------------------------------------------------------------------------------

    def test_an_automatic_lease_is_the_tasks_estimate(self, scene: Scene) -> None:
        named = scene.claim(lasting(scene, 1234), lease="auto")
        assert (named.lease, named.lease_why) == (1234.0, "the task's estimate")
        lasting(scene, 77)
        assert scene.next(lease="auto").lease == 77.0

    def test_an_automatic_lease_stays_within_the_limits(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"min_lease": 400, "max_lease": 1000})
        found = [scene.claim(key, lease="auto") for key in (lasting(scene, 60), lasting(scene, 5000), scene.add())]
        assert [claim.lease for claim in found] == [400.0, 1000.0, 400.0]
        assert "min_lease" in str(found[0].lease_why)
        assert "max_lease" in str(found[1].lease_why)

    @pytest.mark.parametrize(("samples", "lease"), [(19, 300.0), (20, 19.0), (40, 38.0)])
    def test_an_automatic_lease_is_what_nearly_all_tasks_of_the_type_took(
        self, scene: Scene, samples: int, lease: float
    ) -> None:
        for n in range(samples):
            receipt = scene.take(scene.add(type="docs"))
            scene.pass_time(seconds=n + 1)
            scene.submit(receipt)
        for _ in range(30):  # of another type, and not completed
            scene.submit(scene.take(scene.add(type="code")))
            scene.fail(scene.take(scene.add(type="docs", max_attempts=1)))
        claim = scene.claim(scene.add(type="docs"), lease="auto")
        assert claim.lease == lease
        assert (str(samples) in str(claim.lease_why), "default" in str(claim.lease_why)) == (True, samples < 20)

    def test_the_repeat_of_a_claim_gives_the_same_reason(self, scene: Scene) -> None:
        key = lasting(scene, 60)
        first, again = (scene.claim(key, lease="auto", request_id="r1") for _ in range(2))
        assert (again.again, again.receipt, again.lease_why) == (True, first.receipt, first.lease_why)
        (entry,) = read_query(scene.engine, q.History(project=PROJECT, task=key))
        assert entry["lease_why"] == first.lease_why

    def test_another_word_for_a_lease_is_refused(self, scene: Scene) -> None:
        key = scene.add()
        assert code_of(scene.try_to(c.ClaimTask, task=key, agent="ann", session="s", lease="long")) == "INVALID_INPUT"
        assert code_of(scene.try_to(c.ClaimNext, agent="ann", session="s", lease="")) == "INVALID_INPUT"

    # --- hung -----------------------------------------------------------------------------------------------------

    def test_a_holder_is_warned_at_three_times_the_estimate_and_aborted_later(self, scene: Scene) -> None:
        key = lasting(scene, 600)
        scene.take(key, lease=86400)
        scene.pass_time(seconds=1800)
        scene.clock.advance(-1)
        assert scene.task(key).wanted is None
        scene.clock.advance(1)
        assert scene.task(key).wanted == "warn"
        scene.pass_time(minutes=10)
        assert scene.state(key) == "retrying"
        scene.engine.sweep()
        assert scene.log(key)[-3:] == ["task.warned", "task.aborted", "task.retry_scheduled"]

    def test_a_holder_that_only_renews_is_warned_too(self, scene: Scene) -> None:
        scene.next()  # from now on the claimant is known
        key = lasting(scene, 600)
        receipt = scene.next(lease=86400).receipt or ""
        scene.pass_time(seconds=5)
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"
        scene.pass_time(seconds=1795)
        assert scene.do(c.Renew, receipt=receipt).directive == "warn"
        assert scene.log(key)[-1] == "task.warned"

    def test_progress_puts_the_warning_off(self, scene: Scene) -> None:
        key = lasting(scene, 60)
        receipt = scene.take(key, lease=86400)
        for _ in range(4):
            assert scene.do(c.Progress, receipt=receipt, step="on").outcome == "OK"
            scene.pass_time(minutes=29)
            assert scene.task(key).wanted is None
        scene.pass_time(minutes=1)
        assert scene.task(key).wanted == "warn"

    def test_the_holders_own_estimate_counts_before_the_tasks(self, scene: Scene) -> None:
        key = lasting(scene, 60)
        receipt = scene.take(key, lease=86400)
        scene.do(c.Progress, receipt=receipt, done_in=7200)
        scene.pass_time(hours=2, minutes=29)
        assert scene.task(key).wanted is None
        scene.pass_time(minutes=1)
        assert scene.task(key).wanted == "warn"

    def test_an_edited_estimate_counts_for_the_next_holder(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Edit, task=key, changes={"constraints": {"estimated_duration": 60}})
        scene.take(key, lease=86400)
        scene.pass_time(seconds=180)
        assert scene.task(key).wanted == "warn"

    @pytest.mark.parametrize("value", [0, -5, 1e300])
    def test_an_estimate_must_be_a_duration(self, scene: Scene, value: float) -> None:
        task = c.NewTask(title="t", constraints={"estimated_duration": value})
        assert code_of(scene.try_to(c.Add, task=task)) == "INVALID_INPUT"

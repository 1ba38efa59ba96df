"""What budgets say while work goes on: warnings, pauses, alerts, periods, throttling; and what one task may cost."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask, Totals
from tenure.core.records import Budget, Project, Task
from tenure.engine.reads.query_table import read_query
from tenure.engine.verbs.claim import MOST_UNPAID
from tenure.testing.engine.budgets import counts, set_budget, spend
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import MEMBER, PROJECT, Scene, code_of

HOUR = 3600 * 1_000_000
DAY = 24 * HOUR


def seen(scene: Scene, kind: type[q.Query], **fields: Any) -> Any:
    return read_query(scene.engine, kind(project=PROJECT, **fields))


def alerts(scene: Scene) -> list[tuple[str, int]]:
    return [(alert["budget"], alert["level"]) for alert in seen(scene, q.Alerts)]


def thresholds(scene: Scene, kind: str) -> list[int]:
    return [event.details["threshold"] for event in scene.events(kind=kind)]


class BudgetChecks(Stage):
    # --- holders --------------------------------------------------------------------------------------------------

    def test_a_holder_is_warned_from_ninety_per_cent_on(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="1")
        receipt = scene.take(scene.add())
        assert spend(scene, receipt, "8.99").directive == "continue"
        assert scene.do(c.Renew, receipt=receipt).directive == "continue"
        warned = spend(scene, receipt, "9.00")
        text = "budget project: 90 % used, $9.00 of $10.00: finish soon, or save a checkpoint"
        assert (warned.directive, warned.directive_text) == ("warn", f"{text}; the task is paused when more is spent")

    def test_every_answer_to_a_holder_has_the_same_warning(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="1")
        key = scene.add()
        receipt = scene.take(key)
        warned = spend(scene, receipt, "9.50")
        same = (warned.directive, warned.directive_text)
        answers = [
            scene.do(c.Renew, receipt=receipt),
            scene.do(c.Progress, receipt=receipt, percent=5),
            scene.do(c.Start, receipt=receipt),
            scene.do(c.SaveCheckpoint, receipt=receipt, data={"next": "go on"}),
            scene.do(c.Land, receipt=receipt, branch="main", old="0" * 40, new="1" * 40),
        ]
        assert {(answer.directive, answer.directive_text) for answer in answers} == {same}
        alive = scene.do(c.Heartbeat, agent="ann", session="s-ann")
        assert (alive.directive, alive.directive_text) == ("warn", f"{key}: {warned.directive_text}")
        (told,) = seen(scene, q.AgentNews, agent="ann")["directives"]
        assert (told["directive"], told["text"], told["task"]) == (*same, key)

    def test_a_holder_is_paused_above_a_hundred_and_its_work_is_kept(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="1")
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.SaveCheckpoint, receipt=receipt, data={"next": "go on"})
        assert spend(scene, receipt, "10").directive == "warn"
        paused = spend(scene, receipt, "10.01")
        assert (paused.outcome, paused.state, paused.directive) == ("OK", "paused", "pause")
        assert scene.task(key).reason == "budget project: 100 % used, $10.01 of $10.00"
        claim = scene.last_claim(key)
        assert (claim.reason, claim.error_class, claim.counted) == ("PAUSED", "budget_exceeded", False)
        assert scene.do(c.SaveCheckpoint, receipt=receipt, data={"next": "more"}).outcome == "OK"
        assert scene.submit(receipt).outcome == "ACCEPTED"

    @pytest.mark.parametrize("verb", ["renew", "progress", "usage"])
    def test_another_holder_is_paused_with_its_next_sign_of_life(self, scene: Scene, verb: str) -> None:
        set_budget(scene, usd="10", default_estimate="1")
        one, two = scene.add(), scene.add()
        first, second = scene.take(one), scene.take(two, "bo")
        spend(scene, first, "11")
        assert scene.states(one, two) == ["paused", "claimed"]
        answer = {
            "renew": lambda: scene.do(c.Renew, receipt=second),
            "progress": lambda: scene.do(c.Progress, receipt=second, percent=7),
            "usage": lambda: spend(scene, second, "0"),
        }[verb]()
        assert (answer.directive, answer.state) == ("pause", "paused")
        assert answer.outcome == ("NO_CLAIM" if verb == "renew" else "OK")
        assert scene.do(c.Renew, receipt=second).outcome == "NO_CLAIM"

    def test_a_holder_from_before_the_budget_is_paused_too(self, scene: Scene) -> None:
        """Its claim holds no reservation there, and its task carries no mark of the budget: the project does."""
        earlier, later = scene.add(), scene.add()
        receipt = scene.take(earlier, "bo")
        set_budget(scene, usd="10", default_estimate="1")
        spend(scene, scene.take(later), "11")
        answer = scene.do(c.Renew, receipt=receipt)
        assert (answer.outcome, answer.directive, answer.state) == ("NO_CLAIM", "pause", "paused")
        assert scene.state(earlier) == "paused"

    def test_raising_the_budget_resumes_those_that_it_paused_and_no_others(self, scene: Scene) -> None:
        set_budget(scene, usd="1", default_estimate="0.1")
        set_budget(scene, "agent:bo", usd="1", default_estimate="0.1")
        keys = [scene.add() for _ in range(4)]
        receipts = [scene.take(key, agent) for key, agent in zip(keys, ("ann", "bo", "cy", "dee"), strict=True)]
        scene.do(c.Pause, task=keys[2], reason="budget project: so they say")
        scene.fail(receipts[3], "budget_exceeded")
        spend(scene, receipts[1], "1.50")
        spend(scene, receipts[0], "0.10")
        assert scene.states(*keys) == ["paused"] * 4
        still_over = set_budget(scene, usd="1.55")
        assert still_over.changed is None
        raised = set_budget(scene, usd="2")
        assert raised.changed == tuple(sorted((keys[0], keys[1], keys[3])))  # its holder reported what it counts in
        assert scene.states(*keys) == ["ready", "ready", "paused", "ready"]
        assert scene.take(keys[0])

    def test_money_moved_to_a_budget_resumes_too(self, scene: Scene) -> None:
        set_budget(scene, usd="5", default_estimate="0.1")
        set_budget(scene, "agent:ann", usd="1", default_estimate="0.1")
        key = scene.add()
        spend(scene, scene.take(key), "1.50")
        moved = scene.do(c.MoveBudget, source="project", target="agent:ann", amount="1")
        assert (moved.outcome, moved.changed) == ("UPDATED", (key,))
        rows = [scene.row(Budget, id).allocated // 10**9 for id in ("project", "agent:ann")]
        assert rows == [4, 2]

    def test_only_what_is_neither_spent_nor_reserved_can_be_moved(self, scene: Scene) -> None:
        set_budget(scene, usd="5", default_estimate="2")
        set_budget(scene, "agent:ann", usd="1", default_estimate="1")
        set_budget(scene, "agent:bo", tokens=5)
        receipt = scene.take(scene.add(), "cy")
        spend(scene, receipt, "0.50")
        assert scene.do(c.MoveBudget, source="project", target="agent:ann", amount="3.01").outcome == "DENIED_BUDGET"
        assert scene.do(c.MoveBudget, source="project", target="agent:ann", amount="3").outcome == "UPDATED"
        for target, amount in (("agent:bo", "1"), ("project", "1"), ("agent:ann", "0"), ("agent:ann", "-1")):
            answer = scene.try_to(c.MoveBudget, source="project", target=target, amount=amount)
            assert code_of(answer) == "INVALID_INPUT"
        assert code_of(scene.try_to(c.MoveBudget, source="project", target="agent:no", amount="1")) == "NOT_FOUND"

    # --- alerts ---------------------------------------------------------------------------------------------------

    def test_each_threshold_is_told_once_and_listed_until_it_ends(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="1")
        receipt = scene.take(scene.add())
        for cost in ("4.99", "5.00", "6", "9.50", "10"):
            spend(scene, receipt, cost)
        assert thresholds(scene, "budget.alert") == [50, 90, 100]
        assert alerts(scene) == [("project", 100), ("project", 90), ("project", 50)]
        set_budget(scene, usd="15")
        assert thresholds(scene, "budget.alert_ended") == [90, 100]
        assert alerts(scene) == [("project", 50)]

    # --- periods --------------------------------------------------------------------------------------------------

    def test_a_budget_begins_anew_with_its_period_and_nobody_has_to_sweep(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="4", period="day")
        receipt, other = scene.take(scene.add(), lease=200_000.0), scene.add()
        spend(scene, receipt, "8")
        denied = scene.claim(other, "bo")
        assert denied.outcome == "DENIED_BUDGET"
        until = scene.row(Budget, "project").until
        assert denied.retry_at == until
        scene.clock.advance(seconds=(until - scene.now) / 1e6 - 1)
        assert scene.claim(other, "bo").outcome == "DENIED_BUDGET"
        scene.pass_time(seconds=1)
        assert alerts(scene) == []
        assert scene.claim(other, "bo").outcome == "GRANTED"
        assert counts(scene) == (0, 400)

    def test_a_task_that_a_budget_paused_goes_on_with_the_next_period(self, scene: Scene) -> None:
        set_budget(scene, usd="1", default_estimate="1", period="week", zone="Europe/Berlin")
        key, by_hand = scene.add(), scene.add()
        spend(scene, scene.take(key), "2")
        scene.do(c.Pause, task=by_hand)
        assert scene.state(key) == "paused"
        scene.pass_time(hours=7 * 24 + 1)
        assert scene.states(key, by_hand) == ["ready", "paused"]
        assert scene.log(key)[-1] == "task.paused"  # looking writes nothing
        assert (scene.next("bo").task or {}).get("key") == key
        assert scene.log(key)[-2:] == ["task.resumed", "task.claimed"]

    def test_reservations_go_along_into_the_new_period(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="6", period="day")
        receipt, other = scene.take(scene.add(), lease=500_000.0), scene.add()
        spend(scene, receipt, "2")
        scene.pass_time(hours=30)
        denied = scene.claim(other, "bo")
        assert denied.outcome == "GRANTED"
        assert counts(scene) == (0, 1000)
        spend(scene, receipt, "3")
        assert counts(scene) == (100, 900)

    def test_one_with_a_time_pays_only_while_that_runs(self, scene: Scene) -> None:
        begins, ends = scene.now + HOUR, scene.now + 3 * HOUR
        set_budget(scene, usd="10", default_estimate="1", begins_at=begins, ends_at=ends)
        key = scene.add()
        early = scene.claim(key)
        assert (early.outcome, early.retry_at) == ("DENIED_BUDGET", begins)
        scene.pass_time(hours=1)
        receipt = scene.take(key)
        scene.do(c.Release, receipt=receipt)
        scene.pass_time(hours=2)
        late = scene.claim(key, "bo")
        assert (late.outcome, late.retry_at) == ("DENIED_BUDGET", None)
        assert "has ended" in late.message

    # --- projection, throttling -----------------------------------------------------------------------------------

    def test_the_projection_tells_where_it_leads_and_what_open_tasks_lack(self, scene: Scene) -> None:
        set_budget(scene, usd="100", default_estimate="5")
        receipt = scene.take(scene.add(), lease=500_000.0)
        for day in range(1, 5):
            scene.pass_time(hours=24)
            spend(scene, receipt, str(10 * day))
        for _ in range(14):
            scene.add()
        scene.add(constraints={"max_cost_usd": "7"})
        projection = seen(scene, q.ShowProjection)
        assert (projection["last_day"], projection["last_week"]) == ("10.00", "10.00")
        assert projection["day"] == {"spent": "10.00", "seconds": 24 * 3600.0}
        assert projection["week"] == {"spent": "40.00", "seconds": 4 * 24 * 3600.0}
        assert (projection["days_left"], projection["advice"]) == (6.0, "THROTTLE")
        assert projection["exhausted_at"] == scene.now + 6 * 24 * HOUR
        assert projection["open_tasks"] == {
            "tasks": 15,
            "estimate": "77.00",
            "remaining": "60.00",
            "shortfall": "17.00",
            "counted": 15,
        }
        scene.do(c.SetBudget, usd="200")
        assert seen(scene, q.ShowProjection)["advice"] == "CONTINUE"

    def test_a_budget_that_is_spent_does_not_continue_at_any_age(self, scene: Scene) -> None:
        set_budget(scene, tokens=1000)
        spend(scene, scene.take(scene.add()), fresh=1200)
        projection = seen(scene, q.ShowProjection)
        assert (projection["decided"], projection["advice"]) == (True, "THROTTLE")
        assert (projection["days_left"], projection["exhausted_at"]) == (0.0, scene.now)

    def test_minutes_of_work_are_shown_as_they_are_and_decide_nothing(self, scene: Scene) -> None:
        set_budget(scene, usd="20", default_estimate="1")
        receipt = scene.take(scene.add(), lease=500_000.0)
        scene.pass_time(minutes=12)
        spend(scene, receipt, "4.20")
        projection = seen(scene, q.ShowProjection)
        assert (projection["day"], projection["last_day"]) == ({"spent": "4.20", "seconds": 720.0}, "4.20")
        assert (projection["decided"], projection["days_left"], projection["exhausted_at"]) == (False, None, None)
        assert projection["advice"] == "CONTINUE"
        scene.pass_time(minutes=347)
        assert not seen(scene, q.ShowProjection)["decided"]
        scene.pass_time(minutes=1)
        projection = seen(scene, q.ShowProjection)
        assert (projection["decided"], projection["advice"]) == (True, "THROTTLE")
        assert projection["days_left"] == pytest.approx(15.8 / (4 * 4.2), abs=0.001)

    def test_a_budget_that_is_to_be_throttled_is_judged_from_the_start(self, scene: Scene) -> None:
        set_budget(scene, usd="20", default_estimate="1", throttle=True)
        receipt = scene.take(scene.add(), lease=500_000.0)
        spend(scene, receipt, "4.20")
        projection = seen(scene, q.ShowProjection)
        assert (projection["decided"], projection["advice"]) == (True, "THROTTLE")

    def test_throttling_spaces_claims_out_and_stops_nothing_dead(self, scene: Scene) -> None:
        set_budget(scene, usd="20", default_estimate="1", throttle=True)
        keys = [scene.add() for _ in range(4)]
        receipt = scene.take(keys[0], lease=500_000.0)
        assert scene.take(keys[1], "bo", lease=500_000.0)  # nothing was spent: it lasts for ever
        scene.pass_time(hours=12)
        spend(scene, receipt, "6")
        scene.take(keys[2], "cy")
        at = scene.row(Budget, "project").next_claim_at
        assert scene.now < at <= scene.now + HOUR
        throttled = scene.claim(keys[3], "dee")
        assert (throttled.outcome, throttled.retry_at) == ("DENIED_BUDGET", at)
        nothing = scene.next("dee")
        assert nothing.outcome == "NO_TASK"
        assert scene.now < (nothing.retry_at or 0) <= at
        assert nothing.counts is not None
        assert nothing.counts["unaffordable"] == 1
        scene.clock.advance(seconds=(at - scene.now) / 1e6)
        assert scene.next("dee").outcome == "GRANTED"

    def test_a_new_period_begins_without_the_throttle_of_the_last(self, scene: Scene) -> None:
        """One that was worked out for a week may reach into the next day, once the budget is one of days."""
        set_budget(scene, usd="20", default_estimate="1", throttle=True)
        keys = [scene.add() for _ in range(3)]
        receipt = scene.take(keys[0], lease=500_000.0)
        midnight = -(-scene.now // DAY) * DAY
        scene.clock.advance(seconds=(midnight - scene.now) / 1e6 - 600)
        spend(scene, receipt, "6")
        scene.take(keys[1], "bo")
        scene.do(c.SetBudget, period="day")
        row = scene.row(Budget, "project")
        assert row.until == midnight < row.next_claim_at
        assert scene.claim(keys[2], "cy").outcome == "DENIED_BUDGET"
        scene.pass_time(seconds=600)
        assert scene.claim(keys[2], "cy").outcome == "GRANTED"

    # --- what one task may cost -----------------------------------------------------------------------------------

    def test_what_a_task_may_cost_covers_all_its_attempts(self, scene: Scene) -> None:
        key = scene.add(constraints={"max_cost_usd": "5"})
        own = f"task:{scene.task(key).id}"
        receipt = scene.take(key)
        assert counts(scene, own) == (0, 500)
        spend(scene, receipt, "3")
        scene.fail(receipt, retry_after=0)
        again = scene.take(key, "bo")
        assert counts(scene, own) == (300, 200)
        assert spend(scene, again, "2.50").state == "paused"
        assert code_of(scene.claim(key)) == "DENIED_PAUSED"
        scene.do(c.Edit, task=key, changes={"constraints": {"max_cost_usd": "5.2"}})
        assert scene.state(key) == "paused"
        edited = scene.do(c.Edit, task=key, changes={"constraints": {"max_cost_usd": "9"}})
        assert (edited.outcome, edited.state) == ("UPDATED", "ready")
        scene.take(key)
        assert counts(scene, own) == (550, 350)

    def test_it_covers_the_subtasks_too(self, scene: Scene) -> None:
        set_budget(scene, usd="100", default_estimate="1")
        key = scene.add(constraints={"max_cost_usd": "5"})
        own = f"task:{scene.task(key).id}"
        receipt = scene.take(key)
        tasks = (NewTask(title="one", constraints={"max_cost_usd": "2"}), NewTask(title="two"))
        made = scene.do(c.Spawn, receipt=receipt, tasks=tasks)
        one, two = (str(task["key"]) for task in made.tasks or ())
        lent = counts(scene, own)[1]
        assert lent < 500
        first = scene.take(one, "bo")
        assert counts(scene, own) == (0, lent + 200)
        assert counts(scene)[1] <= 500  # no more is reserved for the lineage than it may cost
        second = scene.take(two, "cy")
        spend(scene, first, "2")
        spend(scene, second, "3.50")
        assert scene.states(one, two) == ["running", "paused"]
        denied = scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="three"),))
        assert denied.outcome in ("DENIED_BUDGET", "NO_CLAIM")

    def test_no_headroom_no_subtasks(self, scene: Scene) -> None:
        set_budget(scene, usd="2", default_estimate="1")
        receipt = scene.take(scene.add())
        other = scene.take(scene.add(), "bo")
        spend(scene, other, "1.50")
        assert scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="sub"),)).outcome == "OK"
        spend(scene, other, "2")
        spend(scene, receipt, "0")
        denied = scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="another"),))
        assert denied.outcome == "DENIED_BUDGET"
        assert scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="sub"),)).outcome == "OK"  # it is there

    def test_a_cap_that_comes_later_knows_what_was_spent(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        spend(scene, receipt, "1.25")
        scene.do(c.Release, receipt=receipt)
        set_budget(scene, f"task:{key}", usd="3")
        assert counts(scene, f"task:{scene.task(key).id}") == (125, 0)
        scene.take(key, "bo")
        assert counts(scene, f"task:{scene.task(key).id}") == (125, 175)

    def test_a_cap_that_is_edited_in_covers_the_subtasks_that_are_there(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        made = scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="sub"),))
        (child,) = (str(task["key"]) for task in made.tasks or ())
        scene.do(c.Release, receipt=receipt)
        changes = {"constraints": {"max_cost_usd": "2"}}
        done = scene.do(c.Edit, task=key, changes=changes)
        spend(scene, scene.take(child, "bo"), "2.50")
        assert scene.state(child) == "paused"
        scene.do(c.Undo, command_id=done.command_id)
        assert scene.rows(Budget) == []
        assert scene.state(child) == "ready"

    def test_what_a_task_may_cost_goes_into_the_archive_with_it_and_comes_back(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"archive_after": 0})
        key = scene.add(constraints={"max_cost_usd": "5"})
        own = f"task:{scene.task(key).id}"
        set_budget(scene, f"task:{key}", usd="6")
        receipt = scene.take(key)
        scene.submit(receipt, usage=(Totals(model="x", cost_usd="1"),))
        scene.pass_time(seconds=1)
        scene.engine.sweep()
        assert scene.rows(Task) == scene.rows(Budget) == []
        assert scene.engine.verify() == []
        assert seen(scene, q.ShowBudget, scope=f"task:{key}")["consumed"] == "1.00"
        spend(scene, receipt, "1.50")  # late: the task comes back for it, and it does not count against it
        assert counts(scene, own) == (100, 0)
        scene.do(c.Reset, task=key)
        scene.take(key, "bo")
        assert counts(scene, own) == (100, 500)

    def test_a_plan_says_what_it_may_cost(self, scene: Scene) -> None:
        tasks = (NewTask(title="one", name="one"), NewTask(title="two", name="two"))
        made = scene.plan(*tasks, name="shop", budget="1.50")
        own = f"dag:{scene.task(made[0]).dag}"
        assert scene.row(Budget, own).allocated == 15 * 10**8
        assert scene.do(c.Plan, tasks=tasks, name="shop", budget="1.5").outcome == "UNCHANGED"
        assert scene.do(c.Plan, tasks=tasks, name="shop", budget="2").outcome == "UPDATED"
        assert scene.row(Budget, own).allocated == 2 * 10**9
        spend(scene, scene.take(made[0]), "2.10")
        assert scene.states(*made) == ["paused", "ready"]
        assert scene.next("bo").outcome == "NO_TASK"
        refused = scene.try_to(c.Plan, by=MEMBER, tasks=tasks, name="shop", budget="9")
        assert code_of(refused) == "NOT_ALLOWED"
        assert scene.row(Budget, own).allocated == 2 * 10**9

    # --- setting aside --------------------------------------------------------------------------------------------

    def test_what_cannot_be_paid_is_passed_over_and_looked_at_once(self, scene: Scene) -> None:
        set_budget(scene, usd="3", default_estimate="1")
        dear = [scene.add(constraints={"max_cost_usd": "5"}, priority=10) for _ in range(5)]
        cheap = scene.add(constraints={"max_cost_usd": "2"})
        assert (scene.next("ann").task or {})["key"] == cheap
        assert all((scene.task(key).set_aside_for or "").startswith("$project@") for key in dear)
        nothing = scene.next("bo")
        assert nothing.counts is not None
        assert (nothing.outcome, nothing.counts["unaffordable"]) == ("NO_TASK", 5)
        assert "is missing" in nothing.message or "would reserve" in nothing.message
        set_budget(scene, usd="8")
        assert (scene.next("bo").task or {})["key"] == dear[0]
        assert scene.next("bo").outcome == "NO_TASK"
        assert len(scene.row(Project, PROJECT).set_aside) == 1

    def test_what_is_given_back_brings_the_best_back(self, scene: Scene) -> None:
        set_budget(scene, usd="2", default_estimate="2")
        low, high = scene.add(priority=80), scene.add(priority=20)
        receipt = scene.next("ann").receipt or ""
        assert scene.next("bo").outcome == "NO_TASK"
        assert scene.task(low).set_aside_for is None  # nothing is left: nobody needs to look at it
        spend(scene, receipt, "0")
        scene.do(c.Release, receipt=receipt)
        urgent = scene.add(priority=1)
        assert [scene.next("bo").task["key"]] == [urgent]  # type: ignore[index]
        assert scene.states(low, high) == ["ready", "ready"]

    def test_a_crowd_that_cannot_be_paid_hides_nothing_behind_it(self, scene: Scene) -> None:
        set_budget(scene, usd="1", default_estimate="5")
        crowd = MOST_UNPAID + 20
        scene.run(*[c.Add(project=PROJECT, task=NewTask(title="dear", priority=20))] * (crowd // 2))
        scene.run(*[c.Add(project=PROJECT, task=NewTask(title="dear", priority=20))] * (crowd - crowd // 2))
        cheap = scene.add(constraints={"max_cost_usd": "1"}, priority=90)
        assert (scene.next("ann").task or {}).get("key") == cheap
        assert scene.next("ann").outcome == "NO_TASK"
        set_budget(scene, usd="6")
        assert scene.next("ann").outcome == "GRANTED"
        assert len(scene.rows(Task, state="claimed")) == 2

    def test_an_agents_own_budget_hides_nothing_from_others(self, scene: Scene) -> None:
        set_budget(scene, "agent:ann", usd="1", default_estimate="2")
        key = scene.add()
        assert scene.next("ann").outcome == "NO_TASK"
        assert (scene.next("bo").task or {})["key"] == key

    def test_removing_a_budget_frees_tasks_set_aside_for_it(self, scene: Scene) -> None:
        set_budget(scene, usd="1", default_estimate="2")
        key = scene.add()
        assert scene.next("ann").outcome == "NO_TASK"
        scene.do(c.RemoveBudget)
        assert [task["key"] for task in seen(scene, q.Ready)] == [key]
        assert (scene.next("ann").task or {})["key"] == key
        assert scene.row(Project, PROJECT).set_aside == {}

    # --- looks ----------------------------------------------------------------------------------------------------

    def test_headroom_says_whether_a_process_is_worth_starting(self, scene: Scene) -> None:
        assert seen(scene, q.Headroom, agent="ann") == {"ok": True, "budgets": []}
        set_budget(scene, usd="1", default_estimate="1")
        scene.take(scene.add())
        headroom = seen(scene, q.Headroom, agent="ann")
        assert (headroom["ok"], headroom["budgets"]) == (
            False,
            [{"budget": "project", "currency": "usd", "headroom": "0.00"}],
        )
        assert headroom["recommendation"]

    def test_budgets_are_listed_and_those_of_tasks_when_asked_for(self, scene: Scene) -> None:
        key = scene.add(constraints={"max_cost_usd": "1"})
        for scope in ("tenant", "project", "agent:ann", "agent:bo"):
            set_budget(scene, scope, usd="5")
        assert [b["id"] for b in seen(scene, q.Budgets)] == ["tenant", "project", "agent:ann", "agent:bo"]
        assert [b["task"] for b in seen(scene, q.Budgets, scope="task")] == [key]
        assert seen(scene, q.ShowBudget, scope=f"task:{key}")["allocated"] == "1.00"

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            ({}, "INVALID_INPUT"),
            ({"usd": "1", "tokens": 1}, "INVALID_INPUT"),
            ({"usd": "-1"}, "INVALID_INPUT"),
            ({"usd": "1e30"}, "INVALID_INPUT"),
            ({"tokens": -1}, "INVALID_INPUT"),
            ({"usd": "1", "default_estimate": "0"}, "INVALID_INPUT"),
            ({"usd": "1", "period": "year"}, "INVALID_INPUT"),
            ({"usd": "1", "period": "day", "ends_at": 5}, "INVALID_INPUT"),
            ({"usd": "1", "begins_at": 9, "ends_at": 5}, "INVALID_INPUT"),
            ({"usd": "1", "zone": "Nowhere/Land"}, "INVALID_INPUT"),
            ({"usd": "1", "scope": "nobody"}, "INVALID_INPUT"),
            ({"usd": "1", "scope": "project:x"}, "INVALID_INPUT"),
            ({"usd": "1", "scope": "task:Z-999"}, "NOT_FOUND"),
            ({"usd": "1", "scope": "dag:dag_x"}, "NOT_FOUND"),
        ],
    )  # fmt: skip
    def test_a_budget_that_cannot_be_is_refused(self, scene: Scene, fields: dict[str, Any], code: str) -> None:
        before = scene.tables()
        assert code_of(scene.try_to(c.SetBudget, **fields)) == code
        assert scene.tables() == before

    def test_a_budget_cannot_change_its_currency(self, scene: Scene) -> None:
        set_budget(scene, usd="1")
        assert code_of(scene.try_to(c.SetBudget, tokens=5)) == "INVALID_INPUT"
        assert set_budget(scene, usd="1").outcome == "UNCHANGED"

    # --- before acceptance ----------------------------------------------------------------------------------------

    def test_a_result_that_took_far_more_than_it_changed_waits_for_a_person(self, scene: Scene) -> None:
        scene.do(c.DefineProject, limits={"tokens_per_line": 150})
        key = scene.add()
        receipt = scene.take(key)
        usage = (Totals(model="x", fresh=60_000, output=30_001),)
        for again in (False, True):
            kept = scene.submit(receipt, {"diff": 1}, lines=300, usage=usage)
            assert (kept.outcome, kept.again, kept.state) == ("REVIEW", again, "paused")
        assert scene.task(key).reason == "review: 300 changed lines for 90,001 tokens, 600 lines expected"
        assert scene.do(c.Adopt, task=key).outcome == "UPDATED"
        assert scene.state(key) == "completed"

    @pytest.mark.parametrize(
        ("lines", "tests"), [(300, 0), (None, 0), (20, 7)], ids=["enough", "nobody counted", "tests count"]
    )
    def test_others_are_accepted(self, scene: Scene, lines: int | None, tests: int) -> None:
        scene.do(c.DefineProject, limits={"tokens_per_line": 150})
        usage = (Totals(model="x", fresh=60_000, cached=10**6, output=30_000),)
        answer = scene.submit(scene.take(scene.add()), lines=lines, test_files=tests, usage=usage)
        assert answer.outcome == "ACCEPTED"

    def test_without_the_limit_nobody_asks(self, scene: Scene) -> None:
        usage = (Totals(model="x", fresh=10**6),)
        assert scene.submit(scene.take(scene.add()), lines=1, usage=usage).outcome == "ACCEPTED"

"""Costs that are far above what their tokens cost: booked and shown, but in no budget until a person confirms them."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import Principal, Totals
from tenure.core.errors import NotAllowed
from tenure.core.outcomes import Outcome
from tenure.core.records import Budget, Project
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.archive import churning, moved
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene

CENT = 10_000_000  # in nano-dollars
PRICED = "claude-sonnet-4-5"  # $3 for a million fresh tokens
MILLION = 1_000_000


def report(scene: Scene, receipt: str, cost: str | None, model: str = PRICED, **fields: Any) -> Outcome:
    return scene.do(c.ReportUsage, by=AGENT, receipt=receipt, model=model, cost_usd=cost, **fields)


def ask(scene: Scene, kind: Any, **fields: Any) -> Any:
    return read_query(scene.engine, kind(project=PROJECT, **fields))


def spent(scene: Scene, id: str = "project") -> int:
    """What the budget counts, in cents."""
    row: Budget = scene.row(Budget, id, "" if id == "tenant" else PROJECT)
    return row.consumed // CENT


def shown(scene: Scene, key: str) -> tuple[Any, ...]:
    usage = ask(scene, q.Show, task=key)["usage"]
    return tuple(usage.get(name) for name in ("cost_usd", "doubtful_usd", "rejected_usd"))


def budget(scene: Scene, scope: str = "project", usd: str = "50") -> None:
    scene.do(c.SetBudget, scope=scope, usd=usd, default_estimate="1")


class DoubtfulCosts(Stage):
    def test_a_cost_far_above_its_tokens_is_booked_and_pauses_and_denies_nothing(self, scene: Scene) -> None:
        budget(scene)
        key, other = scene.add(), scene.add()
        receipt = scene.take(key)
        answer = report(scene, receipt, "99999", fresh=MILLION)  # worth $3: $30 are believed
        assert (answer.outcome, answer.state) == ("OK", "running")
        assert answer.directive == "continue"
        assert shown(scene, key) == ("99999.00", "99969.00", None)
        assert spent(scene) == 3000
        assert scene.claim(other).outcome == "GRANTED"
        assert scene.row(Budget, "project").alerts.keys() == {"50"}

    def test_every_scope_counts_and_shows_the_same(self, scene: Scene) -> None:
        key = scene.add(constraints={"max_cost_usd": "100"})
        task = scene.task(key)
        for scope in ("tenant", "project", "agent:ann"):
            budget(scene, scope, "200")
        receipt = scene.take(key)
        report(scene, receipt, "80", fresh=MILLION)
        for scope in ("tenant", "project", "agent:ann", f"task:{key}"):
            seen = ask(scene, q.ShowBudget, scope=scope)
            assert (seen["consumed"], seen["doubtful"]) == ("30.00", "50.00")
            assert ask(scene, q.ShowProjection, scope=scope)["consumed"] == "30.00"
        scene.do(c.ConfirmUsage, task=key)
        for id in ("tenant", "project", "agent:ann", f"task:{task.id}"):
            assert spent(scene, id) == 8000
        assert "doubtful" not in ask(scene, q.ShowBudget, scope="project")

    def test_many_small_reports_are_one_large_one(self, scene: Scene) -> None:
        budget(scene)
        key = scene.add()
        receipt = scene.take(key)
        for number in range(40):
            report(scene, receipt, "0.90", model=f"model-{number}")
        # Without tokens the task is the measure: of unknown size it is worth a dollar.
        assert shown(scene, key)[:2] == ("36.00", "26.00")
        assert spent(scene) == 1000
        doubts = [e for e in scene.events() if e.kind == "task.usage_doubted"]
        assert len(doubts) == 1

    @pytest.mark.parametrize(
        ("constraints", "believed"), [({}, 1000), ({"max_cost_usd": "0.50"}, 500), ({"max_cost_usd": "3"}, 3000)]
    )
    def test_a_cost_without_tokens_is_measured_by_what_the_task_may_cost(
        self, scene: Scene, constraints: dict[str, Any], believed: int
    ) -> None:
        budget(scene, usd="1000")
        receipt = scene.take(scene.add(constraints=constraints))
        report(scene, receipt, "200")
        assert spent(scene) == believed

    def test_tokens_of_a_model_without_a_price_count_as_those_of_the_dearest(self, scene: Scene) -> None:
        budget(scene, usd="1000")
        receipt = scene.take(scene.add())
        report(scene, receipt, "40", model="of-a-house", fresh=2 * MILLION)
        assert spent(scene) == 4000
        report(scene, receipt, "99000", model="of-a-house", fresh=2 * MILLION)
        assert 4000 < spent(scene) < 50_000

    def test_a_small_cost_is_never_doubted(self, scene: Scene) -> None:
        budget(scene)
        key = scene.add()
        report(scene, scene.take(key), "1.00", fresh=10)
        assert shown(scene, key) == ("1.00", None, None)
        assert spent(scene) == 100

    def test_tokens_that_are_reported_later_lift_the_doubt(self, scene: Scene) -> None:
        budget(scene)
        key = scene.add()
        receipt = scene.take(key)
        report(scene, receipt, "25", fresh=1000)
        assert spent(scene) == 100
        answer = report(scene, receipt, "25", fresh=MILLION)
        assert answer.usage is not None
        assert "doubtful_usd" not in answer.usage
        assert spent(scene) == 2500
        assert ask(scene, q.Todo) == []

    def test_a_report_that_comes_again_adds_no_doubt(self, scene: Scene) -> None:
        budget(scene)
        key = scene.add()
        receipt = scene.take(key)
        first = report(scene, receipt, "500", fresh=MILLION, request_id="r-1")
        again = report(scene, receipt, "500", fresh=MILLION, request_id="r-1")
        assert (first.usage, again.again) == (again.usage, True)
        report(scene, receipt, "500", fresh=MILLION)
        assert shown(scene, key)[:2] == ("500.00", "470.00")
        assert spent(scene) == 3000

    def test_a_person_confirms_and_the_budget_counts_it(self, scene: Scene) -> None:
        budget(scene)
        key = scene.add()
        receipt = scene.take(key)
        report(scene, receipt, "80", fresh=MILLION)
        (entry,) = ask(scene, q.Todo)
        assert (entry["what"], entry["key"]) == ("doubtful cost", key)
        assert entry["do"] == ("usage confirm", "usage reject")
        assert entry["text"].startswith("$50.00 of its reported cost is far above its tokens")
        done = scene.do(c.ConfirmUsage, task=key)
        assert done.outcome == "UPDATED"
        assert done.message == f"$50.00 that {key} reported is confirmed: it counts in its budgets"
        assert shown(scene, key) == ("80.00", None, None)
        assert spent(scene) == 8000
        assert ask(scene, q.Todo) == []
        assert report(scene, receipt, "80", fresh=MILLION).directive == "pause"
        event = next(e for e in scene.events() if e.kind == "task.usage_confirmed")
        assert event.details["amount_usd"] == "50.00"

    def test_what_was_confirmed_is_not_doubted_again_and_what_comes_after_it_is(self, scene: Scene) -> None:
        budget(scene, usd="1000")
        key = scene.add()
        receipt = scene.take(key)
        report(scene, receipt, "80", fresh=MILLION)
        scene.do(c.ConfirmUsage, task=key)
        report(scene, receipt, "80", fresh=MILLION)
        assert spent(scene) == 8000
        report(scene, receipt, "81", fresh=MILLION)
        assert shown(scene, key)[:2] == ("81.00", "1.00")
        assert spent(scene) == 8000

    def test_what_a_person_rejects_was_not_spent_however_often_it_is_reported(self, scene: Scene) -> None:
        budget(scene)
        key = scene.add()
        receipt = scene.take(key)
        report(scene, receipt, "80", fresh=MILLION)
        done = scene.do(c.RejectUsage, task=key)
        assert "was not spent" in done.message
        assert shown(scene, key) == ("30.00", None, "50.00")
        report(scene, receipt, "80", fresh=MILLION)
        assert shown(scene, key) == ("30.00", None, "50.00")
        assert spent(scene) == 3000
        assert ask(scene, q.Todo) == []
        assert scene.do(c.RejectUsage, task=key).outcome == "UNCHANGED"

    def test_a_decision_is_taken_back_by_the_other_one_and_by_undo(self, scene: Scene) -> None:
        budget(scene)
        key = scene.add()
        receipt = scene.take(key)
        report(scene, receipt, "80", fresh=MILLION)
        rejected = scene.do(c.RejectUsage, task=key)
        assert scene.do(c.Undo, command_id=rejected.command_id).outcome == "UPDATED"
        assert shown(scene, key) == ("80.00", "50.00", None)
        assert spent(scene) == 3000
        scene.do(c.ConfirmUsage, task=key)
        assert report(scene, receipt, "80", fresh=MILLION).directive == "pause"
        scene.do(c.RejectUsage, task=key)  # the budget has money again, so the task goes on
        assert shown(scene, key) == ("30.00", None, "50.00")
        assert (spent(scene), scene.state(key)) == (3000, "ready")

    def test_only_who_sets_budgets_decides_and_never_the_agent_that_reported_it(self, scene: Scene) -> None:
        key = scene.add()
        served = Principal(role="agent", agent="ann", key="key-ann", address="10.0.0.7", user="ann")
        grant = scene.do(c.ClaimTask, by=served, task=key, agent="ann", session="s")
        receipt = grant.receipt or ""
        scene.do(c.ReportUsage, by=served, receipt=receipt, model=PRICED, cost_usd="80", fresh=MILLION)
        refused = (
            AGENT, Principal(role="member", user="bea"), served,
            Principal(role="admin", agent="ann", key="key-2", address="10.0.0.7", user="bea"),
            Principal(role="owner", key="key-ann", address="10.0.0.7", user="bea"),
        )  # fmt: skip
        for by in refused:
            for command in (c.ConfirmUsage, c.RejectUsage):
                with pytest.raises(NotAllowed):
                    scene.do(command, by=by, task=key)
        admin = Principal(role="admin", user="bea")
        done = scene.do(c.RejectUsage, by=admin, task=key)
        scene.do(c.DefineProject, agents_may_operate=True)
        for by in (Principal(role="agent", agent="cy", user="bea"), Principal(role="member", user="bea")):
            with pytest.raises(NotAllowed):  # she was an admin when she rejected it
                scene.do(c.Undo, by=by, command_id=done.command_id)
        assert shown(scene, key) == ("30.00", None, "50.00")

    def test_a_zombies_doubtful_cost_counts_above_its_task_when_confirmed(self, scene: Scene) -> None:
        budget(scene, usd="1000")
        key = scene.add(constraints={"max_cost_usd": "100"})
        stale = scene.take(key)
        scene.do(c.Release, receipt=stale)
        scene.take(key, "bo")
        assert report(scene, stale, "80", fresh=MILLION).late
        own = f"task:{scene.task(key).id}"
        assert (spent(scene), spent(scene, own)) == (3000, 0)
        scene.do(c.ConfirmUsage, task=key, generation=1)
        assert (spent(scene), spent(scene, own)) == (8000, 0)

    def test_a_budget_that_is_set_later_does_not_know_the_doubtful_part(self, scene: Scene) -> None:
        key = scene.add()
        report(scene, scene.take(key), "80", fresh=MILLION)
        budget(scene)
        budget(scene, f"task:{key}")
        row = scene.row(Budget, "project")
        assert (row.earlier // CENT, row.consumed) == (3000, 0)
        assert spent(scene, f"task:{scene.task(key).id}") == 3000
        scene.do(c.ConfirmUsage, task=key)
        assert spent(scene) == 5000

    def test_estimates_do_not_learn_from_a_doubtful_cost(self, scene: Scene) -> None:
        budget(scene, usd="1000")
        for _ in range(5):
            receipt = scene.take(scene.add())
            scene.submit(receipt, usage=(Totals(model=PRICED, fresh=MILLION, cost_usd="90000"),))
        (typical,) = scene.row(Project, PROJECT).typical.values()
        assert 3000 * CENT in typical

    def test_doubt_keeps_a_task_out_of_the_archive(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.submit(receipt, usage=(Totals(model=PRICED, fresh=MILLION, cost_usd="80"),))
        churning(scene)
        assert moved(scene) == 0
        scene.do(c.RejectUsage, task=key)
        scene.pass_time(seconds=1)
        assert moved(scene) == 1
        totals = ask(scene, q.ShowSpending, by="model")
        assert (totals[0]["cost_usd"], totals[0]["rejected_usd"]) == ("30.00", "50.00")

"""Budgets: what claims reserve, spend and give back, exactly, however many claim at once and however a claim ends."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask, Principal, Totals
from tenure.core.outcomes import Outcome
from tenure.core.records import Budget, Claim, Project, Usage
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene, code_of

CENT = 10_000_000  # in nano-dollars
DOLLAR = 100 * CENT


def set_budget(scene: Scene, scope: str = "project", **fields: Any) -> Outcome:
    return scene.do(c.SetBudget, scope=scope, **fields)


def spend(scene: Scene, receipt: str, cost: str | None = None, **fields: Any) -> Outcome:
    """A cost comes with tokens that are worth it, and that no budget in tokens counts."""
    if cost is not None:
        fields.setdefault("cached", 10**9)
    return scene.do(c.ReportUsage, by=AGENT, receipt=receipt, model="x", cost_usd=cost, **fields)


def counts(scene: Scene, id: str = "project") -> tuple[int, int]:
    """What is spent and reserved, in cents."""
    row = scene.row(Budget, id, "" if id == "tenant" else PROJECT)
    return row.consumed // CENT, row.reserved // CENT


class Budgets(Stage):
    # --- reserving ------------------------------------------------------------------------------------------------

    def test_a_claim_reserves_and_a_result_settles_exactly(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="2")
        receipt = scene.take(scene.add())
        assert counts(scene) == (0, 200)
        spend(scene, receipt, "0.50")
        assert counts(scene) == (50, 150)
        spend(scene, receipt, "0.75")
        assert counts(scene) == (75, 125)
        scene.submit(receipt, usage=(Totals(model="x", cost_usd="0.80"),))
        assert counts(scene) == (80, 0)

    def test_what_is_missing_is_told_with_what_to_do(self, scene: Scene) -> None:
        set_budget(scene, usd="3", default_estimate="2")
        first, second = scene.add(), scene.add()
        scene.take(first)
        denied = scene.claim(second)
        assert (denied.outcome, denied.state) == ("DENIED_BUDGET", "ready")
        assert "would reserve $2.00; budget project has $1.00 left ($0.00 spent, $2.00 reserved)" in denied.message
        assert denied.shortage is not None
        assert (denied.shortage["scope"], denied.shortage["missing"]) == ("project", "1.00")
        assert "raise it by $1.00" in (denied.hint or "")
        assert scene.task(second).generation == 0
        assert counts(scene) == (0, 200)

    def test_the_last_cent_can_be_reserved_and_no_more(self, scene: Scene) -> None:
        set_budget(scene, usd="3", default_estimate="1")
        keys = [scene.add() for _ in range(4)]
        assert [scene.claim(key).outcome for key in keys] == ["GRANTED"] * 3 + ["DENIED_BUDGET"]
        assert counts(scene) == (0, 300)

    def test_what_a_task_may_cost_is_reserved(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="1")
        scene.take(scene.add(constraints={"max_cost_usd": "4.50"}))
        assert counts(scene) == (0, 450)
        assert code_of(scene.claim(scene.add(constraints={"max_cost_usd": 6}))) == "DENIED_BUDGET"

    def test_a_budget_in_tokens_reserves_what_the_task_is_estimated_at(self, scene: Scene) -> None:
        set_budget(scene, tokens=10_000, default_estimate="1000")
        receipt = scene.take(scene.add(constraints={"estimated_tokens": 6000}))
        assert scene.row(Budget, "project").reserved == 6000
        spend(scene, receipt, fresh=1000, cached=50_000, written=200, output=300)
        row = scene.row(Budget, "project")
        assert (row.consumed, row.reserved) == (1500, 4500)
        denied = scene.claim(scene.add(constraints={"estimated_tokens": 4001}))
        assert "would reserve 4,001 tokens" in denied.message

    def test_a_task_counts_in_every_scope(self, scene: Scene) -> None:
        (key,) = scene.plan(NewTask(title="one", constraints={"max_cost_usd": "1"}))
        dag = scene.task(key).dag
        scopes = ["tenant", "project", f"dag:{dag}", "agent:ann"]
        for scope in scopes:
            set_budget(scene, scope, usd="5", default_estimate="2")
        receipt = scene.take(key)
        everywhere = [*scopes, f"task:{scene.task(key).id}"]
        assert {counts(scene, id) for id in everywhere} == {(0, 100)}
        spend(scene, receipt, "0.25")
        assert {counts(scene, id) for id in everywhere} == {(25, 75)}
        scene.do(c.Release, receipt=receipt)
        assert {counts(scene, id) for id in everywhere} == {(25, 0)}

    def test_the_narrowest_scope_decides(self, scene: Scene) -> None:
        set_budget(scene, usd="100", default_estimate="1")
        set_budget(scene, "agent:bo", usd="1", default_estimate="1")
        one, two, three = scene.add(), scene.add(), scene.add()
        scene.take(one, "bo")
        denied = scene.claim(two, "bo")
        assert denied.shortage is not None
        assert denied.shortage["scope"] == "agent:bo"
        assert counts(scene) == (0, 100)  # nothing was reserved in the others
        scene.take(two, "ann")
        assert scene.next("bo").outcome == "NO_TASK"
        assert scene.next("ann").task is not None
        assert scene.state(three) == "claimed"

    def test_no_project_knows_of_anothers_budget(self, scene: Scene) -> None:
        set_budget(scene, usd="1", default_estimate="1")
        scene.do(c.DefineProject, project="other")
        scene.do(c.Add, project="other", task=NewTask(title="x"))
        scene.take(scene.add())
        assert scene.do(c.ClaimNext, project="other", agent="zoe", session="z").outcome == "GRANTED"
        assert counts(scene) == (0, 100)

    def test_the_tenants_budget_counts_in_every_project_also_in_new_ones(self, scene: Scene) -> None:
        set_budget(scene, "tenant", usd="2", default_estimate="1")
        scene.do(c.DefineProject, project="other")
        for project in (PROJECT, "other"):
            for _ in range(2):
                scene.do(c.Add, project=project, task=NewTask(title="x"))
        take = [scene.do(c.ClaimNext, project=p, agent="a", session=f"s-{p}") for p in (PROJECT, "other", "other")]
        assert [answer.outcome for answer in take] == ["GRANTED", "GRANTED", "NO_TASK"]
        assert counts(scene, "tenant") == (0, 200)
        scene.do(c.Release, project="other", receipt=take[1].receipt or "")
        assert counts(scene, "tenant") == (0, 100)

    def test_who_may_see_some_projects_is_not_told_what_the_others_spend(self, scene: Scene) -> None:
        set_budget(scene, "tenant", usd="1.23", default_estimate="1")
        keys = [scene.add(), scene.add()]
        scene.take(keys[0])
        narrow = Principal(role="member", projects=(PROJECT,))
        denied = scene.do(c.ClaimTask, by=narrow, task=keys[1], agent="bo", session="b")
        assert denied.outcome == "DENIED_BUDGET"
        assert "$" not in denied.message + str(denied.shortage)
        assert "$" not in (denied.hint or "")
        admin = Principal(role="admin", projects=(PROJECT,))
        assert code_of(scene.try_to(c.SetBudget, by=admin, scope="tenant", usd="9")) == "NOT_ALLOWED"

    # --- giving back ----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "ended_by",
        ["submit", "fail", "release", "expire", "cancel", "pause", "recover", "reassign", "abort", "leave", "gone",
         "new epoch", "question", "wait", "edit", "terminate", "adopt"],
    )  # fmt: skip
    def test_however_a_claim_ends_what_it_did_not_use_is_free_again(self, scene: Scene, ended_by: str) -> None:
        set_budget(scene, usd="10", default_estimate="2")
        process = c.Process(host="h", boot="b", pid=7, start=1)
        key = scene.add(constraints={"max_cost_usd": "3"})
        id = scene.task(key).id
        receipt = scene.take(key, lease=60, process=process)
        scene.take(scene.add(), "bo", lease=600)
        spend(scene, receipt, "0.40")
        assert (counts(scene), counts(scene, f"task:{id}")) == ((40, 260 + 200), (40, 260))

        def adopt() -> None:
            scene.submit(receipt, data=1)
            scene.do(c.Reset, task=key)
            scene.take(key, "cy")
            scene.do(c.Recover, task=key)

        endings: dict[str, Callable[[], object]] = {
            "submit": lambda: scene.submit(receipt),
            "fail": lambda: scene.fail(receipt),
            "release": lambda: scene.do(c.Release, receipt=receipt),
            "expire": lambda: scene.pass_time(seconds=61),
            "cancel": lambda: scene.do(c.Cancel, task=key),
            "pause": lambda: scene.do(c.Pause, task=key),
            "recover": lambda: scene.do(c.Recover, task=key),
            "reassign": lambda: scene.know("cy").do(c.Reassign, task=key, agent="cy"),
            "abort": lambda: scene.do(c.Abort, task=key),
            "leave": lambda: scene.do(c.Leave, session="s-ann"),
            "gone": lambda: scene.do(c.Gone, processes=(process,)),
            "new epoch": lambda: scene.engine.new_epoch("restored"),
            "question": lambda: scene.do(c.Ask, receipt=receipt, question="which?"),
            "wait": lambda: scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="sub"),), wait=True),
            "edit": lambda: scene.do(c.Edit, task=key, changes={"spec": {"prompt": "other"}}, supersede=True),
            "terminate": lambda: scene.do(c.Terminate, agent="ann", graceful=False),
            "adopt": adopt,
        }
        endings[ended_by]()
        held = 0 if ended_by == "new epoch" else 200
        scene.engine.sweep()
        assert (counts(scene), counts(scene, f"task:{id}")) == ((40, held), (40, 0))
        assert scene.lineage(key)[0].funds is None

    def test_a_budget_that_was_raised_or_lowered_meanwhile_gets_back_what_was_taken(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="2")
        receipt = scene.take(scene.add())
        set_budget(scene, usd="1", default_estimate="5")
        assert counts(scene) == (0, 200)
        scene.do(c.Release, receipt=receipt)
        assert counts(scene) == (0, 0)

    def test_a_budget_that_was_removed_meanwhile_gets_nothing_back(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="2")
        receipt = scene.take(scene.add())
        scene.do(c.RemoveBudget)
        set_budget(scene, usd="5", default_estimate="1")
        scene.do(c.Release, receipt=receipt)
        assert counts(scene) == (0, 0)

    # --- spending -------------------------------------------------------------------------------------------------

    def test_usage_is_booked_whatever_the_ceiling(self, scene: Scene) -> None:
        set_budget(scene, usd="1", default_estimate="1")
        receipt = scene.take(scene.add())
        assert spend(scene, receipt, "7").outcome == "OK"
        assert counts(scene) == (700, 0)

    def test_a_report_that_comes_twice_is_counted_once(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="2")
        receipt = scene.take(scene.add())
        for cost in ("0.5", "0.5", "0.3", "0.6"):
            spend(scene, receipt, cost)
        assert counts(scene) == (60, 140)

    def test_a_zombies_usage_is_late_and_touches_no_live_reservation(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="2")
        key = scene.add(constraints={"max_cost_usd": "3"})
        own = f"task:{scene.task(key).id}"
        old = scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=61)
        new = scene.take(key, "bo")
        live = scene.last_claim(key).funds
        assert spend(scene, old, "0.90").late is True
        assert scene.last_claim(key).funds == live
        assert (counts(scene), counts(scene, own)) == ((90, 300), (0, 300))
        scene.submit(new, usage=(Totals(model="x", cost_usd="0.10"),))
        assert (counts(scene), counts(scene, own)) == ((100, 0), (10, 0))

    def test_a_lapsed_claim_that_may_submit_late_books_without_a_reservation(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="2")
        receipt = scene.take(scene.add(), lease=60)
        scene.pass_time(seconds=61)
        assert spend(scene, receipt, "0.30").late is None
        assert counts(scene) == (30, 0)

    def test_what_an_agent_does_not_price_is_priced_by_the_table(self, scene: Scene) -> None:
        set_budget(scene, usd="10", default_estimate="2")
        key = scene.add()
        receipt = scene.take(key)
        outcome = scene.do(c.ReportUsage, receipt=receipt, model="claude-opus-4-6", fresh=100_000, output=10_000)
        (row,) = scene.rows(Usage)
        assert row.computed
        assert row.cost is not None
        assert scene.row(Budget, "project").consumed == row.cost
        assert (outcome.usage or {})["computed_usd"] == (outcome.usage or {})["cost_usd"]
        scene.do(c.ReportUsage, receipt=receipt, model="claude-opus-4-6", fresh=100_000, output=10_000, cost_usd="0.01")
        (row,) = scene.rows(Usage)
        assert (row.cost, row.computed) == (CENT, False)
        assert counts(scene)[0] == 1

    # --- at once --------------------------------------------------------------------------------------------------

    def test_however_many_claim_at_once_no_more_is_reserved_than_there_is(self, scene: Scene) -> None:
        set_budget(scene, usd="7", default_estimate="1")
        keys = [scene.add() for _ in range(16)]
        start = Barrier(8)
        answers: list[str] = []

        def claim(n: int) -> None:
            start.wait()
            answers.extend(scene.claim(key, f"a{n}").outcome for key in keys[n::8])

        threads = [Thread(target=claim, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == ["DENIED_BUDGET"] * 9 + ["GRANTED"] * 7
        assert counts(scene) == (0, 700)

    def test_projects_that_claim_at_once_share_the_tenants_budget(self, scene: Scene) -> None:
        names = ["one", "two", "three", "four"]
        for name in names:
            scene.do(c.DefineProject, project=name)
            scene.run(*[c.Add(project=name, task=NewTask(title="x"))] * 4)
        set_budget(scene, "tenant", usd="6", default_estimate="1")
        start = Barrier(len(names))
        answers: list[str] = []

        def claim(name: str) -> None:
            start.wait()
            asked = c.ClaimNext(project=name, agent="a", session=f"s-{name}")
            answers.extend(scene.engine.do(asked).outcome for _ in range(4))

        threads = [Thread(target=claim, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == ["GRANTED"] * 6 + ["NO_TASK"] * 10
        assert counts(scene, "tenant") == (0, 600)

    def test_a_batch_reserves_as_its_commands_would_one_by_one(self, scene: Scene) -> None:
        set_budget(scene, usd="3", default_estimate="1")
        for _ in range(5):
            scene.add()
        batch = [c.ClaimNext(project=PROJECT, agent=f"a{n}", session=f"s{n}") for n in range(5)]
        assert [code_of(answer) for answer in scene.run(*batch)] == ["GRANTED"] * 3 + ["NO_TASK"] * 2
        assert counts(scene) == (0, 300)
        assert len([claim for claim in scene.rows(Claim) if claim.funds]) == 3

    def test_a_project_without_budgets_carries_no_mark(self, scene: Scene) -> None:
        scene.take(scene.add())
        row = scene.row(Project, PROJECT)
        assert (row.funded, row.set_aside) == ((), {})
        set_budget(scene, usd="1")
        scene.do(c.RemoveBudget)
        assert scene.row(Project, PROJECT).funded == ()

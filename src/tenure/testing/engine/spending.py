"""Usage: booked once however often it is reported, whoever holds the task by then, and by genuine receipts alone."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import Totals
from tenure.core.outcomes import Outcome
from tenure.core.records import Budget, Usage, replace
from tenure.engine.reads import tasks
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene, code_of, forged

CENT = 10_000_000  # in nano-dollars


def report(scene: Scene, receipt: str, model: str = "opus", **totals: Any) -> Outcome:
    return scene.do(c.ReportUsage, by=AGENT, receipt=receipt, model=model, **totals)


def kept(scene: Scene, **where: Any) -> list[tuple[int, str, bool, int, int, int | None]]:
    """(generation, model, late, fresh, output, cost) of each row."""
    rows = scene.rows(Usage, **where)
    return sorted((r.generation, r.model, r.late, r.fresh, r.output, r.cost) for r in rows)


def superseded(scene: Scene, key: str) -> tuple[str, str]:
    """The receipts of a claim that was overtaken, and of the one that overtook it."""
    old = scene.take(key, "ann", lease=60)
    scene.pass_time(seconds=60)
    return old, scene.take(key, "bo")


def sums(scene: Scene, by: str) -> dict[str, tuple[int, str | None]]:
    """(fresh, cost) of each."""
    return {row[by]: (row["fresh"], row["cost_usd"]) for row in look(scene, tasks.usage, by=by)}


class Spending(Stage):
    # --- running totals -------------------------------------------------------------------------------------------

    def test_a_report_that_comes_again_or_late_neither_doubles_nor_lowers(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        for fresh, output, cost in ((100, 5, "0.01"), (100, 5, "0.01"), (300, 4, "0.02"), (200, 9, None), (0, 0, "0")):
            assert report(scene, receipt, fresh=fresh, output=output, cost_usd=cost).outcome == "OK"
        assert kept(scene) == [(1, "opus", False, 300, 9, 2 * CENT)]

    def test_models_and_claims_are_added_up(self, scene: Scene) -> None:
        key = scene.add()
        old = scene.take(key, lease=60)
        report(scene, old, fresh=1, cached=10, written=100, output=1000, cost_usd="0.10", duration=1.5)
        report(scene, old, "haiku", fresh=2, cost_usd="0.20")
        scene.pass_time(seconds=60)
        new = scene.take(key, "bo")
        answer = report(scene, new, fresh=4, cost_usd="0.30", duration=2)
        assert (answer.usage or {})["cost_usd"] == "0.30"
        assert shown(scene, key)["usage"] == {
            "fresh": 7,
            "cached": 10,
            "written": 100,
            "output": 1000,
            "cost_usd": "0.60",
            "unpriced": 0,
            "duration": 3.5,
            "models": ["haiku", "opus"],
            "reported_at": scene.now,
        }

    def test_a_report_writes_no_event(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        scene.do(c.Start, receipt=receipt)
        before = scene.events()
        report(scene, receipt, fresh=5)
        assert scene.events() == before

    def test_a_report_that_says_nothing_new_leaves_its_row_alone(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        report(scene, receipt, fresh=5, cost_usd="1")
        before = scene.rows(Usage)
        scene.pass_time(seconds=60)
        report(scene, receipt, fresh=4, cost_usd="1.00")
        assert scene.rows(Usage) == before

    def test_what_nobody_priced_is_told_apart(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        report(scene, receipt, fresh=5)
        assert (shown(scene, key)["usage"]["cost_usd"], shown(scene, key)["usage"]["unpriced"]) == (None, 1)
        report(scene, receipt, "haiku", fresh=5, cost_usd="0.5")
        spent = shown(scene, key)["usage"]
        assert (spent["cost_usd"], spent["unpriced"]) == ("0.50", 1)
        report(scene, receipt, fresh=5, cost_usd="0")
        spent = shown(scene, key)["usage"]
        assert (spent["cost_usd"], spent["unpriced"]) == ("0.50", 0)

    def test_money_is_exact(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        for n in range(10):
            report(scene, receipt, f"m{n}", cost_usd="0.1")
        report(scene, receipt, "tiny", cost_usd="0.000000001")
        assert shown(scene, key)["usage"]["cost_usd"] == "1.000000001"

    def test_reports_that_race_leave_the_highest(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        answers: list[Outcome] = []

        def send(first: int) -> None:
            answers.extend(
                report(scene, receipt, fresh=n, output=40 - n, cost_usd=f"0.{n:02d}") for n in range(first, 40, 4)
            )

        threads = [Thread(target=send, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {a.outcome for a in answers} == {"OK"}
        assert len(answers) == 40
        assert kept(scene) == [(1, "opus", False, 39, 40, 39 * CENT)]

    def test_a_claim_has_at_most_a_hundred_models(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        for n in range(100):
            report(scene, receipt, f"m{n}")
        report(scene, receipt, "m0", fresh=1)
        answer = scene.try_to(c.ReportUsage, receipt=receipt, model="one more", fresh=1)
        assert code_of(answer) == "TOO_LARGE"
        assert len(kept(scene)) == 100

    # --- operations ---------------------------------------------------------------------------------------------

    def test_operations_are_parts_of_a_models_total(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        report(scene, receipt, fresh=300, cost_usd="0.90")
        for _ in range(2):
            answer = report(scene, receipt, fresh=100, cost_usd="0.30", operation="review")
            assert (answer.usage or {})["cost_usd"] == "0.90"
        spent = shown(scene, key)["usage"]
        assert (spent["fresh"], spent["cost_usd"], spent["operations"]) == (300, "0.90", ["review"])
        report(scene, receipt, fresh=350, cost_usd="1.00", operation="tests")
        assert sums(scene, "operation") == {"": (0, "0.00"), "review": (100, "0.30"), "tests": (350, "1.00")}
        assert sums(scene, "model") == {"opus": (450, "1.30")}

    def test_operations_are_summed_over_tasks_and_models(self, scene: Scene) -> None:
        for model, cost in (("opus", "0.25"), ("haiku", "0.50")):
            usage = (Totals(model=model, fresh=10, cost_usd=cost, operation="review"), Totals(model="x", fresh=1))
            scene.submit(scene.take(scene.add()), usage=usage)
        assert sums(scene, "operation") == {"review": (20, "0.75"), "": (2, None)}

    def test_an_operation_is_booked_once_in_a_budget(self, scene: Scene) -> None:
        scene.do(c.SetBudget, usd="10", default_estimate="1")
        receipt = scene.take(scene.add())
        report(scene, receipt, cost_usd="2")
        report(scene, receipt, cost_usd="1.5", operation="review")
        assert [row.consumed for row in scene.rows(Budget)] == [200 * CENT]
        report(scene, receipt, cost_usd="3", operation="review")
        assert [row.consumed for row in scene.rows(Budget)] == [300 * CENT]

    def test_an_operation_that_is_named_late_adds_nothing_to_a_total_that_was_reported_in_time(
        self, scene: Scene
    ) -> None:
        scene.do(c.SetBudget, usd="10", default_estimate="1")
        key = scene.add()
        receipt = scene.take(key)
        report(scene, receipt, fresh=300, cached=10**6, cost_usd="0.90")
        scene.do(c.Recover, task=key)
        report(scene, receipt, fresh=100, cost_usd="0.30", operation="review")
        assert sums(scene, "operation") == {"": (200, "0.60"), "review": (100, "0.30")}
        assert shown(scene, key)["usage"].get("late") is None
        report(scene, receipt, fresh=350, cost_usd="1.00", operation="tests")
        assert sums(scene, "model") == {"opus": (450, "1.30")}
        assert shown(scene, key)["usage"]["late"]["fresh"] == 150
        assert [row.consumed for row in scene.rows(Budget)] == [130 * CENT]

    # --- whose receipt --------------------------------------------------------------------------------------------

    def test_a_lapsed_claim_books_in_time_while_it_may_submit_late(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        answer = report(scene, receipt, fresh=7)
        assert (answer.outcome, answer.late, scene.state(key)) == ("OK", None, "ready")
        assert kept(scene) == [(1, "opus", False, 7, 0, None)]

    def test_a_superseded_holder_books_late_on_its_own_generation(self, scene: Scene) -> None:
        key = scene.add()
        old, new = superseded(scene, key)
        before = scene.task(key)
        answer = report(scene, old, fresh=9, cost_usd="0.09")
        assert (answer.outcome, answer.late, answer.directive) == ("OK", True, "abort")
        assert (answer.generation, answer.current_generation) == (1, 2)
        assert "generation 2 is held by agent bo" in answer.message
        assert scene.task(key) == before
        assert report(scene, new, fresh=1, cost_usd="0.01").late is None
        assert kept(scene) == [(1, "opus", True, 9, 0, 9 * CENT), (2, "opus", False, 1, 0, CENT)]

    def test_only_what_goes_beyond_the_timely_part_is_late(self, scene: Scene) -> None:
        key = scene.add()
        old = scene.take(key, "ann", lease=60)
        report(scene, old, fresh=10, output=3, cost_usd="0.10")
        scene.pass_time(seconds=61)
        scene.take(key, "bo")
        for _ in range(2):
            assert report(scene, old, fresh=15, output=2, cost_usd="0.12").late is True
        assert kept(scene) == [(1, "opus", False, 10, 3, 10 * CENT), (1, "opus", True, 5, 0, 2 * CENT)]
        spent = shown(scene, key)["usage"]
        assert (spent["fresh"], spent["cost_usd"]) == (15, "0.12")
        assert (spent["late"]["fresh"], spent["late"]["cost_usd"]) == (5, "0.02")

    def test_a_window_that_opens_again_books_nothing_twice(self, scene: Scene) -> None:
        upstream = scene.add()
        key = scene.add(depends_on=(upstream,))
        scene.finish(upstream)
        receipt = scene.take(key, lease=60)
        report(scene, receipt, fresh=1, cost_usd="0.01")
        scene.do(c.Reset, task=upstream)
        scene.pass_time(seconds=61)
        assert scene.state(key) == "pending"
        assert report(scene, receipt, fresh=5, cost_usd="0.05").late is True
        scene.finish(upstream)
        assert scene.state(key) == "ready"
        assert report(scene, receipt, fresh=9, cost_usd="0.09").late is None
        assert kept(scene) == [(1, "opus", False, 5, 0, 5 * CENT), (1, "opus", True, 4, 0, 4 * CENT)]

    @pytest.mark.parametrize("ended_by", ["release", "fail", "cancel", "complete", "new epoch", "recover"])
    def test_a_claim_that_has_ended_books_late(self, scene: Scene, ended_by: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        endings: dict[str, Callable[[], object]] = {
            "release": lambda: scene.do(c.Release, receipt=receipt),
            "fail": lambda: scene.fail(receipt),
            "cancel": lambda: scene.do(c.Cancel, task=key),
            "complete": lambda: scene.submit(receipt),
            "new epoch": lambda: scene.engine.new_epoch("restored"),
            "recover": lambda: scene.do(c.Recover, task=key),
        }
        endings[ended_by]()
        before = scene.task(key)
        answer = report(scene, receipt, fresh=3)
        assert (answer.outcome, answer.late) == ("OK", True)
        assert answer.directive
        assert scene.task(key) == before
        assert kept(scene) == [(1, "opus", True, 3, 0, None)]

    def test_a_forged_receipt_books_nothing(self, scene: Scene) -> None:
        key = scene.add()
        old, new = superseded(scene, key)
        nonce = scene.last_claim(key).nonce
        forgeries = [
            forged(new, nonce=bytes(16)), forged(old, nonce=bytes(16)), forged(old, nonce=nonce),
            forged(new, generation=3), forged(new, generation=10**17), forged(new, generation=0),
            forged(new, epoch="00000000"), forged(new, name="A-999"),
            *(forged(new, nonce=nonce[:at] + bytes([nonce[at] ^ 1]) + nonce[at + 1 :]) for at in range(16)),
        ]  # fmt: skip
        before = scene.tables()
        for receipt in forgeries:
            for answer in (
                report(scene, receipt, fresh=3),
                scene.do(c.Submit, by=AGENT, receipt=receipt, data=1, usage=(Totals(model="opus", fresh=3),)),
            ):
                assert not answer.ok
                assert answer.usage is None
        assert scene.tables() == before

    def test_a_report_starts_the_work_and_renews_the_lease(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=59)
        report(scene, receipt)
        assert scene.state(key) == "running"
        scene.pass_time(seconds=59)
        assert scene.state(key) == "running"

    def test_a_late_report_renews_nobody(self, scene: Scene) -> None:
        key = scene.add()
        old, _ = superseded(scene, key)
        until = scene.task(key).lease_until
        scene.pass_time(seconds=30)
        report(scene, old, fresh=1)
        assert scene.task(key).lease_until == until

    # --- with a submission ----------------------------------------------------------------------------------------

    def test_a_submission_brings_its_usage(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        usage = (Totals(model="opus", fresh=5, cost_usd="0.05"), Totals(model="haiku", output=2))
        for again in (False, True):
            answer = scene.submit(receipt, usage=usage)
            assert (answer.outcome, answer.again, answer.late) == ("ACCEPTED", again, None)
            assert (answer.usage or {})["cost_usd"] == "0.05"
        assert kept(scene) == [(1, "haiku", False, 0, 2, None), (1, "opus", False, 5, 0, 5 * CENT)]

    def test_a_refused_submission_is_paid_for_all_the_same(self, scene: Scene) -> None:
        key = scene.add()
        old, _ = superseded(scene, key)
        usage = (Totals(model="opus", fresh=5, cost_usd="0.05"),)
        refused = scene.submit(old, usage=usage)
        assert (refused.outcome, refused.work_lost, refused.late) == ("STALE_GENERATION", True, True)
        scene.submit(old, usage=usage)
        assert kept(scene) == [(1, "opus", True, 5, 0, 5 * CENT)]
        assert len(scene.results(key)) == 1

    def test_a_late_result_that_still_counts_books_in_time(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), lease=60)
        scene.pass_time(seconds=61)
        answer = scene.submit(receipt, usage=(Totals(model="opus", fresh=5),))
        assert (answer.outcome, answer.late) == ("ACCEPTED", None)
        assert kept(scene) == [(1, "opus", False, 5, 0, None)]

    def test_usage_that_cannot_be_costs_the_submission_nothing(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        before = scene.tables()
        answer = scene.try_to(c.Submit, receipt=receipt, data=1, usage=(Totals(model="opus", fresh=-1),))
        assert code_of(answer) == "INVALID_INPUT"
        assert scene.tables() == before
        assert scene.submit(receipt).outcome == "ACCEPTED"

    # --- adding up ------------------------------------------------------------------------------------------------

    def test_a_dead_letter_tells_what_each_attempt_has_cost(self, scene: Scene) -> None:
        key = scene.add(max_attempts=2)
        for cost in ("0.25", "0.5"):
            receipt = scene.take(key, "ann")
            report(scene, receipt, output=10, cost_usd=cost)
            scene.fail(receipt, retry_after=0)
        (letter,) = look(scene, tasks.dead_letters)
        assert [attempt["usage"]["cost_usd"] for attempt in letter["history"]] == ["0.25", "0.50"]
        assert (letter["usage"]["cost_usd"], letter["usage"]["output"]) == ("0.75", 20)
        scene.do(c.Retry, task=key)
        scene.bury(key)
        free = look(scene, tasks.dead_letters)[0]
        assert (free["usage"], [attempt["usage"] for attempt in free["history"]]) == (None, [None, None])

    def test_the_lineage_shows_what_each_generation_cost(self, scene: Scene) -> None:
        key = scene.add()
        old, new = superseded(scene, key)
        report(scene, new, fresh=2, cost_usd="0.02")
        assert [h["usage"] and h["usage"]["cost_usd"] for h in look(scene, tasks.history, key)] == [None, "0.02"]
        report(scene, old, fresh=9, cost_usd="0.09")
        first, second = look(scene, tasks.history, key)
        assert (first["usage"]["cost_usd"], first["usage"]["late"]["cost_usd"]) == ("0.09", "0.09")
        assert second["usage"]["cost_usd"] == "0.02"
        assert "late" not in second["usage"]

    def test_the_status_has_the_projects_total_and_no_others(self, scene: Scene) -> None:
        nothing = {
            "fresh": 0, "cached": 0, "written": 0, "output": 0, "cost_usd": None, "unpriced": 0, "duration": 0.0,
        }  # fmt: skip
        assert look(scene, tasks.status)["usage"] == nothing
        scene.do(c.DefineProject, project="other")
        scene.do(c.Add, project="other", task=c.NewTask(title="x"))
        theirs = scene.do(c.ClaimTask, project="other", task="A-001", agent="zoe", session="z").receipt or ""
        scene.do(c.ReportUsage, project="other", receipt=theirs, model="opus", fresh=1000, cost_usd="10")
        assert look(scene, tasks.status)["usage"] == nothing
        old, new = superseded(scene, scene.add())
        report(scene, new, fresh=2, cost_usd="0.02")
        report(scene, old, fresh=9, cost_usd="0.09")
        report(scene, new, "free", output=7)
        total = look(scene, tasks.status)["usage"]
        assert (total["fresh"], total["output"], total["cost_usd"], total["unpriced"]) == (11, 7, "0.11", 1)
        assert (total["late"]["fresh"], total["late"]["cost_usd"]) == (9, "0.09")

    def test_what_was_spent_is_told_by_task_agent_model_and_session(self, scene: Scene) -> None:
        cheap, dear = scene.add("cheap"), scene.add("dear")
        old, new = superseded(scene, dear)
        report(scene, new, "opus", fresh=1, cost_usd="2")
        report(scene, old, "haiku", fresh=50, cost_usd="0.5")
        report(scene, scene.take(cheap, "bo"), "opus", fresh=100, cost_usd="0.1")

        def spent_by(by: str) -> list[tuple[str, str, str | None]]:
            found = look(scene, tasks.usage, by=by)
            return [(f[by], f["cost_usd"], f["late"]["cost_usd"] if "late" in f else None) for f in found]

        assert spent_by("task") == [(dear, "2.50", "0.50"), (cheap, "0.10", None)]
        assert spent_by("agent") == [("bo", "2.10", None), ("ann", "0.50", "0.50")]
        assert spent_by("model") == [("opus", "2.10", None), ("haiku", "0.50", "0.50")]
        assert spent_by("session") == [("s-bo", "2.10", None), ("s-ann", "0.50", "0.50")]
        assert [f["task"] for f in look(scene, tasks.usage, limit=1)] == [dear]
        with pytest.raises(Exception, match="by 'moon' must be one of task, agent, model, operation, session"):
            look(scene, tasks.usage, by="moon")

    def test_without_prices_the_most_tokens_come_first(self, scene: Scene) -> None:
        few, many = scene.add("few"), scene.add("many")
        report(scene, scene.take(few), output=5)
        report(scene, scene.take(many), cached=500)
        assert [f["task"] for f in look(scene, tasks.usage)] == [many, few]

    # --- verify ---------------------------------------------------------------------------------------------------

    def test_usage_of_no_claim_is_found(self, scene: Scene) -> None:
        scene.broken = True
        report(scene, scene.take(scene.add()), fresh=5)
        (row,) = scene.rows(Usage)
        scene.put(None, replace(row, id="stray", generation=9))
        scene.put(row, replace(row, fresh=-1))
        found = scene.engine.verify()
        assert any("stray" in text for text in found)
        assert any("has negative usage" in text for text in found)


def look(scene: Scene, reader: Any, *args: Any, **options: Any) -> Any:
    """What a reading says, settled and without a write."""
    return scene.engine.read_settled((PROJECT,), lambda work: reader(work, PROJECT, *args, **options))


def shown(scene: Scene, key: str) -> dict[str, Any]:
    view: dict[str, Any] = look(scene, tasks.show, key)
    return view

"""Validation after the submission: verdicts under a lease of their own, and what becomes of the result."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput
from tenure.core.outcomes import Outcome
from tenure.core.records import Result, Validation, replace
from tenure.core.validation import MOST_TRIES
from tenure.engine import Engine
from tenure.engine.checks import validation_reads
from tenure.engine.reads import tasks
from tenure.engine.reads import why as why_reads
from tenure.testing.engine.spending import look, shown
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Dice, Scene, forged

PATTERN = {"validation": "regex", "settings": {"pattern": "^ok"}}
TESTS = {"validation": "test-pass", "settings": {"command": "unit"}}
REVIEW = {"validation": "review"}
# Over HTTP: the address is that of a visitor.
BO = Principal(role="agent", agent="bo", session="s-bo", user="bo", key="k-bo", address="10.0.0.2")
ANN = Principal(role="agent", agent="ann", session="s-ann", user="ann", key="k-ann", address="10.0.0.1")
CHECKER = replace(BO, agent="vera", session="s-vera", user="ci", key="k-ci", capabilities=("checker",))


def handed_in(scene: Scene, output: dict[str, Any] = TESTS, **fields: Any) -> tuple[str, str]:
    """Key and receipt of a task whose result waits for a verdict."""
    key = scene.add(output=output, **fields)
    receipt = scene.take(key)
    assert scene.submit(receipt, "work").outcome == "VALIDATING"
    return key, receipt


def taken(scene: Scene, holder: str = "vera", **fields: Any) -> str:
    outcome = scene.do(c.TakeValidation, checker=holder, **fields)
    assert outcome.outcome == "GRANTED", outcome
    assert outcome.receipt is not None
    return outcome.receipt


def judge(scene: Scene, receipt: str, ok: bool, *reasons: str) -> Outcome:
    return scene.do(c.Judge, receipt=receipt, ok=ok, reasons=reasons)


class Validations(Stage):
    # --- waiting for a verdict ------------------------------------------------------------------------------------

    def test_a_submission_ends_the_claim_and_waits(self, scene: Scene) -> None:
        key, receipt = handed_in(scene)
        (claim,) = scene.lineage(key)
        assert (claim.state, claim.reason, claim.counted, claim.result_accepted) == (
            "released",
            "SUBMITTED",
            True,
            None,
        )
        assert (scene.state(key), scene.task(key).agent) == ("validating", None)
        assert scene.claim(key, "bo").outcome == "DENIED_NOT_READY"
        again = scene.submit(receipt, "work")
        assert (again.outcome, again.again) == ("VALIDATING", True)
        other = scene.submit(receipt, "other work")
        assert (other.outcome, other.work_lost) == ("NO_CLAIM", True)
        assert scene.do(c.Renew, receipt=receipt).outcome == "NO_CLAIM"
        assert [row.state for row in scene.rows(Validation)] == ["open"]

    def test_a_good_verdict_completes_the_task_as_a_submission_does(self, scene: Scene) -> None:
        key, receipt = handed_in(scene)
        below = scene.add(depends_on=(key,))
        assert scene.state(below) == "pending"
        answer = judge(scene, taken(scene), True)
        assert (answer.outcome, answer.state) == ("ACCEPTED", "completed")
        assert scene.states(key, below) == ["completed", "ready"]
        (claim,) = scene.lineage(key)
        assert (claim.reason, claim.result_accepted, claim.work_product) == ("SUBMITTED", True, answer.work_product)
        (result,) = scene.results(key)
        assert (result.accepted, result.reason, result.work_product) == (True, "ACCEPTED", answer.work_product)
        again = scene.submit(receipt, "work")
        assert (again.outcome, again.again, again.work_product) == ("ACCEPTED", True, answer.work_product)
        handed = scene.claim(below, "bo").inputs or {}
        assert handed[key]["data"] == "work"

    def test_a_refused_output_is_a_failed_attempt_with_its_reasons(self, scene: Scene) -> None:
        key, receipt = handed_in(scene)
        answer = judge(scene, taken(scene), False, "two tests fail", "no docs")
        assert (answer.outcome, answer.state, answer.retry_in) == ("OK", "retrying", 10.0)
        task = scene.task(key)
        assert task.last_error is not None
        assert (task.last_error.error_class, task.last_error.message) == ("invalid_output", "two tests fail; no docs")
        (entry,) = look(scene, tasks.history, key)
        assert (entry["error_class"], entry["result_accepted"], entry["counted"]) == ("invalid_output", False, True)
        assert (entry["validation"]["state"], entry["validation"]["reasons"]) == (
            "refused",
            ["two tests fail", "no docs"],
        )
        assert entry["refused"][0]["reason"] == "INVALID_OUTPUT"
        again = scene.submit(receipt, "work")
        assert (again.outcome, again.again, again.reasons) == ("INVALID_OUTPUT", True, ("two tests fail", "no docs"))
        scene.pass_time(hours=1)
        assert scene.claim(key, "bo").attempt == 2

    def test_refused_as_often_as_it_may_be_tried_it_is_a_dead_letter(self, scene: Scene) -> None:
        key = scene.add(output=TESTS, max_attempts=2)
        for agent in ("ann", "bo"):
            assert scene.submit(scene.take(key, agent), "work").outcome == "VALIDATING"
            judge(scene, taken(scene), False, "no")
            scene.pass_time(hours=1)
        assert scene.state(key) == "dead_lettered"
        (letter,) = look(scene, tasks.dead_letters)
        assert (letter["error_class"], letter["error"], letter["poison_pill"]) == ("invalid_output", "no", False)
        assert scene.do(c.Adopt, task=key).state == "completed"

    def test_the_best_that_waits_is_taken_first(self, scene: Scene) -> None:
        handed_in(scene)
        urgent, _ = handed_in(scene, priority=5)
        handed_in(scene, REVIEW, priority=0)
        outcome = scene.do(c.TakeValidation, checker="vera")
        assert outcome.validation is not None
        assert outcome.validation["key"] == scene.task(urgent).key
        assert (outcome.validation["data"], outcome.validation["settings"]) == ("work", {"command": "unit"})
        assert scene.do(c.TakeValidation, checker="vera", validators=("llm-judge",)).outcome == "NO_TASK"

    # --- the fence ------------------------------------------------------------------------------------------------

    def test_two_cannot_have_one_check_and_a_stale_taker_is_refused(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        old = taken(scene, "vera", lease=60)
        denied = scene.do(c.TakeValidation, checker="wim", task=key)
        assert (denied.outcome, denied.holder) == ("DENIED_ACTIVE_CLAIM", "vera")
        assert scene.do(c.TakeValidation, checker="wim").outcome == "NO_TASK"
        scene.pass_time(seconds=61)
        new = taken(scene, "wim")
        for kind, fields in (
            (c.RenewValidation, {}),
            (c.Judge, {"ok": True}),
            (c.Judge, {"ok": False, "reasons": ("no",)}),
            (c.Undecide, {"reason": "away"}),
        ):
            before = scene.tables()
            refused = scene.do(kind, receipt=old, **fields)
            assert (refused.outcome, refused.directive) == ("STALE_GENERATION", "abort")
            assert scene.tables() == before
        assert judge(scene, new, True).outcome == "ACCEPTED"
        assert judge(scene, old, False, "no").outcome == "STALE_GENERATION"
        assert scene.state(key) == "completed"
        assert scene.task(key).generation == 1

    def test_one_verdict_counts_and_its_taker_is_told_so_again(self, scene: Scene) -> None:
        handed_in(scene)
        receipt = taken(scene)
        judge(scene, receipt, False, "no")
        again = judge(scene, receipt, False, "no")
        assert (again.outcome, again.again) == ("OK", True)
        assert judge(scene, receipt, True).outcome == "NO_CLAIM"
        assert len(scene.events(kind="task.failed")) == 1

    def test_nobody_judges_without_the_receipt(self, scene: Scene) -> None:
        key, claimed = handed_in(scene)
        receipt = taken(scene)
        assert judge(scene, forged(receipt, nonce=bytes(16)), True).outcome == "SESSION_MISMATCH"
        assert judge(scene, forged(receipt, generation=2), True).outcome == "FUTURE_GENERATION"
        assert judge(scene, forged(receipt, epoch="00000000"), True).outcome == "STALE_EPOCH"
        with pytest.raises(InvalidInput, match="a claim's"):
            judge(scene, claimed, True)
        assert scene.state(key) == "validating"

    def test_a_lapsed_taker_s_word_counts_while_nobody_took_over(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        receipt = taken(scene, lease=60)
        scene.pass_time(hours=1)
        assert judge(scene, receipt, True).outcome == "ACCEPTED"
        assert scene.state(key) == "completed"

    def test_renewals_keep_a_check(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        receipt = taken(scene, lease=60)
        for _ in range(5):
            scene.pass_time(seconds=50)
            assert scene.do(c.RenewValidation, receipt=receipt).outcome == "RENEWED"
        assert scene.do(c.TakeValidation, checker="wim", task=key).outcome == "DENIED_ACTIVE_CLAIM"
        assert scene.events(kind="task.validation_taken")[0].details["holder"] == "vera"

    def test_a_repeated_request_gets_the_same_receipt(self, scene: Scene) -> None:
        handed_in(scene)
        handed_in(scene)
        first = scene.do(c.TakeValidation, checker="vera", request_id="one")
        again = scene.do(c.TakeValidation, checker="vera", request_id="one")
        assert (again.receipt, again.again) == (first.receipt, True)
        assert scene.do(c.TakeValidation, checker="vera", request_id="two").receipt != first.receipt

    def test_of_many_takers_at_once_each_check_has_one(self, scene: Scene) -> None:
        for _ in range(8):
            handed_in(scene)
        engines = [Engine(scene.store, Dice(seed)) for seed in range(1, 5)]
        start, got = threading.Barrier(4), list[str]()

        def take(engine: Engine) -> None:
            start.wait()
            for _ in range(3):
                outcome = engine.do(c.TakeValidation(project=PROJECT, checker="someone"))
                if outcome.validation is not None:
                    got.append(outcome.validation["id"])

        threads = [threading.Thread(target=take, args=(engine,)) for engine in engines]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == sorted(row.id for row in scene.rows(Validation))

    def test_a_new_epoch_voids_the_receipts_of_takers(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        receipt = taken(scene)
        scene.engine.new_epoch("a test")
        assert judge(scene, receipt, True).outcome == "STALE_EPOCH"
        assert judge(scene, taken(scene, "wim"), True).outcome == "ACCEPTED"
        assert scene.state(key) == "completed"

    # --- undecided ------------------------------------------------------------------------------------------------

    def test_an_undecided_check_is_tried_again_later_and_costs_nobody_an_attempt(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        receipt = taken(scene)
        answer = scene.do(c.Undecide, receipt=receipt, reason="the judge is away")
        assert (answer.outcome, answer.state, answer.retry_in) == ("OK", "validating", 10.0)
        assert scene.do(c.Undecide, receipt=receipt, reason="the judge is away").again
        assert scene.do(c.TakeValidation, checker="wim").outcome == "NO_TASK"
        scene.pass_time(seconds=10)
        receipt = taken(scene, "wim")
        assert scene.do(c.Undecide, receipt=receipt, reason="limited", retry_after=90).retry_in == 90.0
        assert scene.task(key).attempts == 1
        assert taken(scene, "xu", task=key)  # whoever names it means it

    def test_after_five_takers_without_a_verdict_a_person_is_asked(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        states = []
        for n in range(MOST_TRIES):
            scene.pass_time(hours=1)
            states.append(scene.do(c.Undecide, receipt=taken(scene, f"taker {n}"), reason="no such command").state)
        assert states == ["validating"] * (MOST_TRIES - 1) + ["paused"]
        task = scene.task(key)
        assert "no such command" in (task.reason or "")
        assert (task.attempts, scene.lineage(key)[0].counted) == (1, True)
        scene.do(c.Resume, task=key)
        assert scene.state(key) == "validating"
        assert judge(scene, taken(scene), True).outcome == "ACCEPTED"

    @pytest.mark.parametrize("is_good", [True, False])
    def test_a_person_decides_what_nobody_else_could(self, scene: Scene, is_good: bool) -> None:
        key, _ = handed_in(scene)
        for n in range(MOST_TRIES):
            scene.pass_time(hours=1)
            scene.do(c.Undecide, receipt=taken(scene, f"taker {n}"), reason="no such command")
        assert [pause.cause for pause in scene.task(key).pauses] == ["review"]
        if is_good:
            assert scene.do(c.Approve, task=key).state == "completed"
        else:
            assert scene.do(c.Reject, task=key, reason="no").state == "retrying"

    def test_takers_that_die_count_too(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        for _ in range(MOST_TRIES):
            taken(scene, lease=60)
            scene.pass_time(seconds=61)
        denied = scene.do(c.TakeValidation, checker="vera", task=key)
        assert (denied.outcome, denied.state) == ("DENIED_PAUSED", "paused")
        scene.do(c.Resume, task=key)
        for _ in range(MOST_TRIES):
            taken(scene, lease=60)
            scene.pass_time(seconds=61)
        assert scene.do(c.TakeValidation, checker="vera").outcome == "NO_TASK"
        assert scene.state(key) == "paused"

    # --- looks ----------------------------------------------------------------------------------------------------

    def test_looks_say_what_a_task_waits_for(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        review, _ = handed_in(scene, REVIEW)
        assert shown(scene, key)["validation"]["state"] == "waiting"
        (why,) = look(scene, why_reads.why, key)["reasons"]
        assert "waiting for a process that runs test-pass" in why
        assert "approve or reject" in look(scene, why_reads.why, review)["reasons"][0]
        scene.do(c.TakeValidation, checker="vera")
        assert "vera runs test-pass (try 1 of 5)" in look(scene, why_reads.why, key)["reasons"][0]
        counts = look(scene, tasks.status)["validations"]
        assert counts == {"test-pass": {"waiting": 0, "running": 1}, "review": {"waiting": 1, "running": 0}}
        listed = look(scene, validation_reads.validations)
        assert [(one["key"], one["state"], one["holder"]) for one in listed] == [
            (scene.task(key).key, "running", "vera"),
            (scene.task(review).key, "review", None),
        ]
        scene.pass_time(hours=1)
        assert shown(scene, key)["validation"]["state"] == "waiting"
        assert shown(scene, key)["validation"]["holder"] is None

    def test_large_details_of_a_verdict_are_kept_apart_and_shown(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        details = {"output": "x" * 50_000}
        scene.do(c.Judge, receipt=taken(scene), ok=False, reasons=("no",), details=details)
        assert shown(scene, key)["validation"]["details"] == details
        assert all(len(str(event.patch)) < 20_000 for event in scene.events())

    def test_checked_tasks_go_to_the_archive_and_come_back_whole(self, scene: Scene) -> None:
        from tenure.engine.archive.mover import move_all

        key, _ = handed_in(scene)
        scene.do(c.Judge, receipt=taken(scene), ok=True, details={"output": "y" * 50_000})
        before = look(scene, tasks.history, key)
        scene.pass_time(hours=1)
        assert move_all(scene.engine, PROJECT, older=0).tasks == 1
        assert scene.rows(Validation) == []
        assert look(scene, tasks.history, key) == before
        scene.do(c.Reset, task=key)
        assert len(scene.rows(Validation)) == 1

    # --- sweeps, verify -------------------------------------------------------------------------------------------

    def test_no_answer_depends_on_a_sweep(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        taken(scene, lease=60)
        scene.pass_time(seconds=61)
        before = look(scene, validation_reads.validations)
        scene.engine.sweep()
        assert look(scene, validation_reads.validations) == before
        assert taken(scene, "wim", task=key)

    def test_verify_finds_what_waits_for_nothing_and_verdicts_of_nothing(self, scene: Scene) -> None:
        scene.broken = True
        handed_in(scene)
        (row,) = scene.rows(Validation)
        scene.put(row, replace(row, state="withdrawn"))
        assert any("has no open validation" in text for text in scene.engine.verify(with_replay=False))
        scene.put(replace(row, state="withdrawn"), replace(row, state="passed"))
        assert any("is passed, but its result is VALIDATING" in text for text in scene.engine.verify(with_replay=False))
        scene.put(replace(row, state="passed"), replace(row, result="result_gone"))
        assert any("without its task, claim or result" in text for text in scene.engine.verify(with_replay=False))

    def test_results_are_kept_once_whatever_becomes_of_them(self, scene: Scene) -> None:
        key, receipt = handed_in(scene)
        scene.submit(receipt, "work")
        judge(scene, taken(scene), False, "no")
        scene.submit(receipt, "work")
        assert [row.reason for row in scene.rows(Result, task=scene.task(key).id)] == ["INVALID_OUTPUT"]

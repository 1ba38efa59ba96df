"""Validation: quick checks before the submission, verdicts under a lease of their own after it, reviews by others."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask, Principal
from tenure.core.errors import InvalidInput, NotAllowed, RequestIdReused
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Result, Validation, replace
from tenure.core.validation import MOST_INVALID, MOST_TRIES
from tenure.engine import Engine
from tenure.engine.checks import validation_reads
from tenure.engine.reads import tasks
from tenure.engine.reads import why as why_reads
from tenure.engine.runtime.batcher import Batcher
from tenure.testing.engine.spending import look, shown
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, MEMBER, PROJECT, Dice, Scene, code_of, forged

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
    # --- contracts ------------------------------------------------------------------------------------------------

    def test_a_contract_that_no_output_could_be_judged_by_is_refused_where_it_is_given(self, scene: Scene) -> None:
        for output, says in (
            ({"validation": "regex", "settings": {"pattern": "(?=x)"}}, "pattern"),
            ({"validation": "regex"}, "pattern"),
            ({"validation": "json-schema", "settings": {"schema": {"$ref": "https://example.org/s.json"}}}, "schema"),
            ({"validation": "json-schema", "settings": {"schema": {"type": 3}}}, "schema"),
            ({"validation": "test-pass", "settings": {"comand": "unit"}}, "comand"),
            ({"validation": "llm-judge", "settings": {"rubric": " "}}, "rubric"),
            ({"validation": "regexx", "settings": {"pattern": "x"}}, "regex"),
            ({"validation": "none", "settings": {"pattern": "x"}}, "settings"),
            ({"validation": "Review me"}, "validation"),
        ):
            before = scene.tables()
            with pytest.raises(InvalidInput, match=says):
                scene.add(output=output)
            with pytest.raises(InvalidInput, match=says):
                scene.plan(NewTask(title="good"), NewTask(title="bad", output=output))
            assert scene.tables() == before
        key = scene.add()
        with pytest.raises(InvalidInput, match="pattern"):
            scene.do(c.Edit, task=key, changes={"output": {"validation": "regex", "settings": {"pattern": "("}}})
        scene.bury(key)
        with pytest.raises(InvalidInput, match="pattern"):
            scene.do(c.Retry, task=key, changes={"output": {"validation": "regex", "settings": {"pattern": "("}}})

    def test_only_tasks_with_a_contract_are_checked(self, scene: Scene) -> None:
        key, plain = scene.add(output=PATTERN), scene.add(output={"type": "json"})
        assert (scene.task(key).checked, scene.task(plain).checked) == (True, False)
        assert (scene.task(key).plain, scene.task(plain).plain) == (False, True)
        scene.do(c.Edit, task=key, changes={"output": {}})
        assert (scene.task(key).checked, scene.task(key).plain) == (False, True)

    # --- quick checks ---------------------------------------------------------------------------------------------

    def test_a_good_output_is_accepted_at_once(self, scene: Scene) -> None:
        key = scene.add(output=PATTERN)
        assert scene.submit(scene.take(key), "ok then").outcome == "ACCEPTED"
        assert scene.state(key) == "completed"
        assert scene.rows(Validation) == []

    def test_a_bad_output_can_be_mended_under_the_same_claim(self, scene: Scene) -> None:
        key = scene.add(output=PATTERN)
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=50)
        refused = scene.submit(receipt, "bad")
        assert (refused.outcome, refused.state, refused.directive) == ("INVALID_OUTPUT", "running", "continue")
        assert refused.reasons == ("the data does not match ^ok",)
        assert refused.work_lost is False
        assert scene.task(key).lease_until == scene.now + 60_000_000
        assert scene.submit(receipt, "ok").outcome == "ACCEPTED"
        (claim,) = scene.lineage(key)
        assert (claim.reason, claim.invalid, claim.error, claim.result_accepted) == ("COMPLETED", 1, None, True)
        assert [(r.accepted, r.reason) for r in scene.results(key)] == [(False, "INVALID_OUTPUT"), (True, "ACCEPTED")]

    def test_at_most_five_reasons_are_told(self, scene: Scene) -> None:
        schema = {"required": [f"field{n}" for n in range(9)]}
        key = scene.add(output={"validation": "json-schema", "settings": {"schema": schema}})
        refused = scene.submit(scene.take(key), {})
        assert refused.outcome == "INVALID_OUTPUT"
        assert len(refused.reasons or ()) == 5

    def test_the_third_refused_output_ends_the_attempt(self, scene: Scene) -> None:
        key = scene.add(output=PATTERN)
        receipt = scene.take(key)
        answers = [scene.submit(receipt, f"bad {n}", request_id=f"r{n}") for n in range(MOST_INVALID)]
        assert [a.state for a in answers] == ["running", "running", "retrying"]
        assert answers[-1].directive == "abort"
        (claim,) = scene.lineage(key)
        assert (claim.reason, claim.error_class, claim.counted) == ("FAILED", "invalid_output", True)
        error = scene.task(key).last_error
        assert error is not None
        assert (error.error_class, error.message) == ("invalid_output", "the data does not match ^ok")
        again = scene.submit(receipt, "bad 2", request_id="r2")
        assert (again.outcome, again.again, again.state) == ("INVALID_OUTPUT", True, "retrying")
        assert scene.submit(receipt, "ok at last").outcome == "NO_CLAIM"

    def test_three_such_attempts_are_a_dead_letter_with_the_reasons(self, scene: Scene) -> None:
        key = scene.add(output=PATTERN)
        for agent in ("ann", "bo", "cy"):
            receipt = scene.take(key, agent)
            for n in range(MOST_INVALID):
                scene.submit(receipt, f"bad {n}")
            scene.pass_time(hours=1)
        assert scene.state(key) == "dead_lettered"
        (letter,) = look(scene, tasks.dead_letters)
        assert (letter["error_class"], letter["poison_pill"]) == ("invalid_output", True)

    def test_the_same_request_again_counts_once(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(output=PATTERN))
        first = scene.submit(receipt, "bad", request_id="one")
        again = scene.submit(receipt, "bad", request_id="one")
        assert (first.outcome, again.outcome, again.again) == ("INVALID_OUTPUT", "INVALID_OUTPUT", True)
        assert [claim.invalid for claim in scene.rows(Claim)] == [1]
        with pytest.raises(RequestIdReused):
            scene.submit(receipt, "other", request_id="one")

    def test_a_late_output_is_checked_too_and_the_third_bad_one_closes_its_window(self, scene: Scene) -> None:
        key = scene.add(output=PATTERN)
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        assert [scene.submit(receipt, f"bad {n}").outcome for n in range(3)] == ["INVALID_OUTPUT"] * 3
        assert scene.state(key) == "ready"
        assert scene.submit(receipt, "ok").outcome == "NO_CLAIM"
        other = scene.take(scene.add(output=PATTERN), lease=60)
        scene.pass_time(seconds=61)
        assert scene.submit(other, "ok").outcome == "ACCEPTED"

    def test_a_batch_with_checked_results_is_the_sequence_of_its_commands(self, scene: Scene) -> None:
        first = scene.add(output=PATTERN)
        second = scene.add(depends_on=(first,), output=PATTERN)
        receipt = scene.take(first)
        answers = scene.run(
            c.Submit(project=PROJECT, receipt=receipt, data="bad"),
            c.Submit(project=PROJECT, receipt=receipt, data="ok"),
            c.ClaimTask(project=PROJECT, task=second, agent="ann", session="s-ann"),
            c.Add(project=PROJECT, task=NewTask(title="new", output={"validation": "regex", "settings": {}})),
        )
        assert [code_of(a) for a in answers] == ["INVALID_OUTPUT", "ACCEPTED", "GRANTED", "INVALID_INPUT"]
        assert len({event.time for event in scene.events(task=scene.task(first).id)}) == 1

    def test_what_was_found_for_an_older_contract_does_not_count(self, scene: Scene) -> None:
        """The contract is another by the time the transaction looks: it is asked again, by the new one."""
        key = scene.add(output=PATTERN)
        receipt = scene.take(key)
        changed = threading.Event()

        class Meddled(Engine):
            def _decide_one(self, work: Any, item: Any, principal: Principal) -> Any:
                answer = super()._decide_one(work, item, principal)
                if isinstance(item.command, c.Submit) and not changed.is_set():
                    changed.set()
                    meddling.append(True)
                return answer

        meddling: list[bool] = []
        meddled = Meddled(scene.store, scene.dice)
        pause = meddled.transact

        def transact(*given: Any, **more: Any) -> Any:
            if meddling and len(meddling) == 1:
                meddling.append(True)
                brief = scene.row(records_brief(), scene.task(key).id)
                scene.put(brief, replace(brief, output={"validation": "regex", "settings": {"pattern": "^other"}}))
            return pause(*given, **more)

        meddled.transact = transact  # type: ignore[method-assign]
        scene.broken = True  # the brief was changed behind the log's back
        with Batcher(meddled) as gatherer:
            answer = gatherer.do(c.Submit(project=PROJECT, receipt=receipt, data="ok"))
        assert (answer.outcome, answer.reasons) == ("INVALID_OUTPUT", ("the data does not match ^other",))

    def test_a_gatherer_gives_the_same_answers(self, scene: Scene) -> None:
        keys = [scene.add(output=PATTERN) for _ in range(6)]
        receipts = [scene.take(key) for key in keys]
        with Batcher(scene.engine) as gatherer:
            asked = [
                gatherer.submit(c.Submit(project=PROJECT, receipt=receipt, data="ok" if n % 2 else "bad"), caller=n)
                for n, receipt in enumerate(receipts)
            ]
            assert [future.result(30).outcome for future in asked] == ["INVALID_OUTPUT", "ACCEPTED"] * 3
            bad = {"validation": "regex", "settings": {"pattern": "("}}
            with pytest.raises(InvalidInput, match="pattern"):
                gatherer.do(c.Add(project=PROJECT, task=NewTask(title="x", output=bad)))

    def test_a_caller_s_commands_keep_their_order_in_a_gatherer(self, scene: Scene) -> None:
        first, second = scene.add(output=PATTERN), scene.add()
        third = scene.add(depends_on=(first, second))
        receipts = scene.take(first), scene.take(second)
        batch = [
            c.Submit(project=PROJECT, receipt=receipts[0], data="ok"),
            c.Submit(project=PROJECT, receipt=receipts[1], data="x"),
            c.ClaimTask(project=PROJECT, task=third, agent="ann", session="s-ann"),
        ]
        with Batcher(scene.engine) as gatherer:
            asked = [gatherer.submit(command, caller="one") for command in batch]
            assert [future.result(30).outcome for future in asked] == ["ACCEPTED", "ACCEPTED", "GRANTED"]
        done = {event.key for event in scene.events(kind="task.completed")}
        assert done == {scene.task(first).key, scene.task(second).key}

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
            "refused", ["two tests fail", "no docs"],
        )  # fmt: skip
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

    # --- people ---------------------------------------------------------------------------------------------------

    def test_a_review_is_a_person_s_word_or_another_agent_s(self, scene: Scene) -> None:
        key, _ = handed_in(scene, REVIEW)
        assert scene.do(c.TakeValidation, checker="vera", task=key).outcome == "DENIED_STATE"
        with pytest.raises(NotAllowed, match="ann"):
            scene.do(c.Approve, by=ANN, task=key)
        with pytest.raises(NotAllowed, match="ann"):
            scene.do(c.Approve, by=replace(BO, session="s-ann"), task=key)
        with pytest.raises(NotAllowed):
            scene.do(c.Approve, by=Principal(role="viewer"), task=key)
        assert scene.do(c.Approve, by=BO, task=key).outcome == "ACCEPTED"
        (row,) = scene.rows(Validation)
        assert (row.state, row.decided_by) == ("passed", "user:bo")
        assert scene.do(c.Approve, by=MEMBER, task=key).outcome == "DENIED_STATE"

    def test_a_rejected_result_fails_with_what_to_mend(self, scene: Scene) -> None:
        key, _ = handed_in(scene, REVIEW)
        with pytest.raises(InvalidInput):
            scene.do(c.Reject, by=MEMBER, task=key, reason=" ")
        assert scene.do(c.Reject, by=MEMBER, task=key, reason="say why, too").state == "retrying"
        scene.pass_time(hours=1)
        granted = scene.claim(key, "bo")
        assert granted.task is not None
        assert granted.task["last_error"]["message"] == "say why, too"

    def test_a_person_may_speak_for_any_validator_and_its_taker_is_refused_then(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        receipt = taken(scene)
        with pytest.raises(NotAllowed, match="test-pass"):
            scene.do(c.Approve, by=BO, task=key)
        assert scene.do(c.Approve, by=MEMBER, task=key, note="looks fine").outcome == "ACCEPTED"
        assert judge(scene, receipt, False, "no").outcome == "NO_CLAIM"

    def test_a_paused_check_waits_and_goes_on_where_it_was(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        receipt = taken(scene)
        scene.do(c.Pause, task=key)
        assert scene.do(c.RenewValidation, receipt=receipt).outcome == "DENIED_PAUSED"
        assert judge(scene, receipt, True).outcome == "DENIED_PAUSED"
        assert scene.do(c.TakeValidation, checker="wim").outcome == "NO_TASK"
        scene.do(c.Resume, task=key)
        assert scene.state(key) == "validating"
        assert judge(scene, receipt, True).outcome == "ACCEPTED"

    def test_a_cancelled_check_is_off_and_undo_brings_it_back(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        receipt = taken(scene)
        cancelled = scene.do(c.Cancel, task=key)
        refused = judge(scene, receipt, True)
        assert (refused.outcome, refused.directive) == ("TASK_CANCELLED", "cancel")
        assert scene.do(c.TakeValidation, checker="wim").outcome == "NO_TASK"
        scene.do(c.Undo, command_id=cancelled.command_id or "")
        assert scene.state(key) == "validating"
        assert judge(scene, receipt, True).outcome == "ACCEPTED"

    def test_paused_and_cancelled_it_still_comes_back_to_its_verdict(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        scene.do(c.Pause, task=key)
        cancelled = scene.do(c.Cancel, task=key)
        scene.do(c.Undo, command_id=cancelled.command_id or "")
        assert scene.state(key) == "paused"
        scene.do(c.Resume, task=key)
        assert judge(scene, taken(scene), True).outcome == "ACCEPTED"

    def test_what_is_asked_for_changes_under_a_result_only_if_it_is_superseded(self, scene: Scene) -> None:
        key, receipt = handed_in(scene)
        taker = taken(scene)
        for name in ("output", "spec"):
            assert scene.do(c.Edit, task=key, changes={name: {}}).outcome == "DENIED_STATE"
        scene.do(c.Edit, task=key, changes={"title": "another name"})
        edited = scene.do(c.Edit, task=key, changes={"output": PATTERN}, supersede=True)
        assert (edited.outcome, edited.state) == ("UPDATED", "ready")
        assert scene.task(key).attempts == 0
        assert judge(scene, taker, True).outcome == "NO_CLAIM"
        assert scene.submit(receipt, "ok").outcome == "NO_CLAIM"
        assert [row.state for row in scene.rows(Validation)] == ["withdrawn"]
        assert scene.submit(scene.take(key, "bo"), "ok").outcome == "ACCEPTED"

    def test_a_paused_one_stays_paused_when_its_contract_is_superseded(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        scene.do(c.Pause, task=key)
        assert scene.do(c.Edit, task=key, changes={"output": {}}).outcome == "DENIED_STATE"
        assert scene.do(c.Edit, task=key, changes={"output": {}}, supersede=True).state == "paused"
        scene.do(c.Resume, task=key)
        assert scene.state(key) == "ready"

    def test_a_person_may_adopt_what_waits_while_it_is_paused(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        assert scene.do(c.Adopt, task=key).outcome == "DENIED_STATE"
        scene.do(c.Pause, task=key)
        assert scene.do(c.Adopt, task=key).state == "completed"
        assert [row.state for row in scene.rows(Validation)] == ["withdrawn"]

    def test_a_completed_one_starts_over_and_is_checked_again(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        judge(scene, taken(scene), True)
        scene.do(c.Reset, task=key)
        assert scene.submit(scene.take(key, "bo"), "more work").outcome == "VALIDATING"
        assert judge(scene, taken(scene), True).outcome == "ACCEPTED"
        assert [row.claimed for row in scene.rows(Validation, order="created_at")] == [1, 2]

    def test_a_drained_or_paused_task_is_paused_again_when_its_output_is_refused(self, scene: Scene) -> None:
        drained = scene.add(output=TESTS)
        receipt = scene.take(drained)
        scene.do(c.Pause, task=drained, drain=True)
        assert scene.submit(receipt, "work").outcome == "VALIDATING"
        paused = scene.add(output=TESTS)
        late = scene.take(paused, "bo")
        scene.do(c.Pause, task=paused, reason="look at it first")
        assert scene.submit(late, "work").outcome == "VALIDATING"
        for _ in range(2):
            assert judge(scene, taken(scene), False, "no").state == "paused"
        assert scene.task(paused).reason == "look at it first"

    def test_a_late_result_waits_for_its_verdict_too(self, scene: Scene) -> None:
        key = scene.add(output=TESTS)
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        assert scene.submit(receipt, "work").outcome == "VALIDATING"
        assert scene.claim(key, "bo").outcome == "DENIED_NOT_READY"
        assert judge(scene, taken(scene), True).outcome == "ACCEPTED"
        (claim,) = scene.lineage(key)
        assert (claim.reason, claim.result_accepted) == ("EXPIRED", True)

    def test_a_dag_is_not_over_while_a_verdict_is_to_come(self, scene: Scene) -> None:
        first, second = scene.plan(NewTask(title="a", output=TESTS), NewTask(title="b"))
        scene.submit(scene.take(first), "work")
        scene.finish(second)
        assert scene.events(kind="dag.completed") == []
        judge(scene, taken(scene), True)
        assert len(scene.events(kind="dag.completed")) == 1

    # --- looks ----------------------------------------------------------------------------------------------------

    def test_looks_say_what_a_task_waits_for(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        review, _ = handed_in(scene, REVIEW)
        assert shown(scene, key)["validation"]["state"] == "waiting"
        (why,) = look(scene, why_reads.why, key)["reasons"]
        assert "waits for somebody to run test-pass" in why
        assert "approve or reject" in look(scene, why_reads.why, review)["reasons"][0]
        scene.do(c.TakeValidation, checker="vera")
        assert "vera runs test-pass (try 1 of 5)" in look(scene, why_reads.why, key)["reasons"][0]
        counts = look(scene, tasks.status)["validations"]
        assert counts == {"test-pass": {"waiting": 0, "running": 1}, "review": {"waiting": 1, "running": 0}}
        listed = look(scene, validation_reads.validations)
        assert [(one["key"], one["state"], one["holder"]) for one in listed] == [
            (scene.task(key).key, "running", "vera"), (scene.task(review).key, "review", None),
        ]  # fmt: skip
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
        assert any("nothing waits for a verdict" in text for text in scene.engine.verify(with_replay=False))
        scene.put(replace(row, state="withdrawn"), replace(row, state="passed"))
        assert any("is passed, but its result is VALIDATING" in text for text in scene.engine.verify(with_replay=False))
        scene.put(replace(row, state="passed"), replace(row, result="result_gone"))
        assert any("without its task, claim or result" in text for text in scene.engine.verify(with_replay=False))

    def test_an_agent_that_may_operate_reviews_as_a_person(self, scene: Scene) -> None:
        scene.do(c.DefineProject, agents_may_operate=True)
        key, _ = handed_in(scene)
        with pytest.raises(NotAllowed, match="in which an agent works"):
            scene.do(c.Approve, by=AGENT, task=key)
        with pytest.raises(NotAllowed, match="handed in by agent ann"):
            scene.do(c.Approve, by=ANN, task=key)
        assert scene.do(c.Approve, by=BO, task=key).outcome == "ACCEPTED"

    # --- an author's own word -------------------------------------------------------------------------------------

    def test_a_verdict_is_never_the_authors_by_agent_session_or_key(self, scene: Scene) -> None:
        review, tested = (self._by_key(scene, output) for output in (REVIEW, TESTS))
        stranger = replace(CHECKER, role="member")
        for same in ({"agent": "ann"}, {"session": "s-ann"}, {"key": "k-ann"}):
            for who in (replace(CHECKER, **same), replace(stranger, **same), replace(stranger, role="owner", **same)):
                for command in (
                    c.Approve(project=PROJECT, task=review),
                    c.Reject(project=PROJECT, task=review, reason="no"),
                    c.TakeValidation(project=PROJECT, checker="x", task=tested),
                ):
                    (answer,) = scene.run(command, by=who)
                    assert isinstance(answer, NotAllowed), (same, command, answer)
                assert scene.do(c.TakeValidation, by=who, checker="x").outcome == "NO_TASK"
        assert scene.do(c.Approve, by=stranger, task=review).outcome == "ACCEPTED"

    def test_a_check_that_another_took_is_not_judged_by_the_author(self, scene: Scene) -> None:
        self._by_key(scene, TESTS)
        receipt = str(scene.do(c.TakeValidation, by=CHECKER, checker="vera").receipt)
        author = replace(ANN, capabilities=("checker",))
        (answer,) = scene.run(c.Judge(project=PROJECT, receipt=receipt, ok=True), by=author)
        assert isinstance(answer, NotAllowed)
        assert scene.do(c.Judge, by=CHECKER, receipt=receipt, ok=True).outcome == "ACCEPTED"
        (row,) = scene.rows(Validation)
        assert row.decided_by == "user:ci"  # not what the checker called itself

    def test_an_agents_key_takes_checks_only_with_the_capability(self, scene: Scene) -> None:
        key = self._by_key(scene, TESTS)
        for command in (
            c.TakeValidation(project=PROJECT, checker="bo"),
            c.RenewValidation(project=PROJECT, receipt="x"),
            c.Judge(project=PROJECT, receipt="x", ok=True),
            c.Undecide(project=PROJECT, receipt="x", reason="y"),
        ):
            (answer,) = scene.run(command, by=BO)
            assert isinstance(answer, NotAllowed)
            assert "capability checker" in answer.message
        assert scene.do(c.TakeValidation, by=CHECKER, checker="vera", task=key).outcome == "GRANTED"

    def test_an_agents_session_on_this_machine_gives_no_verdicts(self, scene: Scene) -> None:
        review, tested = (handed_in(scene, output)[0] for output in (REVIEW, TESTS))
        said = Principal(role="agent", agent="somebody", session="else")
        for command in (
            c.Approve(project=PROJECT, task=review),
            c.Reject(project=PROJECT, task=review, reason="no"),
            c.TakeValidation(project=PROJECT, checker="x", task=tested),
            c.Judge(project=PROJECT, receipt=taken(scene), ok=True),
        ):
            (answer,) = scene.run(command, by=said)
            assert isinstance(answer, NotAllowed), command
        assert scene.do(c.Approve, task=review).outcome == "ACCEPTED"

    def test_a_claim_of_the_next_best_keeps_the_key_it_was_made_with(self, scene: Scene) -> None:
        for count in (1, 4):  # from the second on the agent is known, and the short way is taken
            for _ in range(count):
                scene.add()
            granted = scene.next("ann", n=count, by=ANN)
            assert granted.outcome == "GRANTED"
        assert {claim.key for claim in scene.rows(Claim)} == {"k-ann"}

    def _by_key(self, scene: Scene, output: dict[str, Any]) -> str:
        """A task whose result waits, claimed by Ann with her key."""
        key = scene.add(output=output)
        receipt = scene.claim(key, by=ANN).receipt
        assert scene.submit(str(receipt), "work").outcome == "VALIDATING"
        return key

    def test_results_are_kept_once_whatever_becomes_of_them(self, scene: Scene) -> None:
        key, receipt = handed_in(scene)
        scene.submit(receipt, "work")
        judge(scene, taken(scene), False, "no")
        scene.submit(receipt, "work")
        assert [row.reason for row in scene.rows(Result, task=scene.task(key).id)] == ["INVALID_OUTPUT"]


def records_brief() -> type[Any]:
    from tenure.core.records import Brief

    return Brief

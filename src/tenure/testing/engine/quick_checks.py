"""Quick checks: contracts that can be judged before the submission, and outputs that they refuse."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.errors import InvalidInput, RequestIdReused
from tenure.core.records import Brief, Claim, Validation, replace
from tenure.core.validation import MOST_INVALID
from tenure.engine import Engine
from tenure.engine.reads import tasks
from tenure.engine.runtime.batcher import Batcher
from tenure.testing.engine.spending import look
from tenure.testing.engine.stage import Stage
from tenure.testing.engine.validations import PATTERN
from tenure.testing.factories import PROJECT, Scene, code_of


class QuickChecks(Stage):
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
            def _decide(self, work: Any, batch: Any, *more: Any, **how: Any) -> Any:
                replies = super()._decide(work, batch, *more, **how)
                if isinstance(batch[0].item.command, c.Submit) and not changed.is_set():
                    changed.set()
                    meddling.append(True)
                return replies

        meddling: list[bool] = []
        meddled = Meddled(scene.store, scene.dice)
        pause = meddled.transact

        def transact(*given: Any, **more: Any) -> Any:
            if meddling and len(meddling) == 1:
                meddling.append(True)
                brief = scene.row(Brief, scene.task(key).id)
                scene.put(brief, replace(brief, output={"validation": "regex", "settings": {"pattern": "^other"}}))
            return pause(*given, **more)

        meddled.transact = transact  # type: ignore[method-assign]
        scene.broken = True  # the brief was changed behind the log's back
        with Batcher(meddled) as batcher:
            answer = batcher.do(c.Submit(project=PROJECT, receipt=receipt, data="ok"))
        assert (answer.outcome, answer.reasons) == ("INVALID_OUTPUT", ("the data does not match ^other",))

    def test_a_batcher_gives_the_same_answers(self, scene: Scene) -> None:
        keys = [scene.add(output=PATTERN) for _ in range(6)]
        receipts = [scene.take(key) for key in keys]
        with Batcher(scene.engine) as batcher:
            asked = [
                batcher.submit(c.Submit(project=PROJECT, receipt=receipt, data="ok" if n % 2 else "bad"), caller=n)
                for n, receipt in enumerate(receipts)
            ]
            assert [future.result(30).outcome for future in asked] == ["INVALID_OUTPUT", "ACCEPTED"] * 3
            bad = {"validation": "regex", "settings": {"pattern": "("}}
            with pytest.raises(InvalidInput, match="pattern"):
                batcher.do(c.Add(project=PROJECT, task=NewTask(title="x", output=bad)))

    def test_a_caller_s_commands_keep_their_order_in_a_batcher(self, scene: Scene) -> None:
        first, second = scene.add(output=PATTERN), scene.add()
        third = scene.add(depends_on=(first, second))
        receipts = scene.take(first), scene.take(second)
        batch = [
            c.Submit(project=PROJECT, receipt=receipts[0], data="ok"),
            c.Submit(project=PROJECT, receipt=receipts[1], data="x"),
            c.ClaimTask(project=PROJECT, task=third, agent="ann", session="s-ann"),
        ]
        with Batcher(scene.engine) as batcher:
            asked = [batcher.submit(command, caller="one") for command in batch]
            assert [future.result(30).outcome for future in asked] == ["ACCEPTED", "ACCEPTED", "GRANTED"]
        done = {event.key for event in scene.events(kind="task.completed")}
        assert done == {scene.task(first).key, scene.task(second).key}

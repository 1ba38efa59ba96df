"""Verdicts by people and other agents, and never by the author of the result."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask, Principal
from tenure.core.errors import InvalidInput, NotAllowed
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Validation, replace
from tenure.testing.engine.stage import Stage
from tenure.testing.engine.validations import ANN, BO, CHECKER, PATTERN, REVIEW, TESTS, handed_in, judge, taken
from tenure.testing.factories import AGENT, MEMBER, PROJECT, Scene, code_of


class Verdicts(Stage):
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

    @pytest.mark.parametrize("is_paused", [False, True])
    @pytest.mark.parametrize("is_taken", [False, True])
    def test_a_retry_of_a_cancelled_check_ends_it(self, scene: Scene, is_paused: bool, is_taken: bool) -> None:
        key, _ = handed_in(scene)
        receipt = taken(scene) if is_taken else None
        if is_paused:
            scene.do(c.Pause, task=key)
        cancelled = scene.do(c.Cancel, task=key)
        retried = scene.do(c.Retry, task=key)
        assert scene.state(key) == "ready"
        assert [row.state for row in scene.rows(Validation)] == ["withdrawn"]
        assert [result.reason for result in scene.results(key)] == ["SUPERSEDED"]
        assert scene.engine.verify() == []
        if receipt is not None:
            assert judge(scene, receipt, True).outcome == "NO_CLAIM"
        assert scene.do(c.TakeValidation, checker="wim").outcome == "NO_TASK"
        for command in (cancelled, retried):
            assert scene.do(c.Undo, command_id=command.command_id or "").outcome == "CANNOT_UNDO"
        assert scene.submit(scene.take(key, "bo")).outcome == "VALIDATING"
        assert scene.engine.verify() == []
        assert judge(scene, taken(scene), True).outcome == "ACCEPTED"
        assert [row.state for row in scene.rows(Validation)] == ["withdrawn", "passed"]

    def test_what_a_retry_put_aside_may_be_adopted(self, scene: Scene) -> None:
        key, _ = handed_in(scene)
        scene.do(c.Cancel, task=key)
        scene.do(c.Retry, task=key)
        assert scene.do(c.Adopt, task=key).state == "completed"
        assert [row.state for row in scene.rows(Validation)] == ["withdrawn"]

    @pytest.mark.parametrize("is_archived", [False, True])
    def test_a_retry_of_a_dead_letter_brings_back_the_checks_that_its_end_cancelled(
        self, scene: Scene, is_archived: bool
    ) -> None:
        first = scene.add(max_attempts=1)
        scene.finish(first)
        key = scene.add(depends_on=(c.Dependency(task=first, on_failure="cancel"),), output=TESTS)
        scene.submit(scene.take(key), "work")
        scene.do(c.Reset, task=first)
        scene.bury(first)
        assert scene.states(first, key) == ["dead_lettered", "cancelled"]
        if is_archived:
            scene.do(c.Archive, task=key)
            assert scene.engine.verify() == []
        scene.do(c.Retry, task=first)
        assert scene.state(key) == "validating"
        assert judge(scene, taken(scene), True).outcome == "ACCEPTED"

    @pytest.mark.parametrize("then", ["cancel", "retry", "adopt", "edit", "reset", "archive"])
    def test_however_a_task_leaves_its_check_none_stays_open_for_another(self, scene: Scene, then: str) -> None:
        key, _ = handed_in(scene)
        ways: dict[str, list[tuple[Any, dict[str, Any]]]] = {
            "cancel": [(c.Cancel, {})],
            "retry": [(c.Cancel, {}), (c.Retry, {"changes": {"title": "again"}})],
            "adopt": [(c.Pause, {}), (c.Adopt, {})],
            "edit": [(c.Edit, {"changes": {"spec": {"a": 1}}, "supersede": True})],
            "reset": [(c.Approve, {}), (c.Reset, {})],
            "archive": [(c.Cancel, {}), (c.Archive, {})],
        }
        for kind, fields in ways[then]:
            scene.do(kind, task=key, **fields)
            assert scene.engine.verify() == []
        if scene.state(key) == "ready":
            scene.submit(scene.take(key, "bo"))
            assert scene.engine.verify() == []
        waiting = [row for row in scene.rows(Validation) if row.state == "open"]
        assert len(waiting) == (then in ("cancel", "retry", "edit", "reset", "archive"))

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

    def test_an_agent_that_may_operate_reviews_as_a_person(self, scene: Scene) -> None:
        scene.do(c.DefineProject, agents_may_operate=True)
        key, _ = handed_in(scene)
        with pytest.raises(NotAllowed, match="in which an agent works"):
            scene.do(c.Approve, by=AGENT, task=key)
        with pytest.raises(NotAllowed, match="submitted by agent ann"):
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

    def test_an_agents_key_judges_no_work_of_its_own_person(self, scene: Scene) -> None:
        scene.do(c.DefineProject, agents_may_operate=True)
        review, tested = (self._by_key(scene, output) for output in (REVIEW, TESTS))
        for role, verdict in (("agent", NotAllowed), ("member", Outcome)):
            other = replace(CHECKER, role=role, user="ann", is_proven=True)
            for command in (
                c.TakeValidation(project=PROJECT, checker="x", task=tested),
                c.Reject(project=PROJECT, task=review, reason="no"),
                c.Approve(project=PROJECT, task=self._by_key(scene, REVIEW)),
            ):
                (answer,) = scene.run(command, by=other)
                assert isinstance(answer, verdict), (role, command, answer)
                assert not isinstance(answer, Outcome) or answer.ok
        self._by_key(scene, TESTS)
        mine = replace(CHECKER, user="ann")
        assert scene.do(c.TakeValidation, by=mine, checker="x").outcome == "NO_TASK"

    def test_a_check_that_another_took_is_not_judged_by_a_key_of_the_authors_person(self, scene: Scene) -> None:
        self._by_key(scene, TESTS)
        receipt = str(scene.do(c.TakeValidation, by=CHECKER, checker="vera").receipt)
        (answer,) = scene.run(c.Judge(project=PROJECT, receipt=receipt, ok=True), by=replace(CHECKER, user="ann"))
        assert isinstance(answer, NotAllowed)
        assert "and so is your key" in answer.message

    def test_nobody_judges_their_own_work_in_the_name_of_another(self, scene: Scene) -> None:
        """A key that ann made in the name of bob is as good as ann's."""
        review, other = self._by_key(scene, REVIEW), self._by_key(scene, REVIEW, by=replace(ANN, user="cid"))
        posing = Principal(role="member", user="bob", maker="ann", key="k-bob", address="10.0.0.3")
        for kind, more in ((c.Approve, {}), (c.Reject, {"reason": "no"})):
            assert code_of(scene.try_to(kind, task=review, by=posing, **more)) == "NOT_ALLOWED"
        assert scene.do(c.Approve, task=other, by=posing).outcome == "ACCEPTED"
        (decided,) = [row.decided_by for row in scene.rows(Validation) if row.decided_by]
        assert decided == "user:bob (key made by ann)"
        (event,) = scene.events(kind="task.completed")
        assert event.user == "bob (key made by ann)"
        plain = replace(posing, maker=None)
        assert scene.do(c.Approve, task=review, by=plain).outcome == "ACCEPTED"

    def test_the_author_adopts_no_result_that_waits_for_a_verdict(self, scene: Scene) -> None:
        key = self._by_key(scene, REVIEW)
        scene.do(c.Reject, task=key, reason="no")
        scene.pass_time(seconds=3600)
        author = replace(ANN, role="member")
        for who in (author, replace(author, agent=None, session=None, key="k-2", user="bob", maker="ann")):
            assert code_of(scene.try_to(c.Adopt, task=key, by=who)) == "NOT_ALLOWED"
        assert scene.do(c.Adopt, task=key, by=replace(author, agent=None, session=None, key="k-2")).ok

    def test_a_project_may_ask_for_the_review_of_another_person(self, scene: Scene) -> None:
        key = scene.do(c.CreateKey, project="", name="bot", by=Principal(role="admin", user="ann", key="k-ann")).key
        assert key is not None
        service = replace(ANN, user="bot", key=str(key["id"]))
        works = {by.user: self._by_key(scene, REVIEW, by=by) for by in (ANN, service)}
        ann, bob = (
            Principal(role="member", user=user, key=f"k-{user}-2", address="10.0.0.3") for user in ("ann", "bob")
        )
        nobody, here = Principal(role="owner", address="127.0.0.1"), Principal(user="ann")
        posing, agent = replace(bob, maker="ann"), replace(BO, user="cid")
        scene.do(c.DefineProject, review_other_person=True)
        for task in works.values():
            for who in (ann, nobody, here, posing, agent):
                for kind, more in ((c.Approve, {}), (c.Reject, {"reason": "no"})):
                    assert code_of(scene.try_to(kind, task=task, by=who, **more)) == "NOT_ALLOWED", (task, who)
        assert scene.do(c.Approve, task=works["ann"], by=bob).outcome == "ACCEPTED"
        assert scene.do(c.Reject, task=works["bot"], reason="no", by=bob).ok
        scene.pass_time(seconds=3600)
        assert code_of(scene.try_to(c.Adopt, task=works["bot"], by=ann)) == "NOT_ALLOWED"
        scene.do(c.DefineProject, review_other_person=False)
        assert scene.do(c.Adopt, task=works["bot"], by=ann).ok

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
        principal = Principal(role="agent", agent="somebody", session="else")
        for command in (
            c.Approve(project=PROJECT, task=review),
            c.Reject(project=PROJECT, task=review, reason="no"),
            c.TakeValidation(project=PROJECT, checker="x", task=tested),
            c.Judge(project=PROJECT, receipt=taken(scene), ok=True),
        ):
            (answer,) = scene.run(command, by=principal)
            assert isinstance(answer, NotAllowed), command
        assert scene.do(c.Approve, task=review).outcome == "ACCEPTED"

    def test_a_claim_of_the_next_best_keeps_the_key_it_was_made_with(self, scene: Scene) -> None:
        for count in (1, 4):  # from the second on the agent is known, and the short way is taken
            for _ in range(count):
                scene.add()
            granted = scene.next("ann", n=count, by=ANN)
            assert granted.outcome == "GRANTED"
        assert {claim.key for claim in scene.rows(Claim)} == {"k-ann"}

    def _by_key(self, scene: Scene, output: dict[str, Any], by: Principal = ANN) -> str:
        """A task whose result waits, claimed by Ann with her key."""
        key = scene.add(output=output)
        receipt = scene.claim(key, by=by).receipt
        assert scene.submit(str(receipt), "work").outcome == "VALIDATING"
        return key

"""The fence: which receipts may write, in which order they are refused, and which late results still count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.outcomes import CODES, Outcome
from tenure.core.records import Checkpoint, RetryPolicy
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, Scene, code_of, forged


class Verb(NamedTuple):
    kind: type[c.Command]
    fields: Mapping[str, Any] = {}

    def __call__(self, scene: Scene, receipt: str) -> Outcome:
        return scene.do(self.kind, by=AGENT, receipt=receipt, **self.fields)


LATE = {
    "submit": Verb(c.Submit, {"data": "late"}),
    "checkpoint": Verb(c.SaveCheckpoint, {"data": {"next": "go on"}}),
}
LIVE = {
    "renew": Verb(c.Renew),
    "start": Verb(c.Start),
    "progress": Verb(c.Progress, {"percent": 5}),
    "fail": Verb(c.Fail),
    "fail_with_trouble": Verb(c.Fail, {"error_class": "environment"}),
    "fail_over_budget": Verb(c.Fail, {"error_class": "budget_exceeded"}),
    "release": Verb(c.Release),
    "ask": Verb(c.Ask, {"question": "Why?"}),
    "spawn": Verb(c.Spawn, {"tasks": (NewTask(title="part"),)}),
    "spawn_and_wait": Verb(c.Spawn, {"tasks": (NewTask(title="part"),), "wait": True}),
    "wait": Verb(c.Wait),
    "land": Verb(c.Land, {"branch": "main", "old": "a" * 40, "new": "b" * 40}),
    "reserve": Verb(c.Reserve, {"patterns": ("env:staging",), "agent": "ann", "session": "s-ann"}),
    "put": Verb(
        c.PutArtifact, {"name": "a.txt", "type": "text/plain", "digest": "d" * 64, "size": 1, "since": 1 << 60}
    ),
    "open_secrets": Verb(c.OpenSecrets),
}
VERBS = LATE | LIVE
# Commands with a receipt that are judged otherwise: usage is booked as late, and the others are no claim's.
OTHER_RECEIPTS = (
    c.ReportUsage, c.RenewReservation, c.Unreserve, c.RenewValidation, c.Judge, c.Undecide,
)  # fmt: skip

every_verb = pytest.mark.parametrize("verb", VERBS)
every_live_verb = pytest.mark.parametrize("verb", LIVE)
every_late_verb = pytest.mark.parametrize("verb", LATE)

# What closes the window in which a claim that ended without its holder's word may still hand in.
CLOSERS: dict[str, Callable[[Scene, str], object]] = {
    "the next claim": lambda scene, key: scene.take(key, "bo"),
    "cancel": lambda scene, key: scene.do(c.Cancel, task=key),
    "cancel and undo": lambda scene, key: scene.do(c.Undo, command_id=scene.do(c.Cancel, task=key).command_id),
    "reassign": lambda scene, key: scene.know("bo").do(c.Reassign, task=key, agent="bo"),
    "a change of the spec": lambda scene, key: scene.do(c.Edit, task=key, changes={"spec": {"prompt": "new"}}),
    "a change of the description": lambda scene, key: scene.do(c.Edit, task=key, changes={"description": "new"}),
    "a change of the constraints": lambda scene, key: scene.do(
        c.Edit, task=key, changes={"constraints": {"region": "eu"}}
    ),
    "a change of the touches": lambda scene, key: scene.do(c.Edit, task=key, changes={"touches": ["a.py"]}),
    "a change of the output": lambda scene, key: scene.do(c.Edit, task=key, changes={"output": {"type": "json"}}),
    "a new epoch": lambda scene, key: scene.engine.new_epoch("restored"),
}


def unchanged_by(scene: Scene, verb: str, receipt: str) -> Outcome:
    """The answer of a verb that must change nothing."""
    before = scene.tables()
    answer = VERBS[verb](scene, receipt)
    assert scene.tables() == before
    assert not answer.ok
    assert answer.directive or answer.outcome == "NOT_FOUND"
    assert answer.message
    return answer


class Receipts(Stage):
    def test_every_command_with_a_receipt_is_tried_here(self) -> None:
        asked = {kind for kind in c.ALL if "receipt" in kind.__struct_fields__}
        assert {verb.kind for verb in VERBS.values()} == asked - {*OTHER_RECEIPTS}

    @every_verb
    def test_a_live_receipt_may_do_everything(self, scene: Scene, verb: str) -> None:
        assert VERBS[verb](scene, scene.take(scene.add())).ok

    # --- the order of refusals ------------------------------------------------------------------------------------

    @every_verb
    def test_an_unknown_task_is_not_found_whatever_else_is_wrong(self, scene: Scene, verb: str) -> None:
        receipt = scene.take(scene.add())
        wrong = forged(receipt, name="A-999", generation=9, epoch="00000000", nonce=bytes(16))
        assert unchanged_by(scene, verb, wrong).outcome == "NOT_FOUND"

    @every_verb
    def test_another_projects_receipt_looks_like_an_unknown_one(self, scene: Scene, verb: str) -> None:
        scene.do(c.DefineProject, project="other")
        foreign = scene.engine.do(
            c.Add(project="other", task=NewTask(title="theirs", key="B-077-theirs")),
        )
        assert foreign.outcome == "CREATED"
        receipt = scene.do(c.ClaimTask, project="other", task="B-077", agent="ann", session="s").receipt or ""
        unknown = unchanged_by(scene, verb, forged(receipt, name="B-078"))
        theirs = unchanged_by(scene, verb, receipt)
        assert theirs.outcome == "NOT_FOUND"
        assert theirs == Outcome(
            **{f: getattr(unknown, f) for f in unknown.__struct_fields__ if f != "message"},
            message=unknown.message.replace("B-078", "B-077"),
        )

    @every_verb
    def test_another_epoch_is_told_before_the_generation_and_the_nonce(self, scene: Scene, verb: str) -> None:
        receipt = scene.take(scene.add())
        for generation in (0, 1, 2):
            wrong = forged(receipt, epoch="00000000", generation=generation, nonce=bytes(16))
            assert unchanged_by(scene, verb, wrong).outcome == "STALE_EPOCH"

    @every_verb
    def test_an_older_generation_is_stale_whoever_presents_it(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        old = scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=60)
        scene.take(key, "bo")
        refused = unchanged_by(scene, verb, forged(old, nonce=bytes(16)))
        assert (refused.outcome, refused.current_generation) == ("STALE_GENERATION", 2)
        if verb != "submit":  # which keeps a genuine one's result
            assert unchanged_by(scene, verb, old).outcome == "STALE_GENERATION"

    @every_verb
    def test_an_agent_that_claims_again_cannot_write_with_its_older_receipt(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        old = scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=60)
        scene.take(key, "ann")
        assert VERBS[verb](scene, old).outcome == "STALE_GENERATION"
        assert (scene.task(key).state, scene.task(key).generation) == ("claimed", 2)

    @every_verb
    def test_a_generation_that_never_was_is_told_before_the_nonce(self, scene: Scene, verb: str) -> None:
        receipt = scene.take(scene.add())
        assert unchanged_by(scene, verb, forged(receipt, generation=2)).outcome == "FUTURE_GENERATION"
        assert unchanged_by(scene, verb, forged(receipt, generation=10**17)).outcome == "FUTURE_GENERATION"

    @every_verb
    def test_another_nonce_is_told_before_the_state(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        wrong = forged(receipt, nonce=bytes(16))
        assert unchanged_by(scene, verb, wrong).outcome == "SESSION_MISMATCH"
        scene.submit(receipt)
        assert unchanged_by(scene, verb, wrong).outcome == "SESSION_MISMATCH"

    @every_verb
    def test_one_byte_of_the_nonce_is_enough_to_be_refused(self, scene: Scene, verb: str) -> None:
        receipt = scene.take(scene.add())
        nonce = scene.last_claim("A-001").nonce
        for at in range(16):
            near = nonce[:at] + bytes([nonce[at] ^ 1]) + nonce[at + 1 :]
            assert unchanged_by(scene, verb, forged(receipt, nonce=near)).outcome == "SESSION_MISMATCH"

    @every_verb
    def test_a_receipt_is_of_no_use_for_another_task(self, scene: Scene, verb: str) -> None:
        one, other = scene.add(), scene.add()
        receipt = scene.take(one)
        scene.take(other)
        assert unchanged_by(scene, verb, forged(receipt, name="A-002")).outcome == "SESSION_MISMATCH"

    @every_live_verb
    def test_a_completed_task_refuses_its_holder(self, scene: Scene, verb: str) -> None:
        receipt = scene.take(scene.add())
        scene.submit(receipt)
        refused = unchanged_by(scene, verb, receipt)
        assert (refused.outcome, refused.directive) == ("TASK_ALREADY_COMPLETED", "cancel")

    @every_verb
    def test_a_cancelled_task_tells_its_holder_to_stop(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Cancel, task=key)
        if verb == "submit":
            answer = scene.submit(receipt)
            assert (answer.outcome, answer.work_lost) == ("TASK_CANCELLED", True)
            assert len(scene.results(key)) == 1
            return
        refused = unchanged_by(scene, verb, receipt)
        assert (refused.outcome, refused.directive) == ("TASK_CANCELLED", "cancel")

    @every_live_verb
    def test_an_expired_lease_is_told_with_the_way_on(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=60)
        scene.engine.sweep()
        refused = unchanged_by(scene, verb, receipt)
        assert refused.outcome == "ALREADY_EXPIRED"
        assert refused.hint
        assert scene.claim(key, "ann").outcome == "GRANTED"

    @every_live_verb
    def test_a_recovered_claim_refuses_its_holder(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Recover, task=key)
        assert unchanged_by(scene, verb, receipt).outcome == "NO_CLAIM"

    @every_live_verb
    def test_a_paused_task_tells_its_holder_to_pause(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Pause, task=key)
        assert unchanged_by(scene, verb, receipt).directive == "pause"

    @every_verb
    def test_receipts_of_an_earlier_epoch_are_void(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.engine.new_epoch("restored")
        scene.take(key, "bo")  # another claim since: the epoch is reported first all the same
        answer = VERBS[verb](scene, receipt)
        assert (answer.outcome, answer.directive) == ("STALE_EPOCH", "abort")
        assert [r.data for r in scene.results(key)] == (["late"] if verb == "submit" else [])
        assert scene.task(key).agent == "bo"

    def test_a_receipt_is_good_for_any_session_that_presents_it(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann", session="one")
        other = c.Principal(role="agent", agent="zoe", session="two")
        assert scene.do(c.Submit, by=other, receipt=receipt, data=1).outcome == "ACCEPTED"
        assert scene.results(key)[0].agent == "ann"

    # --- late results ---------------------------------------------------------------------------------------------

    @every_late_verb
    def test_a_holder_whose_lease_ran_out_may_still_hand_in(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.pass_time(hours=3)
        assert VERBS[verb](scene, receipt).ok
        if verb == "submit":
            (result,) = scene.results(key)
            assert (result.accepted, result.late) == (True, True)
            assert scene.last_claim(key).reason == "EXPIRED"
            assert scene.last_claim(key).result_accepted is True
        else:
            assert scene.state(key) == "ready"
            assert scene.row(Checkpoint, scene.task(key).id).data == {"next": "go on"}

    @every_late_verb
    def test_a_holder_whose_task_was_paused_may_still_hand_in(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Pause, task=key)
        assert VERBS[verb](scene, receipt).ok
        assert scene.state(key) == ("completed" if verb == "submit" else "paused")

    @every_late_verb
    def test_a_paused_and_resumed_claim_may_still_submit_late(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Pause, task=key)
        scene.do(c.Resume, task=key)
        assert VERBS[verb](scene, receipt).ok

    @every_late_verb
    def test_a_task_that_backs_off_takes_the_late_result(self, scene: Scene, verb: str) -> None:
        key = scene.add(on_lost="back_off")
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        assert scene.state(key) == "retrying"
        assert VERBS[verb](scene, receipt).ok
        assert scene.state(key) == ("completed" if verb == "submit" else "retrying")

    @every_late_verb
    @pytest.mark.parametrize("ended_by", ["release", "fail", "wait", "recover", "abort"])
    def test_a_claim_that_ended_by_a_command_may_not_submit_late(self, scene: Scene, verb: str, ended_by: str) -> None:
        key = scene.add(retry=RetryPolicy(strategy="immediate"))
        receipt = scene.take(key)
        by_person: dict[str, type[c.Command]] = {"recover": c.Recover, "abort": c.Abort}
        if ended_by in by_person:
            scene.do(by_person[ended_by], task=key)
        else:
            VERBS[ended_by](scene, receipt)
        answer = VERBS[verb](scene, receipt)
        assert answer.outcome == "NO_CLAIM"
        assert [(r.accepted, r.work_lost) for r in scene.results(key)] == ([(False, True)] if verb == "submit" else [])

    @every_late_verb
    @pytest.mark.parametrize("closed_by", CLOSERS)
    def test_the_window_closes(self, scene: Scene, verb: str, closed_by: str) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=61)
        CLOSERS[closed_by](scene, key)
        answer = VERBS[verb](scene, receipt)
        assert CODES[answer.outcome].kind == "stale"
        assert all(not r.accepted for r in scene.results(key))
        assert (answer.work_lost is True) == (verb == "submit")

    @pytest.mark.parametrize("change", ["title", "tags", "priority", "deadline", "metadata"])
    def test_an_edit_of_anything_else_leaves_the_window_open(self, scene: Scene, change: str) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        values = {"tags": ["x"], "priority": 5, "deadline": scene.now + 1, "metadata": {"a": 1}}
        scene.do(c.Edit, task=key, changes={change: values.get(change, "other")})
        assert scene.submit(receipt).outcome == "ACCEPTED"

    @pytest.mark.parametrize("changes", [None, {"spec": {"prompt": "easier"}}])
    def test_retrying_a_dead_letter_closes_the_window(self, scene: Scene, changes: dict[str, object] | None) -> None:
        key = scene.add(max_attempts=1)
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        scene.do(c.Retry, task=key, changes=changes)
        refused = scene.submit(receipt)
        assert (refused.outcome, refused.work_lost) == ("NO_CLAIM", True)
        assert scene.state(key) == "ready"

    def test_adopting_another_result_closes_the_window(self, scene: Scene) -> None:
        key = scene.add()
        first = scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=61)
        second = scene.take(key, "bo", lease=60)
        scene.submit(first, "ann's")
        scene.pass_time(seconds=61)
        scene.do(c.Adopt, task=key)
        assert scene.submit(second, "bo's").outcome == "TASK_ALREADY_COMPLETED"
        assert [r.data for r in scene.results(key) if r.accepted] == ["ann's"]

    def test_a_reset_closes_the_window(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        scene.submit(receipt, "late")
        scene.do(c.Reset, task=key)
        refused = scene.submit(receipt, "another")
        assert refused.outcome == "NO_CLAIM"
        assert scene.state(key) == "ready"

    def test_a_dead_letter_refuses_keeps_the_result_and_can_adopt_it(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        refused = scene.submit(receipt, "nearly lost")
        assert (refused.outcome, refused.work_lost, refused.state) == ("NO_CLAIM", True, "dead_lettered")
        assert "adopt" in (refused.hint or "")
        adopted = scene.do(c.Adopt, task=key, note="good enough")
        assert scene.state(key) == "completed"
        assert [(r.data, r.id) for r in scene.results(key) if r.accepted] == [("nearly lost", adopted.result)]

    def test_at_most_three_refused_results_are_kept_for_a_generation(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=61)
        scene.take(key, "bo")
        for number in range(5):
            refused = scene.submit(receipt, number)
            assert (refused.outcome, refused.work_lost) == ("STALE_GENERATION", True)
            assert (refused.result is not None) == (number < 3)
        assert sorted(r.data for r in scene.results(key)) == [0, 1, 2]

    def test_the_same_refused_result_is_kept_once(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=61)
        scene.take(key, "bo")
        for _ in range(3):
            assert scene.submit(receipt, "same").work_lost is True
        assert len(scene.results(key)) == 1

    def test_a_forged_receipt_leaves_no_result_behind(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        refused = scene.submit(forged(receipt, nonce=bytes(16)))
        assert (refused.outcome, refused.work_lost) == ("SESSION_MISMATCH", False)
        assert scene.results(key) == []

    # --- while held -----------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("verb", ["renew", "start", "progress", "checkpoint", "spawn", "land", "reserve"])
    def test_the_first_write_starts_the_work(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        assert scene.state(key) == "claimed"
        scene.pass_time(seconds=5)
        VERBS[verb](scene, receipt)
        assert (scene.state(key), scene.task(key).started_at) == ("running", scene.now)

    @pytest.mark.parametrize("verb", ["start", "progress", "checkpoint", "spawn", "land", "reserve"])
    def test_a_command_renews_the_claim_whose_receipt_it_presents(self, scene: Scene, verb: str) -> None:
        key, other = scene.add(), scene.add()
        receipt = scene.take(key, lease=60)
        scene.take(other, lease=60)
        scene.pass_time(seconds=59)
        VERBS[verb](scene, receipt)
        scene.pass_time(seconds=59)
        assert scene.states(key, other) == ["running", "ready"]

    def test_presenting_a_receipt_never_shortens_the_lease(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        until = scene.do(c.Renew, receipt=receipt, lease=600).lease_until
        assert scene.do(c.Start, receipt=receipt).lease_until == until

    def test_a_renewal_may_shorten_the_lease(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=600)
        assert scene.do(c.Renew, receipt=receipt, lease=30).lease_until == scene.now + 30_000_000
        scene.pass_time(seconds=30)
        assert scene.state(key) == "ready"

    def test_renewals_and_presence_write_no_event(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        scene.do(c.Start, receipt=receipt)
        before = len(scene.events())
        for _ in range(5):
            scene.pass_time(seconds=100)
            scene.do(c.Renew, receipt=receipt)
            scene.do(c.Heartbeat, agent="ann", session="s-ann")
        assert len(scene.events()) == before

    def test_the_next_holder_gets_the_last_checkpoint_and_who_wrote_it(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann", lease=60)
        for step in ("read", "write"):
            assert scene.do(c.SaveCheckpoint, receipt=receipt, data={"next": step}).outcome == "OK"
        scene.pass_time(seconds=60)
        assert scene.claim(key, "bo").checkpoint == {
            "data": {"next": "write"},
            "generation": 1,
            "agent": "ann",
            "at": scene.now - 60_000_000,
        }

    def test_progress_is_shown_and_forgotten_with_the_next_claim(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.do(c.Progress, receipt=receipt, percent=40, step="parsing")
        scene.do(c.Progress, receipt=receipt, percent=50)
        assert (scene.task(key).percent, scene.task(key).step) == (50, "parsing")
        scene.pass_time(seconds=60)
        scene.take(key, "bo")
        assert (scene.task(key).percent, scene.task(key).step) == (None, None)

    def test_nobody_but_the_claimer_ever_sees_the_receipt(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "ann")
        for agent in ("ann", "bo"):
            denied = scene.claim(key, agent)
            assert (denied.outcome, denied.receipt, denied.yours) == ("DENIED_ACTIVE_CLAIM", None, agent == "ann")

    def test_a_malformed_receipt_is_an_error_that_shows_the_shape(self, scene: Scene) -> None:
        for text in ("", "A-001", "A-001@1", "A-001@1:", "A-001@x:AAAA", "A-001@1:!!", "@1:" + "0" * 32):
            answer = scene.try_to(c.Renew, receipt=text)
            assert code_of(answer) == "INVALID_INPUT"
            assert "B-003@7:TOKEN" in answer.message

"""Signed submissions: of a session with a public key nothing counts but what it signed."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.client.signed_submits import signed
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import Submit, Totals
from tenure.core.commands.holder_commands import ResultSignature
from tenure.core.errors import InvalidInput
from tenure.core.ids import parse_receipt
from tenure.core.outcomes import Outcome
from tenure.core.records import Result, Session, Signature, Task, replace
from tenure.core.signed_results import fingerprint, message
from tenure.engine.archive import mover
from tenure.engine.reads.query_table import read_query
from tenure.sealing.signing import SigningKey, is_signed
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene

KEY, OTHER = SigningKey(b"\x01" * 32), SigningKey(b"\x02" * 32)


def keyed(scene: Scene, agent: str = "ann", key: SigningKey = KEY) -> None:
    scene.do(c.Register, agent=agent, session=f"s-{agent}", public_key=key.public)


def submit_of(receipt: str, key: SigningKey = KEY, artifacts: dict[str, str] | None = None, **fields: Any) -> Submit:
    command = Submit(project=PROJECT, receipt=receipt, **{"data": "x", "request_id": f"r-{receipt[:9]}", **fields})
    return signed(command, parse_receipt(receipt), "local", artifacts or {}, key)


def sent(scene: Scene, command: Submit) -> Outcome:
    (answer,) = scene.run(command)
    assert isinstance(answer, Outcome), answer
    return answer


def still_held(scene: Scene, key: str, generation: int = 1) -> bool:
    task = scene.task(key)
    return task.state in ("claimed", "running") and task.generation == generation and scene.rows(Result) == []


class Signing(Stage):
    def test_a_signed_result_is_accepted_and_its_signature_kept_with_it(self, scene: Scene) -> None:
        keyed(scene)
        key = scene.add()
        receipt = scene.take(key)
        command = submit_of(receipt, data={"b": [1, 2.5, "é"], "a": None}, summary="done")
        answer = sent(scene, command)
        assert answer.outcome == "ACCEPTED", answer
        (row,) = scene.rows(Signature)
        assert command.signature is not None
        assert (row.id, row.value, row.public_key) == (answer.result, command.signature.value, KEY.public)
        (entry,) = read_query(scene.engine, q.History(project=PROJECT, task=key))
        (shown,) = entry["signatures"]
        assert (shown["result"], shown["fingerprint"]) == (answer.result, fingerprint(KEY.public))
        covered = message(
            tenant="local", project=PROJECT, task="A-001", generation=1, epoch=parse_receipt(receipt).epoch,
            data={"a": None, "b": [1, 2.5, "é"]}, summary="done", artifacts={}, request_id=shown["request_id"],
        )  # fmt: skip
        assert is_signed(shown["public_key"], shown["signature"], covered)

    def test_what_is_not_signed_or_signed_by_another_is_refused_and_the_claim_stays(self, scene: Scene) -> None:
        keyed(scene)
        key = scene.add()
        receipt = scene.take(key)
        good = submit_of(receipt)
        assert good.signature is not None
        flipped = ("0" if good.signature.value[0] != "0" else "1") + good.signature.value[1:]
        for bad in (
            replace(good, signature=None),  # stripped
            submit_of(receipt, OTHER),  # another key
            replace(good, signature=ResultSignature(value=flipped)),  # forged
            replace(good, signature=ResultSignature(value="00" * 64)),
            replace(good, signature=ResultSignature(value="x")),
            replace(good, data="y"),  # another result
            replace(good, summary="y"),
            replace(good, request_id="another"),
            replace(good, signature=replace(good.signature, artifacts={"a": "d" * 64})),
        ):
            answer = sent(scene, bad)
            assert (answer.outcome, answer.work_lost, answer.directive) == ("BAD_SIGNATURE", False, "continue"), bad
            assert still_held(scene, key)
        assert sent(scene, good).outcome == "ACCEPTED"

    def test_a_signature_is_good_for_one_task_generation_and_epoch(self, scene: Scene) -> None:
        keyed(scene)
        one, two = scene.add("one"), scene.add("two")
        first, other = scene.take(one, lease=60), scene.take(two)
        assert sent(scene, replace(submit_of(first), receipt=other)).outcome == "BAD_SIGNATURE"  # another task
        scene.pass_time(seconds=61)
        again = scene.take(one)
        replayed = replace(submit_of(first), receipt=again)
        assert sent(scene, replayed).outcome == "BAD_SIGNATURE"  # another generation
        assert still_held(scene, one, 2)
        scene.engine.new_epoch("restored")
        third = scene.take(one)
        assert sent(scene, replace(submit_of(again), receipt=third)).outcome == "BAD_SIGNATURE"
        stale = replace(parse_receipt(third), epoch=parse_receipt(first).epoch)  # as in the epoch before
        forged = signed(submit_of(third), stale, "local", {}, KEY)
        assert sent(scene, forged).outcome == "BAD_SIGNATURE"  # another epoch
        assert sent(scene, signed(submit_of(third), parse_receipt(third), "other", {}, KEY)).outcome == "BAD_SIGNATURE"
        assert sent(scene, submit_of(third)).outcome == "ACCEPTED"

    def test_a_late_result_and_a_stale_one_must_be_signed_too(self, scene: Scene) -> None:
        keyed(scene)
        key = scene.add()
        first = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        assert sent(scene, replace(submit_of(first), signature=None)).outcome == "BAD_SIGNATURE"
        second = scene.take(key, "bo")
        assert scene.rows(Result) == []
        stale = sent(scene, submit_of(first))
        assert (stale.outcome, stale.work_lost) == ("STALE_GENERATION", True)
        assert [row.generation for row in scene.rows(Signature)] == [1]
        assert scene.submit(second, "y").outcome == "ACCEPTED"  # bo's session signs nothing

    def test_artifacts_are_covered_by_their_digests(self, scene: Scene) -> None:
        keyed(scene)
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.PutArtifact, receipt=receipt, name="a", digest="d" * 64, size=1, since=scene.now)
        for wrong in ({}, {"a": "e" * 64}, {"a": "d" * 64, "b": "d" * 64}):
            assert sent(scene, submit_of(receipt, artifacts=wrong)).outcome == "BAD_SIGNATURE"
        assert sent(scene, submit_of(receipt, artifacts={"a": "d" * 64})).outcome == "ACCEPTED"

    def test_a_result_that_waits_for_its_verdict_keeps_its_signature(self, scene: Scene) -> None:
        keyed(scene)
        key = scene.add(output={"validation": "review"})
        receipt = scene.take(key)
        assert sent(scene, replace(submit_of(receipt), signature=None)).outcome == "BAD_SIGNATURE"
        assert sent(scene, submit_of(receipt)).outcome == "VALIDATING"
        scene.do(c.Approve, task=key)
        assert (scene.state(key), len(scene.rows(Signature))) == ("completed", 1)

    def test_the_same_result_again_gets_the_same_answer(self, scene: Scene) -> None:
        keyed(scene)
        receipt = scene.take(scene.add())
        command = submit_of(receipt, usage=(Totals(model="opus", fresh=1),))
        first, again = sent(scene, command), sent(scene, command)
        assert (first.outcome, again.outcome, again.again) == ("ACCEPTED", "ACCEPTED", True)
        assert len(scene.rows(Signature)) == 1
        assert sent(scene, replace(command, signature=None)).outcome == "BAD_SIGNATURE"

    def test_a_key_is_registered_once_and_before_the_first_claim(self, scene: Scene) -> None:
        keyed(scene)
        keyed(scene)
        with pytest.raises(InvalidInput, match="a new key is a new session"):
            keyed(scene, key=OTHER)
        scene.take(scene.add(), "bo")
        with pytest.raises(InvalidInput, match="before its first claim"):
            keyed(scene, "bo")
        for bad in ("", "zz" * 32, KEY.public.upper(), KEY.public[:-1]):
            with pytest.raises(InvalidInput, match="64 hex digits"):
                scene.do(c.Register, agent="cy", session="s-cy", public_key=bad)
        with pytest.raises(InvalidInput, match="needs a session"):
            scene.do(c.Register, agent="cy", public_key=KEY.public)
        assert [e.kind for e in scene.events(kind=("session.keyed",))] == ["session.keyed"]

    def test_a_weak_key_is_refused_and_one_that_is_stored_signs_nothing(self, scene: Scene) -> None:
        """The neutral point: one fixed signature fits every text. Versions before this rule registered it."""
        weak, forged = "01" + "00" * 31, "01" + "00" * 63
        with pytest.raises(InvalidInput, match="small order"):
            scene.do(c.Register, agent="ann", session="s-ann", public_key=weak)
        keyed(scene)
        stored = scene.stored(Session, "s-ann")
        scene.put(stored, replace(stored, public_key=weak))
        receipt = scene.take(scene.add())
        command = replace(submit_of(receipt), signature=ResultSignature(value=forged))
        answer = sent(scene, command)
        assert (answer.outcome, answer.directive) == ("BAD_SIGNATURE", "continue")
        assert "its signature proves nothing" in answer.message
        assert still_held(scene, "A-001")
        damaged = scene.stored(Session, "s-ann")
        scene.put(damaged, replace(damaged, public_key=KEY.public))  # as the log has it

    def test_a_session_that_signed_signs_after_its_end_too(self, scene: Scene) -> None:
        """Else anybody could go on under its name, unsigned."""
        keyed(scene)
        scene.do(c.Leave, session="s-ann")
        receipt = scene.take(scene.add())
        assert sent(scene, replace(submit_of(receipt), signature=None)).outcome == "BAD_SIGNATURE"
        assert sent(scene, submit_of(receipt)).outcome == "ACCEPTED"

    def test_a_signature_of_a_session_without_a_key_is_refused(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        assert sent(scene, submit_of(receipt)).outcome == "BAD_SIGNATURE"
        assert scene.submit(receipt, "x").outcome == "ACCEPTED"

    def test_claims_of_sessions_that_sign_never_take_the_fast_path(self, scene: Scene) -> None:
        """Claimed one by one and many at once, beside sessions that sign nothing."""
        keyed(scene)
        for _ in range(6):
            scene.add()
        who = [("ann", "s-ann"), ("bo", "s-bo"), ("ann", "s-ann"), ("bo", "s-bo")]
        answers = scene.run(*(c.ClaimNext(project=PROJECT, agent=agent, session=session) for agent, session in who))
        receipts = [str(answer.receipt) for answer in answers]  # type: ignore[union-attr]
        plain = {task.session: task.plain for task in scene.rows(Task)}
        assert plain["s-ann"] is False
        unsigned = scene.run(*(Submit(project=PROJECT, receipt=receipt, data="x") for receipt in receipts))
        outcomes = [answer.outcome for answer in unsigned]  # type: ignore[union-attr]
        assert outcomes == ["BAD_SIGNATURE", "ACCEPTED"] * 2
        signed_ = scene.run(*(submit_of(receipt) for receipt in receipts[::2]))
        assert [answer.outcome for answer in signed_] == ["ACCEPTED", "ACCEPTED"]  # type: ignore[union-attr]

    def test_a_session_that_claimed_before_others_sign_is_not_bothered(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), "bo")
        keyed(scene)
        assert scene.submit(receipt, "x").outcome == "ACCEPTED"

    def test_signatures_go_to_the_archive_with_their_task(self, scene: Scene) -> None:
        keyed(scene)
        key = scene.add()
        sent(scene, submit_of(scene.take(key)))
        before = read_query(scene.engine, q.History(project=PROJECT, task=key))
        assert mover.move_all(scene.engine, PROJECT, older=0).tasks == 1
        assert scene.rows(Signature) == []
        assert read_query(scene.engine, q.History(project=PROJECT, task=key)) == before

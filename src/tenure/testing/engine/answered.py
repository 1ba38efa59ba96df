"""A holder's requests sent again: one effect and the same answer, whatever has happened to the task since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core.commands import Command, NewTask, Principal
from tenure.core.commands.command import first_form
from tenure.core.errors import RequestIdReused, TooLarge
from tenure.core.inputs import LARGEST_CLAIM_METADATA
from tenure.core.records import Request, Reservation, Task, replace
from tenure.engine.reads.tasks import history
from tenure.engine.runtime.decision import LARGEST_ANSWERED, MOST_ANSWERED
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene, code_of

VERBS: dict[str, tuple[type[Command], dict[str, Any]]] = {
    "start": (c.Start, {}),
    "progress": (c.Progress, {"percent": 5, "step": "on the way"}),
    "checkpoint": (c.SaveCheckpoint, {"data": {"next": "go on"}}),
    "usage": (c.ReportUsage, {"model": "opus", "fresh": 10}),
    "land": (c.Land, {"branch": "main", "old": "a" * 40, "new": "b" * 40}),
    "fail": (c.Fail, {"message": "broken"}),
    "fail with trouble": (c.Fail, {"error_class": "environment"}),
    "fail over budget": (c.Fail, {"error_class": "budget_exceeded"}),
    "release": (c.Release, {"reason": "later"}),
    "ask": (c.Ask, {"question": "Why?"}),
    "spawn": (c.Spawn, {"tasks": (NewTask(title="part"),)}),
    "spawn and wait": (c.Spawn, {"tasks": (NewTask(title="part"),), "wait": True}),
    "wait": (c.Wait, {}),
    "submit": (c.Submit, {"data": {"a": 1}}),
}
OTHER: dict[type[Command], dict[str, Any]] = {
    c.Progress: {"percent": 6}, c.SaveCheckpoint: {"data": {}}, c.ReportUsage: {"model": "opus", "fresh": 11},
    c.Land: {"branch": "main", "old": "a" * 40, "new": "c" * 40}, c.Fail: {"message": "other"},
    c.Ask: {"question": "How?"}, c.Release: {"reason": "other"}, c.Spawn: {"tasks": (NewTask(title="other"),)},
    c.Submit: {"data": {"a": 2}},
}  # fmt: skip


def taken_over(scene: Scene, key: str) -> None:
    """However the claim ended: another holds the task, and the receipt is stale."""
    if scene.state(key) == "completed":
        scene.do(c.Reset, task=key)
    if scene.state(key) in ("claimed", "running"):
        scene.do(c.Recover, task=key)
    if any(pause.cause == "question" for pause in scene.task(key).pauses):
        scene.do(c.Answer, task=key, text="Because.")
    if scene.state(key) == "paused":
        scene.do(c.Resume, task=key, budget=True)
    for child in [t.key for t in scene.rows(Task) if t.parent and t.state == "ready"]:
        scene.finish(child, agent="cy")
    scene.pass_time(minutes=20)
    scene.take(key, "bo")


def completed(scene: Scene, key: str) -> None:
    if scene.state(key) == "completed":
        return
    taken_over(scene, key)
    scene.do(c.Recover, task=key)
    scene.finish(key, agent="dee")


SINCE: dict[str, Callable[[Scene, str], object]] = {
    "nothing": lambda scene, key: None,
    "another has claimed": taken_over,
    "it was completed": completed,
    "a new epoch": lambda scene, key: scene.engine.new_epoch("a failover"),
    "it was cancelled": lambda scene, key: scene.try_to(c.Cancel, task=key),
}


class AnsweredRequests(Stage):
    @pytest.mark.parametrize("since", SINCE)
    @pytest.mark.parametrize("verb", VERBS)
    def test_a_request_sent_again_has_one_effect_and_the_same_answer(self, scene: Scene, verb: str, since: str) -> None:
        kind, fields = VERBS[verb]
        key = scene.add(max_attempts=20)
        receipt = scene.take(key)
        first = scene.do(kind, by=AGENT, receipt=receipt, request_id="r1", **fields)
        assert (first.ok, first.again) == (True, False)
        SINCE[since](scene, key)
        before = scene.tables()
        again = scene.do(kind, by=AGENT, receipt=receipt, request_id="r1", trace_id="t9", **fields)
        assert scene.tables() == before
        assert (again.outcome, again.again) == (first.outcome, True)
        if kind is not c.Submit:  # a result that was accepted says where the task is now
            trimmed = ("again", "tasks")
            assert without(again, *trimmed) == without(first, *trimmed)
            assert [t["key"] for t in again.tasks or ()] == [t["key"] for t in first.tasks or ()]
        if kind in OTHER:
            with pytest.raises(RequestIdReused, match="r1"):
                scene.do(kind, by=AGENT, receipt=receipt, request_id="r1", **OTHER[kind])
        assert scene.tables() == before
        assert scene.rows(Request) == []

    def test_another_verb_with_the_same_request_id_is_refused(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        scene.do(c.Progress, receipt=receipt, percent=1, request_id="r1")
        before = scene.tables()
        with pytest.raises(RequestIdReused, match="r1"):
            scene.do(c.Fail, receipt=receipt, request_id="r1")
        assert scene.tables() == before

    def test_a_repeat_in_the_same_batch_is_one_request(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        command = c.Progress(project=PROJECT, receipt=receipt, percent=1, request_id="r1")
        answers = [a for a in scene.run(command, command, command) if not isinstance(a, Exception)]
        assert [a.again for a in answers] == [False, True, True]
        assert scene.log(key).count("task.progress") == 1

    def test_a_claim_remembers_its_last_requests_and_no_more(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        for n in range(MOST_ANSWERED + 4):
            scene.do(c.Progress, receipt=receipt, percent=n, request_id=f"r{n}")
        assert [a.id for a in scene.last_claim(key).requests] == [f"r{n}" for n in range(4, MOST_ANSWERED + 4)]
        scene.do(c.Recover, task=key)
        assert scene.do(c.Progress, receipt=receipt, percent=4, request_id="r4").again
        assert scene.do(c.Progress, receipt=receipt, percent=3, request_id="r3").outcome == "NO_CLAIM"

    def test_what_a_claim_remembers_stays_small_however_much_was_answered(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        tasks: tuple[NewTask, ...] = ()
        for n in range(5):
            tasks = tuple(NewTask(title=f"{'long ' * 48}{n}-{k}", name=f"{n}-{k}") for k in range(40))
            scene.do(c.Spawn, receipt=receipt, tasks=tasks, request_id=f"r{n}")
        kept = scene.last_claim(key).requests
        assert kept[-1].id == "r4"
        assert len(msgspec.json.encode(kept[:-1])) <= LARGEST_ANSWERED + 10
        assert 1 < len(kept) < 5
        again = scene.do(c.Spawn, receipt=receipt, tasks=tasks, request_id="r4")
        assert (again.again, len(again.tasks or ())) == (True, 40)

    def test_a_refused_result_is_refused_in_the_same_words_again(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        scene.take(key, "bo")
        first = scene.submit(receipt, "late", request_id="r1")
        assert (first.outcome, first.work_lost) == ("STALE_GENERATION", True)
        before = scene.tables()
        again = scene.submit(receipt, "late", request_id="r1")
        assert without(again, "again") == without(first, "again")
        assert scene.tables() == before
        with pytest.raises(RequestIdReused):
            scene.submit(receipt, "other", request_id="r1")

    def test_what_was_denied_is_judged_again(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        assert scene.do(c.Progress, receipt=receipt, percent=1, request_id="r1").outcome == "ALREADY_EXPIRED"
        assert scene.last_claim(key).requests == ()

    def test_a_forged_receipt_is_told_nothing(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Release, receipt=receipt, request_id="r1")
        wrong = receipt[:-4] + ("0000" if receipt[-4:] != "0000" else "1111")
        assert scene.do(c.Release, receipt=wrong, request_id="r1").outcome in ("SESSION_MISMATCH", "STALE_EPOCH")

    def test_another_agents_answer_is_not_told_to_one_that_is_proven(self, scene: Scene) -> None:
        receipt = scene.take(scene.add(), "ann")
        scene.do(c.Progress, receipt=receipt, percent=1, request_id="r1")
        bo = Principal(role="agent", agent="bo", is_proven=True)
        answer = scene.try_to(c.Progress, receipt=receipt, percent=1, request_id="r1", by=bo)
        assert code_of(answer) == "NOT_ALLOWED"

    # --- what grants something live is judged first ---------------------------------------------------------------

    def test_a_zombies_repeated_reserve_is_refused(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        ask: dict[str, Any] = {"receipt": receipt, "patterns": ("env:x",), "agent": "ann", "session": "s-ann"}
        ask["request_id"] = "r1"
        first = scene.do(c.Reserve, **ask)
        again = scene.do(c.Reserve, **ask)
        assert (first.outcome, again.outcome, again.again) == ("GRANTED", "GRANTED", True)
        scene.pass_time(seconds=61)
        assert scene.do(c.Reserve, **ask).outcome == "ALREADY_EXPIRED"
        scene.take(key, "bo")
        assert scene.do(c.Reserve, **ask).outcome == "STALE_GENERATION"
        assert scene.rows(Reservation) == []

    def test_a_reservation_that_ran_out_is_not_granted_again_by_its_request(self, scene: Scene) -> None:
        ask: dict[str, Any] = {"patterns": ("env:x",), "agent": "ann", "session": "s-ann", "lease": 60}
        ask["request_id"] = "r1"
        first = scene.do(c.Reserve, **ask)
        again = scene.do(c.Reserve, **ask)
        assert (again.outcome, again.again, again.receipt) == ("GRANTED", True, first.receipt)
        scene.pass_time(seconds=60)
        scene.do(c.Reserve, patterns=("env:x",), agent="bo", session="s-bo")
        assert scene.do(c.Reserve, **ask).outcome == "NOT_FOUND"
        scene.engine.new_epoch("a failover")

    def test_a_stale_renewal_is_refused_whatever_it_has_noticed_before(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        assert scene.do(c.Renew, receipt=receipt, request_id="r1").outcome == "RENEWED"
        scene.pass_time(seconds=61)
        scene.take(key, "bo")
        assert scene.do(c.Renew, receipt=receipt, request_id="r1").outcome == "STALE_GENERATION"

    # --- what is kept of a claim and a result ---------------------------------------------------------------------

    def test_what_a_claimer_says_of_itself_is_in_the_history(self, scene: Scene) -> None:
        metadata = {"ticket": "T-7", "host": {"name": "ci"}}
        scene.add()
        first = scene.next("ann", metadata=metadata, request_id="r1")
        assert scene.next("ann", metadata=metadata, request_id="r1").receipt == first.receipt
        with pytest.raises(RequestIdReused):
            scene.next("ann", metadata={"ticket": "T-8"}, request_id="r1")
        key = str((first.task or {})["key"])
        past = scene.engine.read_settled((PROJECT,), lambda work: history(work, PROJECT, key))
        assert [entry["metadata"] for entry in past] == [metadata]
        with pytest.raises(TooLarge, match="metadata"):
            scene.claim(scene.add(), metadata={"text": "x" * LARGEST_CLAIM_METADATA})

    def test_every_result_has_a_work_product_of_its_own(self, scene: Scene) -> None:
        products = []
        for data in (None, None, "same", "same"):
            answer = scene.submit(scene.take(scene.add()), data)
            assert answer.work_product is not None
            products.append(answer.work_product[-6:])
        assert len(set(products)) == 4
        assert all(set(tail) <= set("0123456789abcdef") for tail in products)

    def test_usage_of_a_stale_holder_that_adds_nothing_is_late_all_the_same(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        assert scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=10).late is None
        scene.pass_time(seconds=61)
        scene.take(key, "bo")
        for fresh in (0, 10, 11):
            assert scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=fresh).late is True

    @pytest.mark.parametrize("tasks", [0, 1])
    def test_a_claim_in_anothers_session_is_refused_whether_or_not_there_is_work(
        self, scene: Scene, tasks: int
    ) -> None:
        for agent in ("ann", "bo"):
            scene.do(c.Register, agent=agent, session=f"s-{agent}")
        for _ in range(tasks):
            scene.add()
        ann = Principal(role="agent", agent="ann", is_proven=True)
        answer = scene.try_to(c.ClaimNext, agent="ann", session="s-bo", by=ann)
        assert code_of(answer) == "NOT_ALLOWED"

    # --- digests --------------------------------------------------------------------------------------------------

    def test_a_claim_of_an_earlier_version_is_still_known_by_its_request(self, scene: Scene) -> None:
        key = scene.add()
        first = scene.claim(key, request_id="r1", lease=60)
        command = c.ClaimTask(project=PROJECT, task=key, agent="ann", session="s-ann", request_id="r1", lease=60.0)
        claim = scene.last_claim(key)
        scene.broken = True  # the log has the digest of today
        scene.put(claim, replace(claim, request_hash=first_form(command)))
        assert scene.claim(key, request_id="r1", lease=60).receipt == first.receipt
        with pytest.raises(RequestIdReused):
            scene.claim(key, request_id="r1", lease=61)

    def test_an_answer_of_an_earlier_version_is_still_known_by_its_request(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Note, task=key, text="one", request_id="r1")
        (row,) = scene.rows(Request)
        command = c.Note(project=PROJECT, task=key, text="one", request_id="r1")
        scene.put(row, replace(row, digest=first_form(command)))
        assert scene.do(c.Note, task=key, text="one", request_id="r1").again
        with pytest.raises(RequestIdReused):
            scene.do(c.Note, task=key, text="two", request_id="r1")


def without(outcome: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(outcome, name) for name in outcome.__struct_fields__ if name not in names}

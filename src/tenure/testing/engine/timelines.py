"""The four timelines: what happens to a task when all goes well, and when agents vanish and come back."""

from __future__ import annotations

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import Scene


class Timelines(Stage):
    def test_the_happy_path_has_one_generation_and_one_accepted_result(self, scene: Scene) -> None:
        key = scene.add("Implement the repositories", track="B")
        granted = scene.claim(key, "ann", lease=300)
        assert (granted.outcome, granted.generation, granted.attempt) == ("GRANTED", 1, 1)
        assert granted.receipt is not None
        assert granted.receipt.startswith("B-001@1:")
        scene.pass_time(seconds=120)
        renewed = scene.do(c.Renew, receipt=granted.receipt)
        assert (renewed.outcome, renewed.directive) == ("RENEWED", "continue")
        assert renewed.lease_until == scene.now + 300_000_000
        scene.pass_time(seconds=299)
        accepted = scene.submit(granted.receipt, {"files": ["a.py"]}, summary="all of it")
        assert accepted.outcome == "ACCEPTED"
        assert accepted.work_lost is False
        assert accepted.work_product is not None
        assert accepted.work_product.startswith("wp-B-001-implement-the-repositories-gen1-")
        (claim,) = scene.lineage(key)
        assert (claim.reason, claim.state, claim.result_accepted) == ("COMPLETED", "released", True)
        assert claim.work_product == accepted.work_product == scene.task(key).work_product
        assert claim.renewals == 1
        (result,) = scene.results(key)
        assert (result.accepted, result.data, result.summary) == (True, {"files": ["a.py"]}, "all of it")
        assert scene.log(key) == ["task.created", "task.claimed", "task.started", "task.completed"]

    def test_a_partitioned_holder_is_refused_once_another_has_taken_over(self, scene: Scene) -> None:
        key = scene.add()
        lost = scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=60)
        second = scene.claim(key, "bo")
        assert (second.outcome, second.generation, second.attempt) == ("GRANTED", 2, 2)
        assert scene.submit(second.receipt or "", "bo's").outcome == "ACCEPTED"
        refused = scene.submit(lost, "ann's")
        assert (refused.outcome, refused.work_lost, refused.current_generation) == ("STALE_GENERATION", True, 2)
        assert refused.directive == "abort"
        one, two = scene.lineage(key)
        assert (one.reason, one.state, one.result_accepted) == ("EXPIRED", "expired", False)
        assert (two.reason, two.state, two.result_accepted) == ("COMPLETED", "released", True)
        kept = [r for r in scene.results(key) if not r.accepted]
        assert [(r.data, r.reason, r.work_lost, r.generation) for r in kept] == [("ann's", "STALE_GENERATION", True, 1)]

    def test_nobody_takes_over_a_microsecond_too_early(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann", lease=60)
        scene.clock.advance(59_999_999)
        denied = scene.claim(key, "bo")
        assert (denied.outcome, denied.holder, denied.yours) == ("DENIED_ACTIVE_CLAIM", "ann", False)
        assert denied.receipt is None
        assert scene.do(c.Start, receipt=receipt).outcome == "OK"

    def test_after_a_rapid_failover_only_the_third_holder_counts(self, scene: Scene) -> None:
        key = scene.add()
        receipts = []
        for agent in ("ann", "bo"):
            receipts.append(scene.take(key, agent, lease=30))
            scene.pass_time(seconds=31)
        third = scene.take(key, "cy", lease=30)
        assert scene.submit(third, "cy's").outcome == "ACCEPTED"
        assert [scene.submit(r, "late").outcome for r in receipts] == ["STALE_GENERATION", "STALE_GENERATION"]
        lineage = scene.lineage(key)
        assert [(x.generation, x.agent, x.reason) for x in lineage] == [
            (1, "ann", "EXPIRED"),
            (2, "bo", "EXPIRED"),
            (3, "cy", "COMPLETED"),
        ]
        assert [r.data for r in scene.results(key) if r.accepted] == ["cy's"]

    def test_five_subtasks_shared_by_two_agents_end_in_one_merge(self, scene: Scene) -> None:
        parts = [NewTask(title=f"Part {n}", name=f"part{n}", parent="merge") for n in range(1, 6)]
        merge, *keys = scene.plan(NewTask(title="Merge", name="merge"), *parts)
        assert keys == [f"{merge}::{n}" for n in range(1, 6)]
        assert scene.state(merge) == "pending"
        ann = [scene.take(key, "ann", lease=60) for key in keys[:3]]
        answers = [scene.claim(key, "bo", lease=600) for key in keys[2:]]
        assert [a.outcome for a in answers] == ["DENIED_ACTIVE_CLAIM", "GRANTED", "GRANTED"]
        assert answers[0].holder == "ann"
        for receipt in ann[:2]:
            assert scene.submit(receipt, "ann's").outcome == "ACCEPTED"
        scene.pass_time(seconds=61)
        taken_over = scene.claim(keys[2], "bo")
        assert (taken_over.outcome, taken_over.generation) == ("GRANTED", 2)
        for answer in (taken_over, *answers[1:]):
            assert scene.claim(merge, "cy").outcome == "DENIED_NOT_READY"
            assert scene.submit(answer.receipt or "", "bo's").outcome == "ACCEPTED"
        refused = scene.submit(ann[2], "ann's third")
        assert (refused.outcome, refused.work_lost) == ("STALE_GENERATION", True)
        merging = scene.claim(merge, "cy")
        assert merging.outcome == "GRANTED"
        assert merging.inputs is not None
        assert {key: entry["data"] for key, entry in merging.inputs.items()} == dict(
            zip(keys, ["ann's", "ann's", "bo's", "bo's", "bo's"], strict=True)
        )

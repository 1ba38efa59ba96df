"""Claims of a runner: its agent has the receipt, but not its word, and its session claims nothing beside its task."""

from __future__ import annotations

import pytest

from tenure.core import commands as c
from tenure.core import runners
from tenure.core.commands import NewTask, Principal
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Landing
from tenure.engine.reads import tasks
from tenure.testing.engine.landings import commit
from tenure.testing.engine.spending import look
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene

WORD = "a word of the runner"
SESSION = "attempt-1"


def taken(scene: Scene, key: str, session: str = SESSION, *, submits: bool = True) -> str:
    """The receipt of a runner's claim."""
    return scene.take(key, session=session, metadata=runners.mark(WORD, submits=submits))


def land(scene: Scene, receipt: str, request: str | None = None) -> Outcome:
    moved = {"branch": "main", "old": commit(1), "new": commit(2)}
    return scene.do(c.Land, by=AGENT, receipt=receipt, request_id=request, **moved)


def over_budget(scene: Scene, key: str) -> str:
    """The receipt of a runner's claim that its budget has paused."""
    scene.do(c.SetBudget, scope="project", usd="1", default_estimate="1")
    receipt = taken(scene, key)
    scene.do(c.ReportUsage, by=AGENT, receipt=receipt, model="x", cost_usd="1.04")
    assert scene.state(key) == "paused"
    return receipt


class Runners(Stage):
    # --- results ------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("request_id", [None, "done", "a word.submit", f"{WORD}x.submit"])
    def test_a_result_that_is_not_the_runners_is_refused_and_the_claim_stays(
        self, scene: Scene, request_id: str | None
    ) -> None:
        key = scene.add()
        receipt = taken(scene, key)
        refused = scene.submit(receipt, request_id=request_id)
        assert (refused.outcome, refused.directive, refused.work_lost) == ("DENIED_RUNNER", "continue", False)
        assert "the runner lands your commits" in refused.message
        assert (scene.state(key), scene.results(key)) == ("claimed", [])
        assert scene.submit(receipt, request_id=f"{WORD}.submit").outcome == "ACCEPTED"

    def test_many_results_at_once_pass_nobody_by(self, scene: Scene) -> None:
        keys = [scene.add(), scene.add()]
        receipts = [taken(scene, keys[0]), scene.take(keys[1], "ben")]
        answers = scene.run(*(c.Submit(project=PROJECT, receipt=one, data="done") for one in receipts))
        assert [one.outcome for one in answers if isinstance(one, Outcome)] == ["DENIED_RUNNER", "ACCEPTED"]

    def test_a_runner_that_does_not_land_leaves_the_result_to_its_agent_too(self, scene: Scene) -> None:
        assert scene.submit(taken(scene, scene.add(), submits=False)).outcome == "ACCEPTED"

    def test_only_the_runner_records_its_landing(self, scene: Scene) -> None:
        receipt = taken(scene, scene.add())
        assert land(scene, receipt).outcome == "DENIED_RUNNER"
        assert scene.rows(Landing) == []
        assert land(scene, receipt, f"{WORD}.1").outcome == "OK"
        assert len(scene.rows(Landing)) == 1

    def test_the_agent_may_give_its_task_back_ask_and_fail(self, scene: Scene) -> None:
        ways: list[tuple[type[c.Command], str]] = [(c.Fail, "message"), (c.Release, "reason"), (c.Ask, "question")]
        for number, (kind, said) in enumerate(ways):
            receipt = taken(scene, scene.add(), session=f"of-{number}")
            assert scene.do(kind, by=AGENT, receipt=receipt, **{said: "why"}).outcome == "OK"

    def test_a_stale_result_is_kept_as_refused_whoever_sends_it(self, scene: Scene) -> None:
        key = scene.add()
        old = taken(scene, key)
        scene.pass_time(hours=2)
        taken(scene, key, session="attempt-2")
        assert scene.submit(old).outcome == "STALE_GENERATION"
        assert len(scene.results(key)) == 1

    def test_no_history_shows_the_mark(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, metadata={**runners.mark(WORD, submits=True), "shown": "yes"})
        assert [entry["metadata"] for entry in look(scene, tasks.history, key)] == [{"shown": "yes"}]

    # --- late results -------------------------------------------------------------------------------------------

    def test_what_was_finished_when_its_budget_paused_it_lands_and_is_accepted(self, scene: Scene) -> None:
        key = scene.add()
        receipt = over_budget(scene, key)
        assert land(scene, receipt).outcome == "DENIED_RUNNER"
        assert land(scene, receipt, f"{WORD}.1").outcome == "OK"
        assert (land(scene, receipt, f"{WORD}.2").again, scene.state(key)) == (True, "paused")
        assert scene.submit(receipt).outcome == "DENIED_RUNNER"
        assert scene.submit(receipt, request_id=f"{WORD}.submit").outcome == "ACCEPTED"
        (claim,) = scene.lineage(key)
        assert (claim.reason, claim.result_accepted) == ("PAUSED", True)

    @pytest.mark.parametrize("also", ["a budget", "nothing"])
    def test_a_persons_pause_holds_the_branch(self, scene: Scene, also: str) -> None:
        key = scene.add()
        receipt = over_budget(scene, key) if also == "a budget" else taken(scene, key)
        scene.do(c.Pause, task=key)
        assert land(scene, receipt, f"{WORD}.1").outcome == "NO_CLAIM"
        assert scene.rows(Landing) == []

    def test_an_expired_claim_lands_nothing(self, scene: Scene) -> None:
        receipt = taken(scene, scene.add())
        scene.pass_time(hours=2)
        assert land(scene, receipt, f"{WORD}.1").outcome == "ALREADY_EXPIRED"

    def test_a_late_landing_ends_with_the_next_claim(self, scene: Scene) -> None:
        key = scene.add()
        receipt = over_budget(scene, key)
        scene.do(c.SetBudget, scope="project", usd="9", default_estimate="1")
        scene.do(c.Resume, task=key, budget=True)
        taken(scene, key, session="attempt-2")
        assert land(scene, receipt, f"{WORD}.1").outcome == "STALE_GENERATION"

    # --- other claims -------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("submits", [True, False], ids=["lands", "does not land"])
    def test_its_session_claims_no_other_task(self, scene: Scene, submits: bool) -> None:
        first, other = scene.add(), scene.add()
        taken(scene, first, submits=submits)
        for denied in (
            scene.next(session=SESSION),
            scene.next(session=SESSION, n=2),
            scene.claim(other, session=SESSION),
        ):
            assert denied.outcome == "DENIED_RUNNER"
            assert scene.task(first).key in denied.message
        assert scene.state(other) == "ready"

    def test_many_claims_at_once_pass_nobody_by(self, scene: Scene) -> None:
        first = scene.add()
        for _ in range(4):
            scene.add()
        scene.know("ann", "ben")
        taken(scene, first)
        asked = [("ann", SESSION), ("ben", "ben")]
        answers = scene.run(*(c.ClaimNext(project=PROJECT, agent=a, session=s) for a, s in asked))
        assert [one.outcome for one in answers if isinstance(one, Outcome)] == ["DENIED_RUNNER", "GRANTED"]

    def test_its_session_claims_what_is_below_its_task_by_name(self, scene: Scene) -> None:
        first = scene.add()
        receipt = taken(scene, first)
        scene.do(c.Spawn, by=AGENT, receipt=receipt, tasks=(NewTask(title="a part", name="a"),))
        below = scene.claim(f"{scene.task(first).ref}::1", session=SESSION)
        assert below.outcome == "GRANTED"
        scene.do(c.Spawn, by=AGENT, receipt=below.receipt, tasks=(NewTask(title="a part of it", name="b"),))
        assert scene.claim(f"{scene.task(first).ref}::1::1", session=SESSION).outcome == "GRANTED"
        assert scene.submit(below.receipt or "").outcome == "ACCEPTED"

    def test_its_session_claims_no_other_task_when_its_claim_has_ended(self, scene: Scene) -> None:
        first, other = scene.add(), scene.add()
        receipt = taken(scene, first)
        scene.do(c.Release, by=AGENT, receipt=receipt)
        assert scene.claim(other, session=SESSION).outcome == "DENIED_RUNNER"

    def test_a_lost_claim_is_taken_again(self, scene: Scene) -> None:
        key = scene.add()
        taken(scene, key)
        scene.pass_time(hours=2)
        again = taken(scene, key)
        assert scene.submit(again).outcome == "DENIED_RUNNER"

    def test_another_session_of_the_agent_is_free(self, scene: Scene) -> None:
        first = scene.add()
        scene.add()
        taken(scene, first)
        assert scene.next(session="attempt-2").outcome == "GRANTED"

    def test_a_limit_that_somebody_has_set_stays(self, scene: Scene) -> None:
        scene.do(c.Register, by=Principal(), agent="ann", max_concurrent_tasks=3)
        taken(scene, scene.add())
        assert scene.row(Agent, "ann").max_concurrent_tasks == 3

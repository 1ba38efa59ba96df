"""What holds a task back: several causes at once, each lifted by its own word or at its own instant."""

from __future__ import annotations

import pytest

from tenure.core import commands as c
from tenure.core import notices
from tenure.core import queries as q
from tenure.engine.reads import tasks, why
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.budgets import spend
from tenure.testing.engine.spending import look
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene


def causes(scene: Scene, key: str) -> list[str]:
    return [pause.cause for pause in scene.task(key).pauses]


def overspent(scene: Scene) -> str:
    """A task that the budget of the day has paused."""
    scene.do(c.SetBudget, usd="10", period="day")
    key = scene.add()
    assert spend(scene, scene.take(key), "10.01").state == "paused"
    return key


def asked(scene: Scene) -> str:
    key = scene.add()
    scene.do(c.Ask, receipt=scene.take(key), question="Which one?")
    return key


class Pauses(Stage):
    def test_a_person_s_pause_outlives_the_budget_s(self, scene: Scene) -> None:
        key = overspent(scene)
        paused = scene.do(c.Pause, task=key, reason="budget talk on Monday")
        assert (paused.outcome, causes(scene, key)) == ("UPDATED", ["budget", "person"])
        scene.pass_time(hours=24)
        assert (scene.state(key), causes(scene, key)) == ("paused", ["person"])
        assert scene.do(c.Resume, task=key).state == "ready"
        assert "task.pause_lifted" in scene.log(key)

    def test_nothing_of_a_budget_s_pause_is_left_after_a_resume(self, scene: Scene) -> None:
        key = overspent(scene)
        scene.do(c.Resume, task=key, budget=True)
        scene.do(c.Pause, task=key, reason="budget talk on Monday")
        scene.pass_time(hours=72)
        assert (scene.state(key), causes(scene, key)) == ("paused", ["person"])

    def test_a_person_s_resume_leaves_what_a_budget_has_paused(self, scene: Scene) -> None:
        key = overspent(scene)
        left = scene.do(c.Resume, task=key)
        assert (left.outcome, left.state) == ("UNCHANGED", "paused")
        assert [pause["cause"] for pause in left.pauses or ()] == ["budget"]
        scene.do(c.Pause, task=key)
        answer = scene.do(c.Resume, task=key)
        assert (answer.outcome, answer.state) == ("UPDATED", "paused")
        assert [pause["cause"] for pause in answer.pauses or ()] == ["budget"]
        assert "budget" in answer.message
        assert "--budget" in (answer.hint or "")

    def test_a_budget_s_pause_is_overridden_on_purpose_and_the_log_says_so(self, scene: Scene) -> None:
        key = overspent(scene)
        assert scene.do(c.Resume, task=key, budget=True).state == "ready"
        (resumed,) = scene.events(kind="task.resumed")
        assert resumed.details["lifted"] == ["budget"]

    def test_the_log_marks_pauses_that_need_a_person_as_notices(self, scene: Scene) -> None:
        scene.do(c.Pause, task=asked(scene), reason="wait")
        overspent(scene)
        log = read_query(scene.engine, q.Log(project=PROJECT, kind=tuple(notices.EVENTS)))
        marked = [(event["kind"], event.get("notice")) for event in log]
        assert marked == [
            ("task.question", notices.REVIEW),
            ("task.paused", None),
            ("task.paused", notices.BUDGET_PAUSE),
        ]

    def test_an_answer_lifts_the_question_and_nothing_else(self, scene: Scene) -> None:
        key = asked(scene)
        assert scene.do(c.Resume, task=key).outcome == "UNCHANGED"
        assert scene.do(c.Pause, task=key, reason="wait").outcome == "UPDATED"
        answer = scene.do(c.Answer, task=key, text="The blue one.")
        assert (answer.outcome, answer.state, causes(scene, key)) == ("UPDATED", "paused", ["person"])
        assert answer.hint == "resume it"
        assert scene.task(key).answers[0]["answer"] == "The blue one."
        assert scene.do(c.Answer, task=key, text="Or not.").outcome == "DENIED_STATE"
        assert scene.do(c.Resume, task=key).state == "ready"

    def test_why_says_of_each_cause_what_lifts_it(self, scene: Scene) -> None:
        key = asked(scene)
        scene.do(c.Pause, task=key, reason="wait")
        paused = [one for one in look(scene, why.why, key)["reasons"] if one.startswith("paused: ")]
        assert len(paused) == 2
        assert paused[0].endswith("(answer the question)")
        assert paused[1] == "paused: wait (resume it)"

    @pytest.mark.parametrize("drain", [False, True])
    def test_the_same_cause_twice_changes_nothing(self, scene: Scene, drain: bool) -> None:
        key = scene.add()
        if drain:
            scene.take(key)
        scene.do(c.Pause, task=key, drain=drain)
        before = scene.tables()
        assert scene.do(c.Pause, task=key, drain=drain).outcome == "UNCHANGED"
        assert scene.tables() == before

    def test_a_drain_is_taken_back_while_its_holder_works(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Pause, task=key, drain=True, reason="lunch")
        assert scene.do(c.Renew, receipt=receipt).directive == "pause"
        assert scene.do(c.Resume, task=key).outcome == "UPDATED"
        assert scene.do(c.Renew, receipt=receipt).directive == "continue"
        scene.do(c.Release, receipt=receipt)
        assert scene.state(key) == "ready"

    def test_a_drained_task_says_who_drained_it_and_why(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Pause, task=key, drain=True, reason="lunch")
        scene.do(c.Release, receipt=receipt)
        (pause,) = scene.task(key).pauses
        assert (scene.state(key), pause.cause, pause.reason) == ("paused", "drain", "lunch")
        assert look(scene, tasks.show, key)["pauses"][0]["cause"] == "drain"
        assert scene.do(c.Resume, task=key).state == "ready"

    def test_a_lost_task_that_is_held_back_goes_on_by_a_person_s_word(self, scene: Scene) -> None:
        key = scene.add(on_lost="hold")
        scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        assert (scene.state(key), causes(scene, key)) == ("paused", ["lost"])
        assert scene.do(c.Resume, task=key).state == "ready"

    def test_a_cancelled_task_comes_back_with_what_held_it_back(self, scene: Scene) -> None:
        key = asked(scene)
        scene.do(c.Pause, task=key)
        cancelled = scene.do(c.Cancel, task=key, reason="not now")
        why = scene.task(key).cancelled
        assert why is not None
        assert (why.cause, why.reason, scene.task(key).pauses) == ("person", "not now", ())
        scene.do(c.Undo, command_id=cancelled.command_id)
        assert (scene.state(key), causes(scene, key)) == ("paused", ["question", "person"])

    def test_a_reason_that_looks_like_a_cascade_is_a_person_s(self, scene: Scene) -> None:
        source = scene.add(max_attempts=1)
        other = scene.add("other", depends_on=(c.Dependency(task=source, on_failure="ignore"),))
        scene.bury(source)
        scene.do(c.Cancel, task=other, reason=f"cascade:{scene.task(source).id}")
        scene.do(c.Retry, task=source)
        assert scene.state(other) == "cancelled"

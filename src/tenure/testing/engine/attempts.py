"""Attempts: what counts, what is given back at most ten times, what is free; and which failure is the last."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask
from tenure.core.records import DeadLetter, Task, replace
from tenure.testing.engine.stage import Stage
from tenure.testing.engine.validations import REVIEW
from tenure.testing.factories import PROJECT, Scene, code_of

FREE: dict[str, Callable[[Scene, str, str], object]] = {
    "pause": lambda scene, key, _: (scene.do(c.Pause, task=key), scene.do(c.Resume, task=key)),
    "ask": lambda scene, key, receipt: (
        scene.do(c.Ask, receipt=receipt, question="?"), scene.do(c.Answer, task=key, text="!")
    ),
    "wait": lambda scene, _, receipt: scene.do(c.Wait, receipt=receipt),
    "recover": lambda scene, key, _: scene.do(c.Recover, task=key),
    "reassign": lambda scene, key, _: scene.do(c.Reassign, task=key, agent="ann"),
    "terminate": lambda scene, _, __: (
        scene.do(c.Terminate, agent="ann", graceful=False), scene.do(c.ResumeAgent, agent="ann")
    ),
    "edit": lambda scene, key, _: scene.do(c.Edit, task=key, changes={"spec": {"prompt": "x"}}, supersede=True),
    "cancel": lambda scene, key, _: scene.do(c.Undo, command_id=scene.do(c.Cancel, task=key).command_id),
}  # fmt: skip
BACK: dict[str, Callable[[Scene, str], object]] = {
    "release": lambda scene, receipt: scene.do(c.Release, receipt=receipt),
    "leave": lambda scene, _: scene.do(c.Leave, session="s-ann"),
    "new epoch": lambda scene, _: scene.engine.new_epoch("restored"),
}


class Attempts(Stage):
    @pytest.mark.parametrize("verb", FREE)
    def test_waiting_asking_and_a_person_s_verbs_never_count(self, scene: Scene, verb: str) -> None:
        key = scene.add(max_attempts=3)
        for _ in range(15):
            FREE[verb](scene, key, scene.take(key))
            assert scene.state(key) == "ready"
        task = scene.task(key)
        assert (task.attempts, task.given_back, task.generation) == (0, 0, 15)
        scene.fail(scene.take(key), "task")
        assert scene.state(key) == "retrying"

    @pytest.mark.parametrize("verb", BACK)
    def test_what_is_given_back_ten_times_counts_from_then_on_and_ends_in_a_dead_letter(
        self, scene: Scene, verb: str
    ) -> None:
        key = scene.add(max_attempts=3)
        for n in range(13):
            assert scene.state(key) == "ready", n
            BACK[verb](scene, scene.take(key, session="s-ann"))
        task = scene.task(key)
        assert (task.state, task.attempts, task.given_back) == ("dead_lettered", 3, 10)

    def test_a_task_that_is_claimed_a_hundred_times_in_a_run_is_a_dead_letter(self, scene: Scene) -> None:
        key = scene.add()
        for _ in range(100):
            scene.take(key)
            scene.do(c.Recover, task=key)
        denied = scene.claim(key)
        assert (denied.outcome, denied.state) == ("DENIED_LIMIT", "dead_lettered")
        (letter,) = scene.rows(DeadLetter)
        assert (letter.error_class, "max_generations_per_task limit" in letter.error) == ("limit", True)
        scene.do(c.Retry, task=key)
        assert scene.claim(key).outcome == "GRANTED"

    def test_the_attempts_that_were_used_stay_within_those_that_there_are(self, scene: Scene) -> None:
        key = scene.add(max_attempts=5)
        for _ in range(2):
            scene.fail(scene.take(key), "task")
            scene.pass_time(hours=1)
        answer = scene.try_to(c.Edit, task=key, changes={"max_attempts": 1})
        assert code_of(answer) == "INVALID_INPUT"
        assert "at least 3" in answer.message
        scene.do(c.Edit, task=key, changes={"max_attempts": 3})

    @pytest.mark.parametrize("state", ["ready", "pending", "retrying", "paused", "cancelled"])
    def test_a_task_that_waits_keeps_an_attempt_to_wait_for(self, scene: Scene, state: str) -> None:
        key = scene.add(max_attempts=3)
        scene.fail(scene.take(key), "task")
        if state != "retrying":
            scene.pass_time(hours=1)
        verbs: dict[str, Any] = {
            "pending": partial(c.Link, needs=scene.add()), "paused": c.Pause, "cancelled": c.Cancel
        }  # fmt: skip
        if state in verbs:
            scene.run(verbs[state](project=PROJECT, task=key))
        assert scene.state(key) == state
        before = scene.tables()
        answer = scene.try_to(c.Edit, task=key, changes={"max_attempts": 1})
        assert code_of(answer) == "INVALID_INPUT"
        assert "at least 2" in answer.message
        assert scene.tables() == before
        scene.do(c.Edit, task=key, changes={"max_attempts": 2})

    @pytest.mark.parametrize("state", ["claimed", "validating", "dead_lettered", "completed"])
    def test_the_attempt_under_way_may_become_the_last(self, scene: Scene, state: str) -> None:
        key = scene.add(max_attempts=3, output=REVIEW if state == "validating" else {})
        scene.fail(scene.take(key), "task")
        scene.pass_time(hours=1)
        receipt = scene.take(key)
        if state == "dead_lettered":
            scene.fail(receipt, "permanent")
        elif state != "claimed":
            scene.submit(receipt)
        assert scene.state(key) == state
        assert code_of(scene.try_to(c.Edit, task=key, changes={"max_attempts": 1})) == "INVALID_INPUT"
        assert scene.do(c.Edit, task=key, changes={"max_attempts": 2}).outcome == "UPDATED"
        if state == "claimed":
            scene.fail(receipt, "task")
        elif state == "validating":
            scene.do(c.Reject, task=key, reason="no")
        else:
            scene.do(c.Retry if state == "dead_lettered" else c.Reset, task=key)
            assert scene.task(key).attempts == 0
            return
        assert scene.state(key) == "dead_lettered"

    def test_the_attempt_that_an_edit_takes_back_is_free_again(self, scene: Scene) -> None:
        key = scene.add(max_attempts=3)
        scene.take(key)
        edit = {"max_attempts": 1, "type": "other"}
        assert scene.do(c.Edit, task=key, changes=edit, supersede=True).outcome == "UPDATED"
        assert scene.fail(scene.take(key), "task").state == "dead_lettered"

    def test_a_plan_leaves_the_attempts_of_a_task_that_used_some_and_another_run_has_its_own(
        self, scene: Scene
    ) -> None:
        (key,) = scene.plan(NewTask(title="t", name="t", max_attempts=3), name="plan")
        scene.fail(scene.take(key), "task")
        fewer = NewTask(title="t", name="t", max_attempts=1)
        assert scene.do(c.Plan, tasks=(fewer,), name="plan").left == (key,)
        assert scene.task(key).max_attempts == 3
        scene.do(c.Cancel, task=key)
        assert scene.do(c.Retry, task=key, changes={"max_attempts": 1}).outcome == "UPDATED"
        assert scene.fail(scene.take(key), "task").state == "dead_lettered"

    def test_a_row_without_an_attempt_left_is_a_dead_letter_and_not_granted(self, scene: Scene) -> None:
        """Earlier versions let an edit leave none."""
        scene.broken = True  # its row says another max_attempts than the log
        key, other = scene.add(max_attempts=3), scene.add()
        scene.take(key, lease=1)
        scene.pass_time(seconds=5)
        task = scene.task(key)
        assert (task.state, task.attempts) == ("ready", 1)
        scene.engine.sweep()
        stored = scene.stored(Task, task.id)
        scene.put(stored, replace(stored, max_attempts=1))
        assert (scene.next("bo").task or {})["key"] == other
        assert scene.state(key) == "dead_lettered"
        assert "max_attempts is 1" in scene.rows(DeadLetter)[0].error
        assert scene.task(key).generation == 1

    def test_the_session_that_lost_its_last_attempt_may_go_on_with_it(self, scene: Scene) -> None:
        scene.broken = True  # as above
        key = scene.add(max_attempts=3)
        scene.take(key, lease=1)
        scene.pass_time(seconds=5)
        scene.engine.sweep()
        stored = scene.stored(Task, scene.task(key).id)
        scene.put(stored, replace(stored, max_attempts=1))
        assert scene.submit(scene.take(key)).outcome == "ACCEPTED"
        assert scene.task(key).attempts == 1

    # --- poison pills ---------------------------------------------------------------------------------------------

    def fail_by(self, scene: Scene, key: str, *agents: str) -> None:
        for agent in agents:
            scene.fail(scene.take(key, agent), "task")
            scene.pass_time(hours=1)

    def test_the_third_failure_is_the_last_where_two_agents_failed(self, scene: Scene) -> None:
        key = scene.add(max_attempts=10)
        self.fail_by(scene, key, "ann", "ann")
        assert scene.state(key) == "ready"
        self.fail_by(scene, key, "bo")
        assert (scene.state(key), scene.task(key).attempts) == ("dead_lettered", 3)
        assert scene.rows(DeadLetter)[0].poison_pill is True

    def test_one_agent_alone_poisons_nothing(self, scene: Scene) -> None:
        key = scene.add(max_attempts=10)
        self.fail_by(scene, key, "ann", "ann", "ann", "ann")
        assert scene.state(key) == "ready"

    def test_what_is_given_back_poisons_nothing(self, scene: Scene) -> None:
        key = scene.add(max_attempts=10)
        for agent in ("ann", "bo", "ann", "bo"):
            scene.do(c.Release, receipt=scene.take(key, agent))
            scene.pass_time(hours=1)
        self.fail_by(scene, key, "ann", "bo")
        assert scene.state(key) == "ready"

    def test_a_lost_lease_is_a_failure_like_another(self, scene: Scene) -> None:
        key = scene.add(max_attempts=10)
        self.fail_by(scene, key, "ann", "bo")
        scene.take(key, "cy", lease=60)
        scene.pass_time(seconds=61)
        assert scene.state(key) == "dead_lettered"

    @pytest.mark.parametrize(("poison", "failures"), [(0, 6), (5, 4)])
    def test_how_many_are_poison_is_the_task_s_to_say(self, scene: Scene, poison: int, failures: int) -> None:
        key = scene.add(max_attempts=10, retry={"poison": poison})
        self.fail_by(scene, key, *("ann", "bo") * (failures // 2))
        assert scene.state(key) == "ready"
        if poison:
            self.fail_by(scene, key, "ann")
            assert scene.state(key) == "dead_lettered"

    def test_a_new_run_begins_without_the_failures_and_its_undo_has_them_again(self, scene: Scene) -> None:
        key = scene.add(max_attempts=10)
        self.fail_by(scene, key, "ann", "ann", "bo")
        retried = scene.do(c.Retry, task=key)
        assert scene.task(key).failures == ()
        scene.do(c.Undo, command_id=retried.command_id)
        assert scene.task(key).failures == ("ann", "ann", "bo")

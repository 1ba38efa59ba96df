"""How a claim ends, row by row of the table: reason, claim's state, the attempt, where the task goes, who cools off."""

from __future__ import annotations

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import retry
from tenure.core.commands import NewTask
from tenure.core.errors import InvalidInput
from tenure.core.records import Brief, DeadLetter, RetryPolicy, RetryWords, replace
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import Scene

MINUTE = 60_000_000


def ended(scene: Scene, key: str) -> tuple[str | None, str, int, str]:
    """Reason, claim's state, attempts counted, task's state."""
    claim, task = scene.last_claim(key), scene.task(key)
    assert (task.agent, task.session, task.lease_until) == (None, None, None)
    assert claim.released_at is not None
    return claim.reason, claim.state, task.attempts, task.state


class Endings(Stage):
    def test_an_accepted_result_completes(self, scene: Scene) -> None:
        key = scene.add()
        scene.finish(key)
        assert ended(scene, key) == ("COMPLETED", "released", 1, "completed")

    @pytest.mark.parametrize("error_class", ["task", "crash", "timeout", "invalid_output"])
    def test_a_failure_of_the_task_counts_and_is_retried_later(self, scene: Scene, error_class: str) -> None:
        key = scene.add()
        failed = scene.fail(scene.take(key), error_class, message="no luck")
        assert ended(scene, key) == ("FAILED", "error", 1, "retrying")
        assert failed.retry_at == scene.now + 10_000_000
        task, claim = scene.task(key), scene.last_claim(key)
        assert task.last_error is not None
        assert (task.last_error.error_class, task.last_error.message) == (error_class, "no luck")
        assert (claim.error_class, claim.error, claim.counted) == (error_class, "no luck", True)
        assert scene.claim(key, "bo").outcome == "DENIED_NOT_READY"
        scene.pass_time(seconds=10)
        assert scene.claim(key, "ann").outcome == "GRANTED"

    def test_the_last_attempt_that_fails_makes_a_dead_letter(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        scene.fail(scene.take(key))
        assert ended(scene, key) == ("FAILED", "error", 1, "dead_lettered")

    @pytest.mark.parametrize("error_class", ["environment", "auth_failure", "upstream_timeout"])
    def test_an_agents_own_trouble_is_given_back_and_keeps_it_from_this_task(
        self, scene: Scene, error_class: str
    ) -> None:
        key = scene.add()
        scene.fail(scene.take(key, "ann"), error_class)
        assert ended(scene, key) == ("FAILED", "error", 0, "ready")
        assert scene.last_claim(key).counted is False
        assert scene.next("ann").outcome == "NO_TASK"
        scene.pass_time(minutes=10)
        assert scene.next("ann").outcome == "GRANTED"

    def test_the_trouble_of_one_agent_does_not_keep_others_away(self, scene: Scene) -> None:
        key = scene.add()
        scene.fail(scene.take(key, "ann"), "environment")
        taken = scene.next("bo")
        assert (taken.outcome, taken.attempt) == ("GRANTED", 1)

    def test_a_rate_limit_waits_as_long_as_it_says_and_is_given_back(self, scene: Scene) -> None:
        key = scene.add(constraints={"model_preferences": ["opus"]})
        failed = scene.fail(scene.take(key), "rate_limit", retry_after=90)
        assert ended(scene, key) == ("FAILED", "error", 0, "retrying")
        assert failed.retry_at == scene.now + 90_000_000

    def test_a_rate_limit_cools_the_model_for_all(self, scene: Scene) -> None:
        limited = scene.add(constraints={"model_preferences": ["opus"]})
        other = scene.add(constraints={"model_preferences": ["opus"]})
        free = scene.add(constraints={"model_preferences": ["haiku"]})
        both = scene.add(constraints={"model_preferences": ["opus", "haiku"]})
        scene.fail(scene.take(limited), "rate_limit", retry_after=90)
        assert scene.next_keys(4, "bo") == [free, both]
        scene.pass_time(seconds=90)
        tried = scene.next("bo")
        assert (tried.task or {})["key"] == limited
        assert scene.next("cy").outcome == "NO_TASK"  # half-open: one finds out for all
        scene.submit(tried.receipt or "")
        assert scene.next_keys(4, "bo") == [other]

    def test_a_success_clears_the_model(self, scene: Scene) -> None:
        limited = scene.add(constraints={"model_preferences": ["opus"]})
        other = scene.add(constraints={"model_preferences": ["opus"]})
        working = scene.take(other, "bo")
        scene.fail(scene.take(limited), "rate_limit", retry_after=3600)
        another = scene.add(constraints={"model_preferences": ["opus"]})
        assert scene.next("cy").outcome == "NO_TASK"
        scene.submit(working)
        taken = scene.next("cy")
        assert taken.task is not None
        assert taken.task["key"] == another

    def test_a_lease_that_ran_out_counts_and_frees_the_task(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, lease=60)
        scene.pass_time(seconds=60)
        assert ended(scene, key) == ("EXPIRED", "expired", 1, "ready")
        assert scene.last_claim(key).released_at == scene.now

    def test_it_ended_when_the_lease_did_not_when_somebody_looked(self, scene: Scene) -> None:
        key = scene.add()
        began = scene.now
        scene.take(key, lease=60)
        scene.pass_time(hours=5)
        assert scene.last_claim(key).released_at == began + 60_000_000
        assert scene.task(key).ready_at == began + 60_000_000

    def test_a_session_that_comes_back_after_another_makes_a_new_attempt(self, scene: Scene) -> None:
        key = scene.add()
        for agent, attempt in (("ann", 1), ("bo", 2), ("ann", 3)):
            assert scene.claim(key, agent, lease=60).attempt == attempt
            scene.pass_time(seconds=60)
        assert scene.state(key) == "dead_lettered"

    def test_a_lost_lease_backs_off_where_the_task_says_so(self, scene: Scene) -> None:
        key = scene.add(on_lost="back_off")
        scene.take(key, lease=60)
        scene.pass_time(minutes=1, seconds=5)
        assert ended(scene, key) == ("EXPIRED", "expired", 1, "retrying")
        assert scene.task(key).retry_at == scene.now + 5_000_000  # ten seconds after the lease's end
        scene.pass_time(seconds=5)
        assert scene.state(key) == "ready"

    def test_a_lost_lease_waits_for_a_person_where_the_task_says_so(self, scene: Scene) -> None:
        key = scene.add(on_lost="hold")
        scene.take(key, lease=60)
        scene.pass_time(seconds=60)
        assert ended(scene, key) == ("EXPIRED", "expired", 1, "paused")
        scene.do(c.Resume, task=key)
        assert scene.state(key) == "ready"

    def test_the_last_lease_that_runs_out_makes_a_dead_letter(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        scene.take(key, lease=60)
        scene.pass_time(seconds=60)
        assert ended(scene, key) == ("EXPIRED", "expired", 1, "dead_lettered")

    def test_a_release_gives_the_attempt_back_and_offers_the_task_to_others_first(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Release, receipt=scene.take(key, "ann"), reason="wrong tools")
        assert ended(scene, key) == ("VOLUNTARY", "released", 0, "ready")
        assert scene.next("ann").outcome == "NO_TASK"
        scene.pass_time(minutes=5)
        assert scene.next("ann").outcome == "GRANTED"

    def test_a_release_of_a_stopped_holder_cools_nobody_off(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann")
        scene.do(c.Release, receipt=receipt, reason="a shutdown", stopped=True)
        assert ended(scene, key) == ("STOPPED", "released", 0, "ready")
        assert scene.do(c.Release, receipt=receipt, reason="a shutdown", stopped=True).again
        assert scene.next("ann").outcome == "GRANTED"
        assert scene.task(key).given_back == 1

    def test_a_stopped_holder_cannot_take_and_give_back_for_ever(self, scene: Scene) -> None:
        key = scene.add(max_attempts=2)
        for _ in range(12):
            scene.do(c.Release, receipt=scene.take(key), stopped=True)
        assert scene.state(key) == "dead_lettered"
        assert [claim.counted for claim in scene.lineage(key)] == [False] * 10 + [True] * 2

    def test_a_release_of_a_stopped_holder_is_no_failure_of_its_agent(self, scene: Scene) -> None:
        """Past those that are given back it counts, and still poisons no task."""
        key = scene.add(max_attempts=20)
        for number in range(14):
            scene.do(c.Release, receipt=scene.take(key, f"a{number}"), stopped=True)
        assert (scene.state(key), scene.task(key).failures) == ("ready", ())

    def test_an_unfinished_result_ends_the_claim_and_is_kept(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann")
        told = scene.do(c.Submit, receipt=receipt, data="99 of 1000", stopped=True)
        assert (told.outcome, told.work_lost, told.state) == ("STOPPED", True, "ready")
        assert ended(scene, key) == ("STOPPED", "released", 0, "ready")
        again = scene.do(c.Submit, receipt=receipt, data="99 of 1000", stopped=True)
        assert again.outcome == "STOPPED"
        (kept,) = scene.results(key)
        assert (kept.data, kept.accepted, kept.reason) == ("99 of 1000", False, "STOPPED")
        assert scene.next("ann").outcome == "GRANTED"

    def test_an_unfinished_result_is_no_late_submit(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann")
        scene.do(c.Pause, task=key)
        assert scene.do(c.Submit, receipt=receipt, data="half", stopped=True).outcome == "STOPPED"
        assert (scene.state(key), [result.accepted for result in scene.results(key)]) == ("paused", [False])
        assert scene.submit(receipt, "whole").outcome == "ACCEPTED"  # one that had finished all the same

    def test_an_unfinished_result_of_an_old_claim_is_refused_as_any(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=60)
        scene.take(key, "bo")
        assert scene.do(c.Submit, receipt=receipt, data="half", stopped=True).outcome == "STALE_GENERATION"
        assert scene.state(key) == "claimed"

    def test_a_pause_takes_the_task_away_at_once(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Pause, task=key, reason="think first")
        assert ended(scene, key) == ("PAUSED", "released", 0, "paused")
        assert scene.do(c.Renew, receipt=receipt).directive == "pause"
        assert scene.claim(key, "bo").outcome == "DENIED_PAUSED"

    def test_an_exceeded_budget_pauses(self, scene: Scene) -> None:
        key = scene.add()
        scene.fail(scene.take(key), "budget_exceeded")
        assert ended(scene, key) == ("PAUSED", "released", 0, "paused")
        assert scene.task(key).reason == "budget exceeded"

    def test_a_budget_that_its_holder_found_exceeded_resumes_it_when_it_is_set_or_raised(self, scene: Scene) -> None:
        mine, others = scene.add(), scene.add()
        scene.fail(scene.take(mine, "ann"), "budget_exceeded")
        scene.fail(scene.take(others, "bo"), "budget_exceeded")
        assert scene.do(c.SetBudget, scope="agent:ann", usd="5").changed == (mine,)
        assert scene.states(mine, others) == ["ready", "paused"]
        assert scene.do(c.SetBudget, usd="5").changed == (others,)

    def test_a_question_pauses_until_the_answer(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Ask, receipt=scene.take(key), question="Which colour?")
        assert ended(scene, key) == ("PAUSED", "released", 0, "paused")
        assert scene.task(key).reason == "question: Which colour?"
        scene.do(c.Answer, task=key, text="Blue.")
        assert scene.state(key) == "ready"

    def test_waiting_for_subtasks_gives_the_claim_and_the_attempt_back(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        waited = scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="part"),), wait=True)
        assert waited.waits_for == (f"{key}::1",)
        assert ended(scene, key) == ("WAITING", "released", 0, "pending")

    def test_a_cancelled_task_takes_its_claim_along(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Cancel, task=key, reason="no longer wanted")
        assert ended(scene, key)[::3] == ("CANCELLED", "cancelled")
        assert scene.last_claim(key).state == "released"
        refused = scene.do(c.Renew, receipt=receipt)
        assert (refused.outcome, refused.directive) == ("TASK_CANCELLED", "cancel")

    def test_a_claim_over_its_allowed_time_is_aborted_and_counts(self, scene: Scene) -> None:
        key = scene.add(constraints={"max_duration": 600}, priority=50)
        receipt = scene.take(key, lease=3600)
        scene.pass_time(minutes=9, seconds=59)
        scene.do(c.Renew, receipt=receipt)
        scene.pass_time(seconds=1)
        assert ended(scene, key) == ("SUPERSEDED", "superseded", 1, "retrying")
        assert scene.last_claim(key).error_class == "timeout"
        assert scene.task(key).priority == 40

    def test_a_person_aborts_what_hangs(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Abort, task=key, reason="silent")
        assert ended(scene, key) == ("SUPERSEDED", "superseded", 1, "retrying")
        assert scene.do(c.Renew, receipt=receipt).outcome == "NO_CLAIM"

    def test_the_last_attempt_that_is_aborted_makes_a_dead_letter(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        scene.take(key)
        scene.do(c.Abort, task=key)
        assert ended(scene, key) == ("SUPERSEDED", "superseded", 1, "dead_lettered")

    def test_a_recovered_claim_is_given_back(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key)
        scene.do(c.Recover, task=key, reason="receipt lost")
        assert ended(scene, key) == ("SUPERSEDED", "superseded", 0, "ready")

    def test_a_reassigned_claim_is_given_back_and_the_task_offered(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "ann")
        scene.know("bo")
        scene.do(c.Reassign, task=key, agent="bo")
        assert ended(scene, key) == ("SUPERSEDED", "superseded", 0, "ready")
        assert scene.claim(key, "ann").outcome == "DENIED_OFFERED"
        assert scene.claim(key, "bo").generation == 2

    def test_an_edit_that_supersedes_gives_back(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        assert scene.do(c.Edit, task=key, changes={"spec": {"prompt": "other"}}).outcome == "DENIED_STATE"
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"
        assert scene.do(c.Edit, task=key, changes={"spec": {"prompt": "other"}}, supersede=True).outcome == "UPDATED"
        assert ended(scene, key) == ("SUPERSEDED", "superseded", 0, "ready")

    def test_an_adoption_that_supersedes_gives_back_and_completes(self, scene: Scene) -> None:
        key = scene.add()
        late = scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=60)
        scene.take(key, "bo")
        scene.submit(late, "ann's")
        assert scene.do(c.Adopt, task=key).outcome == "DENIED_STATE"
        adopted = scene.do(c.Adopt, task=key, supersede=True)
        assert adopted.outcome == "UPDATED"
        assert ended(scene, key) == ("SUPERSEDED", "superseded", 1, "completed")
        assert [r.data for r in scene.results(key) if r.accepted] == ["ann's"]

    def test_a_new_epoch_ends_every_claim_and_gives_back(self, scene: Scene) -> None:
        held, running = scene.add(), scene.add()
        scene.take(held)
        scene.do(c.Start, receipt=scene.take(running))
        scene.engine.new_epoch("restored")
        assert ended(scene, held) == ("ERROR", "error", 0, "ready")
        assert ended(scene, running) == ("ERROR", "error", 0, "ready")

    def test_a_claim_whose_lease_was_over_before_the_new_epoch_expired(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        scene.engine.new_epoch("restored")
        assert ended(scene, key) == ("EXPIRED", "expired", 1, "ready")

    def test_a_terminated_agent_gives_everything_back(self, scene: Scene) -> None:
        keys = [scene.add(), scene.add()]
        for key in keys:
            scene.take(key)
        assert scene.do(c.Terminate, agent="ann", graceful=False).changed == tuple(keys)
        assert [ended(scene, key) for key in keys] == [("SUPERSEDED", "superseded", 0, "ready")] * 2

    def test_a_session_that_leaves_gives_everything_back(self, scene: Scene) -> None:
        key, other = scene.add(), scene.add()
        scene.take(key, session="one")
        scene.take(other, session="two")
        assert scene.do(c.Leave, session="one").changed == (key,)
        assert ended(scene, key) == ("VOLUNTARY", "released", 0, "ready")
        assert scene.state(other) == "claimed"

    # --- attempts -------------------------------------------------------------------------------------------------

    def test_an_attempt_counts_from_the_claim_on_so_that_a_crash_counts(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key)
        assert scene.task(key).attempts == 1

    def test_at_most_ten_attempts_are_given_back_in_a_run(self, scene: Scene) -> None:
        key = scene.add(max_attempts=3)
        for _ in range(10):
            scene.do(c.Release, receipt=scene.take(key))
        assert (scene.task(key).attempts, scene.task(key).given_back) == (0, 10)
        for attempts in (1, 2):
            scene.do(c.Release, receipt=scene.take(key))
            assert scene.task(key).attempts == attempts
            assert scene.last_claim(key).counted is True
        assert [x.counted for x in scene.lineage(key)] == [False] * 10 + [True] * 2

    def test_an_attempt_is_not_given_back_twice_for_one_claim(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key, "ann", lease=60)
        scene.pass_time(seconds=60)
        receipt = scene.take(key, "bo")
        for _ in range(3):
            scene.do(c.Release, receipt=receipt)
        assert (scene.task(key).attempts, scene.task(key).given_back) == (1, 1)

    def test_a_run_begins_with_no_attempts_and_the_generation_goes_on(self, scene: Scene) -> None:
        key = scene.add(max_attempts=2)
        scene.bury(key)
        scene.do(c.Retry, task=key)
        task = scene.task(key)
        assert (task.run, task.attempts, task.given_back, task.generation) == (2, 0, 0, 2)
        granted = scene.claim(key)
        assert (granted.generation, granted.attempt) == (3, 1)

    def test_a_generation_grows_with_a_claim_and_with_nothing_else(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Renew, receipt=receipt)
        scene.do(c.Pause, task=key)
        scene.do(c.Resume, task=key)
        scene.know("bo")
        scene.do(c.Assign, task=key, agent="bo")
        scene.do(c.Edit, task=key, changes={"title": "other"})
        scene.do(c.Cancel, task=key)
        assert scene.task(key).generation == 1

    # --- delays ---------------------------------------------------------------------------------------------------

    def test_delays_double_up_to_their_cap(self, scene: Scene) -> None:
        policy = RetryPolicy(initial_delay=10, multiplier=2.0, cap=60, jitter=0.0)
        key = scene.add(max_attempts=6, retry=policy)
        waits = []
        for _ in range(5):
            failed = scene.fail(scene.take(key))
            waits.append(((failed.retry_at or 0) - scene.now) // 1_000_000)
            scene.clock.now = failed.retry_at or 0
        assert waits == [10, 20, 40, 60, 60]

    def test_jitter_moves_the_delay_by_half_at_most(self, scene: Scene) -> None:
        for fraction, seconds in ((0.0, 5), (0.5, 10), (0.999999, 15)):
            scene.dice.next_fraction = fraction
            failed = scene.fail(scene.take(scene.add()))
            assert round(((failed.retry_at or 0) - scene.now) / 1e6, 2) == seconds

    def test_an_immediate_retry_is_ready_at_once(self, scene: Scene) -> None:
        key = scene.add(retry=RetryPolicy(strategy="immediate"))
        scene.fail(scene.take(key))
        assert scene.state(key) == "ready"

    def test_a_fixed_delay_does_not_grow(self, scene: Scene) -> None:
        key = scene.add(max_attempts=4, retry=RetryPolicy(strategy="fixed", jitter=0.0))
        for _ in range(3):
            failed = scene.fail(scene.take(key))
            assert failed.retry_at == scene.now + 10_000_000
            scene.clock.now = failed.retry_at or 0

    def test_a_class_that_is_not_retried_makes_a_dead_letter_at_once(self, scene: Scene) -> None:
        never = scene.add(retry=RetryPolicy(no_retry_on=("invalid_output",)))
        scene.fail(scene.take(never), "invalid_output")
        only = scene.add(retry=RetryPolicy(retry_on=("crash",)))
        scene.fail(scene.take(only), "task")
        hopeless = scene.add(retry=RetryPolicy(retry_on=("permanent",)))
        scene.fail(scene.take(hopeless), "permanent")
        assert scene.states(never, only, hopeless) == ["dead_lettered"] * 3

    def test_a_policy_in_the_words_of_other_queues_is_kept_in_ours(self, scene: Scene) -> None:
        policy = {
            "initial_delay_sec": 5, "backoff_multiplier": 3, "max_delay_sec": 60, "jitter": False,
            "no_retry_on": ["cancelled", "permanent"],
        }  # fmt: skip
        ours = RetryPolicy(initial_delay=5, multiplier=3, cap=60, jitter=0.0, no_retry_on=("permanent",))
        key = scene.add(retry=msgspec.convert(policy, RetryWords))
        edited = scene.add()
        scene.do(c.Edit, task=edited, changes={"retry": {**policy, "jitter": True}})
        assert scene.row(Brief, scene.task(key).id).retry == ours
        assert scene.row(Brief, scene.task(edited).id).retry == replace(ours, jitter=0.5)
        assert scene.fail(scene.take(key)).retry_at == scene.now + 5_000_000
        with pytest.raises(InvalidInput, match="initial_delay_sec and initial_delay"):
            scene.do(c.Edit, task=edited, changes={"retry": {"initial_delay": 7, "initial_delay_sec": 8}})

    @pytest.mark.parametrize("error_class", retry.CLASSES)
    def test_a_policy_speaks_for_every_class_also_where_the_attempt_is_given_back(
        self, scene: Scene, error_class: str
    ) -> None:
        never = scene.add(retry=RetryPolicy(no_retry_on=(error_class,)))
        failed = scene.fail(scene.take(never), error_class, message="no key")
        assert (failed.state, scene.state(never)) == ("dead_lettered", "dead_lettered")
        (letter,) = scene.rows(DeadLetter)
        assert (letter.error_class, letter.error) == (error_class, "no key")
        if error_class not in (retry.BUDGET, "permanent"):
            other = "task" if error_class != "task" else "crash"
            only = scene.add(retry=RetryPolicy(retry_on=(other,)))
            assert scene.fail(scene.take(only, "bo"), error_class).state == "dead_lettered"
            named = scene.add(retry=RetryPolicy(retry_on=(error_class,)))
            assert scene.fail(scene.take(named, "cy"), error_class).state != "dead_lettered"

    @pytest.mark.parametrize("error_class", [*retry.AGENT_TROUBLE, retry.RATE_LIMIT])
    def test_a_class_that_the_policy_names_is_retried_as_it_says_and_not_given_back(
        self, scene: Scene, error_class: str
    ) -> None:
        policy = RetryPolicy(retry_on=(error_class,), strategy="fixed", initial_delay=3, jitter=0.0)
        key = scene.add(retry=policy)
        failed = scene.fail(scene.take(key), error_class)
        assert ended(scene, key) == ("FAILED", "error", 1, "retrying")
        assert failed.retry_at == scene.now + 3_000_000
        (event,) = scene.events(kind="task.retry_scheduled")
        assert (event.details["error_class"], event.details["state_before"]) == (error_class, "claimed")

    def test_a_policy_may_forbid_the_retry_of_a_lost_lease(self, scene: Scene) -> None:
        never = scene.add(retry=RetryPolicy(no_retry_on=("lease_expired",)))
        others = scene.add(retry=RetryPolicy(retry_on=("crash",)))  # of reported failures: a lost holder reports none
        for key in (never, others):
            scene.take(key, lease=10)
        scene.pass_time(seconds=11)
        assert scene.states(never, others) == ["dead_lettered", "ready"]
        (letter,) = scene.rows(DeadLetter)
        assert letter.error_class == "lease_expired"

    def test_retry_after_takes_the_place_of_the_policys_delay(self, scene: Scene) -> None:
        key = scene.add()
        failed = scene.fail(scene.take(key), retry_after=7)
        assert failed.retry_at == scene.now + 7_000_000

    def test_the_fallback_models_take_over_after_two_failed_attempts(self, scene: Scene) -> None:
        key = scene.add(constraints={"model_preferences": ["opus"], "fallback_models": ["haiku"]})
        models = []
        for _ in range(3):
            granted = scene.claim(key)
            models.append(granted.models)
            scene.fail(granted.receipt or "", retry_after=0)
        assert models == [("opus",), ("opus",), ("haiku",)]

    # --- cool-offs ------------------------------------------------------------------------------------------------

    def test_three_troubles_in_a_row_cool_the_agent_off(self, scene: Scene) -> None:
        keys = [scene.add() for _ in range(6)]
        for key in keys[:3]:
            scene.fail(scene.take(key, "ann"), "environment")
        cooling = scene.next("ann")
        assert (cooling.outcome, cooling.retry_at) == ("NO_TASK", scene.now + MINUTE)
        assert scene.next("bo").outcome == "GRANTED"
        scene.pass_time(minutes=1)
        assert scene.next("ann").outcome == "GRANTED"

    def test_after_its_cool_off_an_agent_holds_one_task_until_one_succeeds(self, scene: Scene) -> None:
        keys = [scene.add() for _ in range(6)]
        for key in keys[:3]:
            scene.fail(scene.take(key, "ann"), "environment")
        scene.pass_time(minutes=1)
        trial = scene.next("ann")
        assert trial.outcome == "GRANTED"
        assert scene.next("ann").outcome == "DENIED_LIMIT"
        scene.submit(trial.receipt or "")
        assert [scene.next("ann").outcome for _ in range(2)] == ["GRANTED", "GRANTED"]

    def test_each_further_trouble_doubles_the_cool_off_up_to_half_an_hour(self, scene: Scene) -> None:
        waits = []
        for number in range(10):
            scene.fail(scene.take(scene.add(), "ann"), "environment")
            if number >= 2:
                until = scene.next("ann").retry_at or 0
                waits.append((until - scene.now) // MINUTE)
                scene.clock.now = until
        assert waits == [1, 2, 4, 8, 16, 30, 30, 30]

    def test_trouble_on_three_different_agents_is_the_tasks_own(self, scene: Scene) -> None:
        key = scene.add()
        for agent in ("ann", "bo"):
            scene.fail(scene.take(key, agent), "environment")
        assert scene.task(key).attempts == 0
        scene.fail(scene.take(key, "cy"), "environment")
        assert ended(scene, key) == ("FAILED", "error", 1, "retrying")

    # --- hung tasks -----------------------------------------------------------------------------------------------

    def test_a_silent_holder_is_warned_then_aborted(self, scene: Scene) -> None:
        key = scene.add(priority=50)
        receipt = scene.take(key, lease=7200)
        scene.do(c.Progress, receipt=receipt, percent=10, done_in=600)
        scene.pass_time(minutes=39, seconds=59)
        assert scene.do(c.Renew, receipt=receipt).directive == "continue"
        scene.pass_time(seconds=1)
        warned = scene.do(c.Renew, receipt=receipt)
        assert warned.directive == "warn"
        assert warned.directive_text
        scene.pass_time(minutes=9, seconds=59)
        assert scene.state(key) == "running"
        scene.pass_time(seconds=1)
        assert ended(scene, key) == ("SUPERSEDED", "superseded", 1, "retrying")
        assert scene.task(key).priority == 40
        assert "task.aborted" not in scene.log(key)  # looks write nothing
        scene.engine.sweep()
        assert [k for k in scene.log(key) if k in ("task.warned", "task.aborted")] == ["task.warned", "task.aborted"]

    def test_a_warning_does_not_take_the_place_of_a_pause(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=7200)
        scene.do(c.Progress, receipt=receipt, done_in=0)
        scene.do(c.Pause, task=key, drain=True)
        scene.pass_time(minutes=31)
        assert scene.do(c.Renew, receipt=receipt).directive == "pause"
        assert scene.do(c.Progress, receipt=receipt, percent=1).directive == "pause"

    def test_progress_after_the_warning_saves_the_claim(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=7200)
        scene.do(c.Progress, receipt=receipt, percent=10, done_in=0)
        scene.pass_time(minutes=35)
        assert scene.do(c.Progress, receipt=receipt, percent=20).directive == "continue"
        scene.pass_time(minutes=20)
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"

    def test_a_holder_that_gave_no_estimate_is_not_hung(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=86400)
        scene.do(c.Progress, receipt=receipt, percent=10)
        scene.pass_time(hours=23)
        assert scene.do(c.Renew, receipt=receipt).directive == "continue"

    def test_an_abort_raises_the_priority_but_never_makes_it_critical(self, scene: Scene) -> None:
        high, low = scene.add(priority=12), scene.add(priority=80)
        for key in (high, low):
            scene.take(key)
            scene.do(c.Abort, task=key)
        assert [scene.task(high).priority, scene.task(low).priority] == [10, 70]

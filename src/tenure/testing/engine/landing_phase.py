"""A result that is to be landed: judged, then landed, then accepted; and who may do what in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.commands import NewTask, Principal
from tenure.core.errors import InvalidInput, NotAllowed
from tenure.core.land_request import LandRequest, is_of_landing
from tenure.core.outcomes import Outcome
from tenure.core.records import Landing, Reservation, Validation, replace
from tenure.core.validation import MOST_TRIES
from tenure.engine.checks import validation_reads
from tenure.engine.reads.todo import todo
from tenure.testing.engine.landings import commit
from tenure.testing.engine.runners import taken as taken_by_runner
from tenure.testing.engine.spending import look
from tenure.testing.engine.stage import Stage
from tenure.testing.engine.validations import ANN, BO, CHECKER, PATTERN, REVIEW, TESTS, judge, taken
from tenure.testing.factories import MEMBER, Scene

WORK = LandRequest(commit=commit(7), onto="main")
ANN_AGAIN = replace(ANN, agent="ann-2", session="s-2")  # the runner's key, under another name


def submitted(scene: Scene, output: dict[str, Any] | None = None, **fields: Any) -> str:
    """The key of a task whose result has a commit that is to be landed."""
    key = scene.add(**({"output": output} if output else {}), **fields)
    outcome = scene.submit(scene.take(key), "ok", land=WORK)
    assert outcome.outcome == "VALIDATING", outcome
    return key


def lander(scene: Scene, holder: str = "lee", **fields: Any) -> str:
    return taken(scene, holder, phase="land", **fields)


def land(scene: Scene, receipt: str, old: int = 1, new: int = 2, branch: str = "main") -> Outcome:
    return scene.do(c.Land, receipt=receipt, branch=branch, old=commit(old), new=commit(new))


def row(scene: Scene) -> Validation:
    return max(scene.rows(Validation), key=lambda one: one.claimed)  # type: ignore[no-any-return]


class LandingPhase(Stage):
    # --- one life -------------------------------------------------------------------------------------------------

    def test_a_result_without_a_validator_is_accepted_once_it_is_landed(self, scene: Scene) -> None:
        first, then = scene.plan(NewTask(title="a", name="a"), NewTask(title="b", depends_on=("a",)))
        answer = scene.submit(scene.take(first), "done", land=WORK)
        assert (answer.outcome, answer.state) == ("VALIDATING", "validating")
        assert "waiting to be landed on main" in answer.message
        assert scene.states(first, then) == ["validating", "pending"]
        receipt = lander(scene)
        assert is_of_landing(receipt)
        assert land(scene, receipt).outcome == "OK"
        (recorded,) = scene.rows(Landing)
        assert (recorded.agent, recorded.branch, recorded.new) == ("ann", "main", commit(2))
        assert scene.state(first) == "validating"
        done = judge(scene, receipt, True)
        assert (done.outcome, scene.states(first, then)) == ("ACCEPTED", ["completed", "ready"])
        assert judge(scene, receipt, True).again
        (event,) = scene.events(kind="task.completed")
        assert (event.details["onto"], scene.results(first)[0].accepted) == ("main", True)

    def test_a_verdict_comes_before_the_landing_and_lands_nothing(self, scene: Scene) -> None:
        key = submitted(scene, TESTS)
        assert scene.do(c.TakeValidation, checker="lee", phase="land").outcome == "NO_TASK"
        assert scene.do(c.TakeValidation, checker="lee", phase="land", task=key).outcome == "DENIED_STATE"
        checker = taken(scene)
        assert judge(scene, checker, True).state == "validating"
        assert (row(scene).phase, row(scene).decided_by, row(scene).state) == ("land", "human:olaf", "open")
        assert judge(scene, checker, True).again  # the same verdict again
        assert judge(scene, checker, False, "no").outcome == "NO_CLAIM"
        assert (land(scene, checker).ok, scene.rows(Landing)) == (False, [])
        assert scene.do(c.TakeValidation, checker="vera").outcome == "NO_TASK"
        receipt = lander(scene, task=key)
        land(scene, receipt)
        assert judge(scene, checker, True).outcome == "STALE_GENERATION"
        assert judge(scene, receipt, True).outcome == "ACCEPTED"

    def test_the_receipt_of_a_verdict_never_completes_what_waits_to_be_landed(self, scene: Scene) -> None:
        key = submitted(scene, TESTS)
        checker = taken(scene)
        judge(scene, checker, True)
        name, _, token = checker.partition("@")
        for forged in (f"{name}-land@{token}", checker):
            assert not land(scene, forged).ok
            assert judge(scene, forged, True).outcome in ("NO_CLAIM", "OK")
        assert (scene.state(key), scene.rows(Landing)) == ("validating", [])

    def test_a_quick_check_judges_at_once_and_refuses_before_anything_lands(self, scene: Scene) -> None:
        key = scene.add(output=PATTERN)
        receipt = scene.take(key)
        assert scene.submit(receipt, "no", land=WORK).outcome == "INVALID_OUTPUT"
        assert scene.submit(receipt, "ok", land=WORK).outcome == "VALIDATING"
        assert row(scene).phase == "land"
        assert judge(scene, lander(scene), True).outcome == "ACCEPTED"

    def test_a_person_approves_once_and_may_reject_until_it_is_landed(self, scene: Scene) -> None:
        key = submitted(scene, REVIEW)
        assert scene.do(c.Approve, by=BO, task=key).state == "validating"
        assert (row(scene).phase, row(scene).decided_by) == ("land", "user:bo")
        assert "has passed" in scene.do(c.Approve, by=MEMBER, task=key).message
        assert scene.do(c.Reject, by=MEMBER, task=key, reason="not now").state == "retrying"
        assert scene.do(c.TakeValidation, checker="lee", phase="land").outcome == "NO_TASK"

    def test_the_verdict_of_a_person_stands_whoever_lands_it(self, scene: Scene) -> None:
        key = submitted(scene, REVIEW)
        scene.do(c.Approve, by=BO, task=key)
        judge(scene, lander(scene), True)
        (event,) = scene.events(kind="task.completed")
        assert (event.details["judged_by"], row(scene).decided_by, scene.state(key)) == (
            "user:bo",
            "user:bo",
            "completed",
        )

    def test_a_refused_result_lands_nothing(self, scene: Scene) -> None:
        key = submitted(scene, TESTS)
        assert judge(scene, taken(scene), False, "red").state == "retrying"
        assert scene.do(c.TakeValidation, checker="lee", phase="land").outcome == "NO_TASK"
        assert scene.state(key) == "retrying"

    def test_the_same_result_again_gets_the_same_answer(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        first = scene.submit(receipt, "done", land=WORK)
        again = scene.submit(receipt, "done", land=WORK)
        assert (again.outcome, again.again, again.result) == ("VALIDATING", True, first.result)

    def test_views_say_what_waits_for_what(self, scene: Scene) -> None:
        key = submitted(scene)
        view = look(scene, validation_reads.validations)[0]
        assert (view["state"], view["phase"], view["land"]) == (
            "landing",
            "land",
            {"commit": commit(7), "onto": "main"},
        )
        assert look(scene, validation_reads.counts) == {"land": {"waiting": 1, "running": 0}}
        receipt = lander(scene)
        scene.do(c.Undecide, receipt=receipt, reason="lib.py is changed", blocked=True, retry_after=60)
        task = scene.task(key)
        assert "lib.py is changed" in look(scene, lambda work, _: validation_reads.sentences(work, task))[0]

    @pytest.mark.parametrize(
        "request_", [LandRequest(commit="HEAD", onto="main"), LandRequest(commit=commit(7), onto="-x")]
    )
    def test_what_no_git_has_is_refused(self, scene: Scene, request_: LandRequest) -> None:
        receipt = scene.take(scene.add())
        with pytest.raises(InvalidInput):
            scene.submit(receipt, "done", land=request_)
        assert land(scene, receipt).outcome == "OK"  # nothing has changed

    # --- takers ---------------------------------------------------------------------------------------------------

    def test_a_stale_lander_records_and_settles_nothing(self, scene: Scene) -> None:
        submitted(scene)
        first = lander(scene, lease=60)
        scene.pass_time(seconds=61)
        second = lander(scene, "mo", lease=60)
        assert land(scene, first).outcome == "STALE_GENERATION"
        assert judge(scene, first, True).outcome == "STALE_GENERATION"
        scene.pass_time(seconds=61)
        assert land(scene, second).outcome == "OK"  # nobody took over
        assert judge(scene, second, True).outcome == "ACCEPTED"

    def test_after_a_crash_the_next_lander_finds_the_record(self, scene: Scene) -> None:
        key = submitted(scene)
        first = lander(scene, lease=60)
        land(scene, first)
        scene.pass_time(seconds=61)
        second = lander(scene, "mo")
        assert [one["new"] for one in land(scene, second, 1, 3).landings or ()] == [commit(2)]
        assert judge(scene, first, True).outcome == "STALE_GENERATION"
        assert judge(scene, second, True).outcome == "ACCEPTED"
        assert scene.state(key) == "completed"

    def test_a_new_epoch_voids_the_receipt_and_the_next_lander_settles_it(self, scene: Scene) -> None:
        submitted(scene)
        receipt = lander(scene)
        land(scene, receipt)
        scene.engine.new_epoch("restored")
        assert land(scene, receipt, 2, 3).outcome == "STALE_EPOCH"
        assert judge(scene, receipt, True).outcome == "STALE_EPOCH"
        assert judge(scene, lander(scene, "mo"), True).outcome == "ACCEPTED"

    def test_only_the_branch_of_the_result_is_landed_on(self, scene: Scene) -> None:
        submitted(scene)
        with pytest.raises(InvalidInput, match="main"):
            land(scene, lander(scene), branch="other")

    # --- what keeps it from landing -------------------------------------------------------------------------------

    def test_a_checkout_in_the_way_costs_nothing_however_often(self, scene: Scene) -> None:
        key = submitted(scene)
        for _ in range(MOST_TRIES + 2):
            receipt = lander(scene)
            kept = scene.do(c.Undecide, receipt=receipt, reason="lib.py", blocked=True, retry_after=60)
            assert (kept.state, scene.do(c.TakeValidation, checker="lee", phase="land").outcome) == (
                "validating",
                "NO_TASK",
            )
            scene.pass_time(seconds=61)
        assert (row(scene).tries, scene.task(key).attempts, len(scene.lineage(key))) == (0, 1, 1)
        assert judge(scene, lander(scene), True).outcome == "ACCEPTED"

    def test_landings_that_fail_for_other_reasons_ask_a_person_and_go_on(self, scene: Scene) -> None:
        key = submitted(scene)
        for _ in range(MOST_TRIES):
            scene.do(c.Undecide, receipt=lander(scene), reason="git failed", retry_after=0)
        assert scene.state(key) == "paused"
        assert "could not be landed on main" in (scene.task(key).reason or "")
        scene.do(c.Resume, task=key)
        assert judge(scene, lander(scene), True).outcome == "ACCEPTED"

    def test_a_conflict_gives_the_attempt_back_and_names_the_commit(self, scene: Scene) -> None:
        key = submitted(scene, max_attempts=1)
        refused = scene.do(c.Judge, receipt=lander(scene), ok=False, reasons=("README.md",), conflict=True)
        assert refused.state == "retrying"
        task = scene.task(key)
        assert task.last_error is not None
        assert (task.last_error.error_class, task.attempts) == ("merge_conflict", 0)
        assert [one.reason for one in scene.results(key)] == ["MERGE_CONFLICT"]
        scene.pass_time(hours=1)
        assert scene.submit(scene.take(key, "bo"), "ok", land=WORK).outcome == "VALIDATING"

    def test_conflicts_without_end_use_the_attempts_up(self, scene: Scene) -> None:
        key = submitted(scene, max_attempts=1)
        for _ in range(10):
            scene.do(c.Judge, receipt=lander(scene), ok=False, reasons=("README.md",), conflict=True)
            scene.pass_time(hours=1)
            scene.submit(scene.take(key), "ok", land=WORK)
        last = scene.do(c.Judge, receipt=lander(scene), ok=False, reasons=("README.md",), conflict=True)
        assert last.state == "dead_lettered"

    def test_checks_that_fail_on_the_merge_refuse_the_output(self, scene: Scene) -> None:
        key = submitted(scene, TESTS)
        judge(scene, taken(scene), True)
        assert judge(scene, lander(scene), False, "red on main").state == "retrying"
        assert scene.task(key).attempts == 1

    def test_only_a_landing_has_conflicts_and_a_blocked_way(self, scene: Scene) -> None:
        submitted(scene, TESTS)
        receipt = taken(scene)
        with pytest.raises(InvalidInput, match="landing"):
            scene.do(c.Judge, receipt=receipt, ok=False, reasons=("x",), conflict=True)
        with pytest.raises(InvalidInput, match="landing"):
            scene.do(c.Undecide, receipt=receipt, reason="x", blocked=True)

    # --- people ---------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("output", [None, TESTS])
    def test_a_cancelled_result_is_not_landed_and_undo_brings_it_back(
        self, scene: Scene, output: dict[str, Any] | None
    ) -> None:
        key = submitted(scene, output)
        cancelled = scene.do(c.Cancel, task=key)
        assert scene.do(c.TakeValidation, checker="lee", phase="land").outcome == "NO_TASK"
        scene.do(c.Undo, command_id=cancelled.command_id or "")
        assert scene.state(key) == "validating"

    def test_an_edit_of_its_title_leaves_the_result_as_it_is(self, scene: Scene) -> None:
        key = submitted(scene)
        receipt = lander(scene)
        land(scene, receipt)
        scene.do(c.Edit, task=key, changes={"title": "other"})
        assert scene.do(c.Cancel, task=key).outcome == "DENIED_STATE"
        assert judge(scene, receipt, True).outcome == "ACCEPTED"

    def test_an_edit_that_supersedes_withdraws_it(self, scene: Scene) -> None:
        key = submitted(scene)
        scene.do(c.Edit, task=key, changes={"description": "other"}, supersede=True)
        assert (scene.state(key), row(scene).state) == ("ready", "withdrawn")

    REFUSED: dict[str, Callable[[Scene, str], Any]] = {  # noqa: RUF012 - a table of cases
        "cancel": lambda scene, key: scene.do(c.Cancel, task=key),
        "reject": lambda scene, key: scene.do(c.Reject, by=MEMBER, task=key, reason="no"),
        "approve": lambda scene, key: scene.do(c.Approve, by=MEMBER, task=key),
        "supersede": lambda scene, key: scene.do(
            c.Edit, task=key, changes={"spec": {"prompt": "other"}}, supersede=True
        ),
    }

    @pytest.mark.parametrize("verb", REFUSED)
    def test_from_the_record_on_only_the_landing_ends_it(self, scene: Scene, verb: str) -> None:
        key = submitted(scene)
        receipt = lander(scene)
        land(scene, receipt)
        refused = self.REFUSED[verb](scene, key)
        assert (refused.outcome, scene.state(key)) == ("DENIED_STATE", "validating")
        assert "is being landed on main" in refused.message
        scene.pass_time(hours=24)  # also where its lander has died
        assert self.REFUSED[verb](scene, key).outcome == "DENIED_STATE"
        scene.do(c.Undecide, receipt=receipt, reason="nothing was moved", blocked=True)
        assert self.REFUSED["cancel"](scene, key).state == "cancelled"

    def test_a_parent_that_is_cancelled_leaves_what_is_being_landed(self, scene: Scene) -> None:
        parent = scene.add("parent")
        holder = scene.take(parent)
        made = scene.do(c.Spawn, receipt=holder, tasks=(NewTask(title="part"), NewTask(title="other")), wait=True)
        part, other = (str(one["key"]) for one in made.tasks or ())
        scene.submit(scene.take(part, "bo"), "done", land=WORK)
        receipt = lander(scene)
        land(scene, receipt)
        scene.do(c.Cancel, task=parent)
        assert scene.states(part, other) == ["validating", "cancelled"]
        assert judge(scene, receipt, True).outcome == "ACCEPTED"

    def test_a_persons_pause_holds_the_landing(self, scene: Scene) -> None:
        key = submitted(scene)
        receipt = lander(scene)
        scene.do(c.Pause, task=key)
        assert land(scene, receipt).outcome == "DENIED_PAUSED"
        assert judge(scene, receipt, True).outcome == "DENIED_PAUSED"
        scene.do(c.Resume, task=key)
        assert judge(scene, receipt, True).outcome == "ACCEPTED"

    def test_what_a_person_paused_while_it_was_held_is_not_submitted_to_be_landed(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Pause, task=key)
        refused = scene.submit(receipt, "ok", land=WORK)
        assert (refused.ok, refused.work_lost, scene.state(key)) == (False, True, "paused")

    def test_a_budgets_pause_refuses_neither_verdict_nor_landing(self, scene: Scene) -> None:
        key = scene.add(output=TESTS)
        scene.do(c.SetBudget, scope="project", usd="1", default_estimate="1")
        receipt = scene.take(key)
        scene.do(c.ReportUsage, receipt=receipt, model="x", cost_usd="1.04")
        assert scene.state(key) == "paused"
        assert scene.submit(receipt, "ok", land=WORK).outcome == "VALIDATING"
        judge(scene, taken(scene), True)
        assert judge(scene, lander(scene), True).outcome == "ACCEPTED"

    # --- what it touches ------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("end", ["landed", "refused", "cancelled", "conflict"])
    def test_what_it_touches_stays_reserved_until_it_is_landed_or_refused(self, scene: Scene, end: str) -> None:
        key = scene.add(touches=("src/**",), output=TESTS)
        other = scene.add("other", touches=("src/a.py",))
        scene.submit(scene.take(key), "ok", land=WORK)
        assert scene.claim(other, "bo").outcome == "DENIED_CONFLICT"
        assert scene.next("bo").outcome == "NO_TASK"
        if end == "cancelled":
            scene.do(c.Cancel, task=key)
        else:
            judge(scene, taken(scene), end != "refused", "red")
        if end in ("landed", "conflict"):
            assert scene.claim(other, "bo").outcome == "DENIED_CONFLICT"
            ok, reasons = end == "landed", ("a.py",)
            scene.do(c.Judge, receipt=lander(scene), ok=ok, reasons=reasons, conflict=not ok)
        assert scene.rows(Reservation) == []
        assert scene.next("bo").outcome == "GRANTED"

    def test_what_it_touches_stays_reserved_in_a_new_epoch(self, scene: Scene) -> None:
        submitted(scene, touches=("src/**",))
        held = scene.take(scene.add("held", touches=("docs/**",)), "bo")
        assert held
        scene.engine.new_epoch("restored")
        assert [one.pattern for one in scene.rows(Reservation)] == ["src/**"]
        assert scene.engine.verify() == []
        judge(scene, lander(scene), True)
        assert scene.rows(Reservation) == []

    def test_a_landing_that_nobody_settles_is_tried_without_end(self, scene: Scene) -> None:
        submitted(scene)
        for _ in range(MOST_TRIES + 2):
            land(scene, lander(scene, lease=60))
            scene.pass_time(seconds=61)
        assert (row(scene).tries, scene.engine.verify()) == (MOST_TRIES + 2, [])
        assert judge(scene, lander(scene), True).outcome == "ACCEPTED"

    def test_todo_offers_only_to_land_what_may_have_landed(self, scene: Scene) -> None:
        submitted(scene)
        scene.pass_time(seconds=61)
        assert [one["do"] for one in look(scene, todo)] == [("land", "reject")]
        land(scene, lander(scene, lease=60))
        scene.pass_time(seconds=61)
        (one,) = look(scene, todo)
        assert (one["do"], one["text"]) == (
            ("land",),
            f"the landing of commit {commit(7)[:12]} on main has begun, and nobody has settled it",
        )

    # --- who may --------------------------------------------------------------------------------------------------

    def test_who_may_land(self, scene: Scene) -> None:
        key = scene.add()
        granted = scene.claim(key, by=ANN)
        scene.submit(granted.receipt or "", "done", by=ANN, land=WORK)
        take: Callable[..., Outcome] = lambda by: scene.do(c.TakeValidation, by=by, checker="x", phase="land", task=key)  # noqa: E731
        for stranger in (BO, Principal(role="agent", agent="ann", session="s-ann")):
            with pytest.raises(NotAllowed):
                take(stranger)
            assert scene.state(key) == "validating"
        receipt = take(ANN_AGAIN).receipt or ""
        for stranger in (BO, Principal(role="agent", agent="ann", session="s-ann")):
            with pytest.raises(NotAllowed):
                scene.do(c.Judge, by=stranger, receipt=receipt, ok=True)
        scene.do(c.Undecide, by=ANN_AGAIN, receipt=receipt, reason="x", retry_after=0)
        receipt = take(CHECKER).receipt or ""
        assert scene.do(c.Judge, by=CHECKER, receipt=receipt, ok=True).outcome == "ACCEPTED"

    def test_the_agent_of_a_runner_submits_what_is_to_be_landed_and_lands_nothing(self, scene: Scene) -> None:
        key = scene.add()
        receipt = taken_by_runner(scene, key)
        assert land(scene, receipt).outcome == "DENIED_RUNNER"
        assert scene.submit(receipt, "done").outcome == "DENIED_RUNNER"
        assert scene.submit(receipt, "done", land=WORK).outcome == "VALIDATING"
        assert land(scene, receipt).outcome == "NO_CLAIM"  # its claim has ended
        assert judge(scene, lander(scene), True).outcome == "ACCEPTED"

"""What persons do with work, how it is undone, who may do it; dead letters; plans applied again; limits."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import roles
from tenure.core.commands import Dependency, NewTask, Principal
from tenure.core.errors import InvalidInput, NotAllowed, NotFound
from tenure.core.queries import Tasks
from tenure.core.records import DeadLetter, Task, Track, replace
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.graphs import new
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene, code_of

HOUR = 3_600_000_000


class Operators(Stage):
    # --- pause and resume -----------------------------------------------------------------------------------------

    def test_a_drained_holder_gets_the_directive_and_keeps_its_claim(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Pause, task=key, drain=True, reason="deploying")
        assert scene.state(key) == "claimed"
        assert scene.do(c.Renew, receipt=receipt).directive == "pause"
        assert scene.do(c.Progress, receipt=receipt, percent=3).directive == "pause"
        assert scene.submit(receipt).outcome == "ACCEPTED"

    def test_what_nobody_holds_is_paused_where_it_stands(self, scene: Scene) -> None:
        ready, waiting = scene.add(), scene.add(not_before=scene.now + HOUR)
        retrying = scene.add()
        scene.fail(scene.take(retrying), retry_after=600)
        for key in (ready, waiting, retrying):
            assert scene.do(c.Pause, task=key).state == "paused"
            assert scene.do(c.Pause, task=key).outcome == "UNCHANGED"
        assert scene.next().outcome == "NO_TASK"
        resumed = [scene.do(c.Resume, task=key).state for key in (ready, waiting, retrying)]
        assert resumed == ["ready", "pending", "retrying"]
        scene.pass_time(minutes=10)
        assert scene.state(retrying) == "ready"

    def test_a_delay_that_ended_during_the_pause_is_over(self, scene: Scene) -> None:
        key = scene.add()
        scene.fail(scene.take(key), retry_after=60)
        scene.do(c.Pause, task=key)
        scene.pass_time(minutes=2)
        assert scene.state(key) == "paused"
        assert scene.do(c.Resume, task=key).state == "ready"

    def test_only_what_can_be_paused_or_resumed_is(self, scene: Scene) -> None:
        draft, done = scene.add(draft=True), scene.add()
        scene.finish(done)
        for key in (draft, done):
            assert scene.do(c.Pause, task=key).outcome == "DENIED_STATE"
            assert scene.do(c.Resume, task=key).outcome == "DENIED_STATE"
            assert scene.do(c.Answer, task=key, text="x").outcome == "DENIED_STATE"

    def test_a_note_leaves_everything_as_it_is(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Note, task=key, text="look at the logs")
        assert scene.events(task=scene.task(key).id)[-1].message == "look at the logs"
        assert scene.submit(receipt).outcome == "ACCEPTED"

    def test_a_retry_of_a_waiting_task_ends_its_delay_in_the_same_run(self, scene: Scene) -> None:
        key = scene.add()
        scene.fail(scene.take(key), retry_after=1000)
        assert scene.state(key) == "retrying"
        scene.do(c.Retry, task=key, note="the server is back")
        task = scene.task(key)
        assert (task.state, task.run, task.attempts, task.retry_at) == ("ready", 1, 1, None)

    def test_a_retry_of_a_cancelled_task_is_a_new_run_that_is_not_undone(self, scene: Scene) -> None:
        key = scene.add()
        after = scene.add(depends_on=(Dependency(task=key, on_failure="cancel"),))
        scene.fail(scene.take(key))
        scene.do(c.Cancel, task=key)
        assert scene.states(key, after) == ["cancelled", "cancelled"]
        answer = scene.do(c.Retry, task=key)
        task = scene.task(key)
        assert (task.state, task.run, task.attempts, task.cancelled) == ("ready", 2, 0, None)
        assert scene.state(after) == "cancelled"  # a person cancelled both; `undo` restores them together
        assert scene.do(c.Undo, command_id=answer.command_id).outcome == "CANNOT_UNDO"
        assert scene.submit(scene.take(key)).outcome == "ACCEPTED"

    def test_a_retry_restores_what_its_failure_cancelled_and_nothing_else(self, scene: Scene) -> None:
        source = scene.add()
        one = scene.add(depends_on=(Dependency(task=source, on_failure="cancel"),))
        early = scene.add(depends_on=(Dependency(task=one, on_failure="cancel"),))
        scene.do(c.Cancel, task=one)
        scene.do(c.Retry, task=one)
        late = scene.add(depends_on=(Dependency(task=one, on_failure="cancel"),))
        scene.bury(source)
        assert scene.states(one, early, late) == ["cancelled"] * 3
        scene.do(c.Retry, task=one)  # what lies behind it was still cancelled by the failure of the first
        scene.do(c.Retry, task=source)
        assert scene.states(source, one, early, late) == ["ready", "pending", "cancelled", "pending"]

    def test_a_deadline_in_the_past_is_refused(self, scene: Scene) -> None:
        key = scene.add()
        with pytest.raises(InvalidInput, match="is in the past"):
            scene.add(deadline=scene.now - 60_000_000)
        with pytest.raises(InvalidInput, match="1 min ago"):
            scene.do(c.Edit, task=key, changes={"deadline": scene.now - 60_000_000})
        assert scene.do(c.Edit, task=key, changes={"deadline": None}).outcome == "UPDATED"

    def test_tasks_are_listed_by_the_words_that_people_see_and_by_any_name_of_the_parent(self, scene: Scene) -> None:
        parent, draft = scene.add("parent"), scene.add("draft", draft=True)
        child = scene.add("child", parent=parent)
        scene.bury(dead := scene.add("dead"))

        def listed(**where: Any) -> list[str]:
            return [task["key"] for task in read_query(scene.engine, Tasks(project=PROJECT, **where))]

        assert listed(state=("draft",)) == [draft]
        assert listed(state=("dead-letter",)) == listed(state=("dead letter",)) == [dead]
        assert listed(parent=scene.task(parent).ref) == [child]
        with pytest.raises(NotFound):
            listed(parent="A-999")

    # --- states that refuse ---------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("verb", "allowed"),
        [
            (c.Cancel, {"created", "pending", "ready", "claimed", "running", "paused", "retrying", "dead_lettered"}),
            (c.Retry, {"dead_lettered", "cancelled", "retrying"}),
            (c.Reset, {"completed"}),
            (c.Archive, {"completed", "cancelled"}),
            (c.Recover, {"claimed", "running"}),
            (c.Abort, {"claimed", "running"}),
            (c.Resume, {"paused"}),
        ],
    )
    def test_a_verb_works_from_its_states_and_is_denied_elsewhere(
        self, scene: Scene, verb: type[c.Command], allowed: set[str]
    ) -> None:
        keys = one_of_each(scene)
        for state, key in keys.items():
            before = scene.tables()
            answer = scene.do(verb, task=key)
            if state in allowed:
                assert answer.outcome == "UPDATED", state
                assert answer.command_id
            else:
                assert answer.outcome in ("DENIED_STATE", "UNCHANGED"), state
                assert answer.state == state
                assert scene.tables() == before

    # --- edit -----------------------------------------------------------------------------------------------------

    def test_an_edit_of_an_older_version_is_refused(self, scene: Scene) -> None:
        key = scene.add()
        version = scene.task(key).version
        assert scene.do(c.Edit, task=key, changes={"title": "new"}, version=version).outcome == "UPDATED"
        conflict = scene.do(c.Edit, task=key, changes={"title": "newer"}, version=version)
        assert (conflict.outcome, conflict.version) == ("VERSION_CONFLICT", version + 1)

    @pytest.mark.parametrize(
        "changes",
        [
            {"title": "x"}, {"description": "x" * 5000}, {"tags": ["a", "b"]}, {"priority": "low"},
            {"deadline": 1_800_000_000_000_000}, {"metadata": {"a": [1]}}, {"boost": 1}, {"max_attempts": 7},
            {"retry": {"strategy": "fixed"}}, {"on_lost": "hold"},
        ],
    )  # fmt: skip
    def test_some_fields_are_edited_under_the_holder(self, scene: Scene, changes: dict[str, object]) -> None:
        key = scene.add()
        receipt = scene.take(key)
        assert scene.do(c.Edit, task=key, changes=changes).outcome == "UPDATED"
        assert scene.do(c.Renew, receipt=receipt).outcome == "RENEWED"

    @pytest.mark.parametrize(
        "changes",
        [
            {"spec": {"prompt": "x"}}, {"output": {"type": "json"}}, {"constraints": {"region": "eu"}},
            {"touches": ["a"]}, {"type": "review"}, {"not_before": 1},
        ],
    )  # fmt: skip
    def test_others_only_when_nobody_holds_it(self, scene: Scene, changes: dict[str, object]) -> None:
        key = scene.add()
        receipt = scene.take(key)
        before = scene.tables()
        denied = scene.do(c.Edit, task=key, changes={"title": "x", **changes})
        assert (denied.outcome, denied.holder) == ("DENIED_STATE", "ann")
        assert scene.tables() == before
        scene.do(c.Release, receipt=receipt)
        assert scene.do(c.Edit, task=key, changes=changes).outcome == "UPDATED"
        scene.finish(scene.add())
        scene.do(c.Cancel, task=key)
        assert scene.do(c.Edit, task=key, changes=changes).outcome == "DENIED_STATE"

    def test_an_edited_constraint_decides_the_next_claim(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Edit, task=key, changes={"constraints": {"required_capabilities": ["gpu"], "max_duration": 60}})
        assert scene.next("ann").outcome == "NO_TASK"
        assert scene.claim(key, "ann").outcome == "DENIED_CAPABILITY"

    # --- dead letters ---------------------------------------------------------------------------------------------

    def test_a_dead_letter_tells_the_whole_history(self, scene: Scene) -> None:
        key = scene.add()
        scene.fail(scene.take(key, "ann"), "crash", message="boom", retry_after=0)
        scene.take(key, "bo", lease=60)
        scene.pass_time(seconds=61)
        scene.do(c.Release, receipt=scene.take(key, "cy"))
        scene.fail(scene.take(key, "bo"), "task", message="cannot")
        (letter,) = scene.rows(DeadLetter)
        assert (letter.error_class, letter.error, letter.run, letter.poison_pill) == ("task", "cannot", 1, True)
        assert [(h["attempt"], h["agent"], h["error_class"], h["error"], h["counted"]) for h in letter.history] == [
            (1, "ann", "crash", "boom", True),
            (2, "bo", "lease_expired", "its lease ran out", True),
            (3, "cy", None, None, False),
            (3, "bo", "task", "cannot", True),
        ]
        assert letter.history[1]["duration"] == 60.0
        assert letter.dag == scene.task(key).dag

    def test_the_dead_letters_error_is_that_of_its_last_attempt(self, scene: Scene) -> None:
        key = scene.add(max_attempts=2)
        scene.fail(scene.take(key, "ann"), "crash", message="boom", retry_after=0)
        scene.take(key, "bo", lease=60)
        scene.pass_time(seconds=61)
        (letter,) = scene.rows(DeadLetter)
        message = "the last claim was lost (generation 2 of bo: its lease ran out); generation 1 had failed: boom"
        assert (letter.error_class, letter.error) == ("lease_expired", message)
        error = scene.task(key).last_error
        assert error is not None
        assert error.message == message
        assert letter.dead_lettered_at == scene.now - 1_000_000

    def test_one_agent_alone_makes_no_poison(self, scene: Scene) -> None:
        key = scene.add(max_attempts=3)
        scene.bury(key, "ann")
        assert scene.rows(DeadLetter)[0].poison_pill is False

    def test_there_is_one_dead_letter_a_run(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        for run in (1, 2, 3):
            scene.bury(key)
            assert [d.run for d in scene.rows(DeadLetter)] == list(range(1, run + 1))
            assert scene.log(key).count("task.dead_lettered") == run
            assert scene.claim(key).outcome == "DENIED_DEAD_LETTERED"
            scene.do(c.Retry, task=key, note=f"try {run}")
        letters = scene.rows(DeadLetter)
        assert [(d.resolution, d.note, d.reviewed_by) for d in letters] == [
            ("retry", f"try {n}", "human:olaf") for n in (1, 2, 3)
        ]

    def test_each_way_out_of_a_dead_letter_is_written_on_it(self, scene: Scene) -> None:
        keys = [scene.add(max_attempts=1) for _ in range(4)]
        for key in keys:
            receipt = scene.take(key)
            scene.fail(receipt)
            scene.submit(receipt, "too late")
        scene.do(c.Retry, task=keys[0])
        scene.do(c.Retry, task=keys[1], changes={"max_attempts": 5})
        scene.do(c.Cancel, task=keys[2])
        scene.do(c.Adopt, task=keys[3])
        assert [scene.row(DeadLetter, f"{scene.task(k).id}#1").resolution for k in keys] == [
            "retry",
            "modify_and_retry",
            "cancel",
            "adopt",
        ]
        assert scene.states(*keys) == ["ready", "ready", "cancelled", "completed"]
        assert scene.task(keys[1]).max_attempts == 5

    def test_adopting_takes_the_newest_or_the_named_result(self, scene: Scene) -> None:
        key = scene.add(max_attempts=2)
        for agent in ("ann", "bo"):
            receipt = scene.take(key, agent)
            scene.fail(receipt, retry_after=0)
            scene.submit(receipt, agent)
            scene.pass_time(seconds=1)
        first = next(r for r in scene.results(key) if r.data == "ann")
        with pytest.raises(NotFound, match="no kept result"):
            scene.do(c.Adopt, task=key, result="nothing")
        adopted = scene.do(c.Adopt, task=key, result=first.id)
        assert [r.data for r in scene.results(key) if r.accepted] == ["ann"]
        assert adopted.work_product == scene.task(key).work_product
        assert [(x.agent, x.result_accepted) for x in scene.lineage(key)] == [("ann", True), ("bo", False)]
        scene.do(c.Reset, task=key)
        scene.do(c.Adopt, task=key)
        assert sorted((r.run, r.data) for r in scene.results(key) if r.accepted) == [(1, "ann"), (2, "bo")]

    def test_a_task_with_nothing_kept_cannot_adopt(self, scene: Scene) -> None:
        key = scene.add()
        with pytest.raises(NotFound, match="no kept result"):
            scene.do(c.Adopt, task=key)

    # --- limits ---------------------------------------------------------------------------------------------------

    def test_claims_of_a_project_are_limited(self, scene: Scene) -> None:
        for _ in range(3):
            scene.add()
        scene.do(c.DefineProject, limits={"max_concurrent_claims": 2})
        granted = scene.next(n=3)
        assert len(granted.claims or ()) == 2
        denied = scene.claim("A-003", "bo")
        assert denied.outcome == "DENIED_LIMIT"
        assert "2 live claims" in denied.message
        assert denied.hint
        scene.submit((granted.claims or ())[0].receipt or "")
        assert scene.claim("A-003", "bo").outcome == "GRANTED"

    def test_leases_are_limited(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.DefineProject, limits={"min_lease": 30, "max_lease": 3600})
        for lease, name in ((29, "min_lease"), (3601, "max_lease")):
            answer = scene.try_to(c.ClaimTask, task=key, agent="ann", session="s", lease=lease)
            assert code_of(answer) == "INVALID_INPUT"
            assert name in answer.message
        receipt = scene.take(key, lease=30)
        assert code_of(scene.try_to(c.Renew, receipt=receipt, lease=3601)) == "INVALID_INPUT"
        assert scene.do(c.Renew, receipt=receipt, lease=3600).outcome == "RENEWED"

    @pytest.mark.parametrize("by_name", [True, False])
    def test_a_task_over_its_generations_is_a_dead_letter_and_wedges_nobody(self, scene: Scene, by_name: bool) -> None:
        key = scene.add(priority=1)
        scene.do(c.DefineProject, limits={"max_generations_per_task": 2})
        for _ in range(2):
            scene.do(c.Release, receipt=scene.take(key))
        other = scene.add()
        if by_name:
            denied = scene.claim(key, "bo")
            assert (denied.outcome, denied.state) == ("DENIED_LIMIT", "dead_lettered")
            assert "claimed 2 times" in denied.message
        assert scene.next_keys(2, "bo") == [other]
        assert scene.state(key) == "dead_lettered"
        (letter,) = scene.rows(DeadLetter)
        assert "max_generations_per_task" in letter.error

    def test_results_are_limited(self, scene: Scene) -> None:
        receipt = scene.take(scene.add())
        scene.do(c.DefineProject, limits={"max_result_size": 10})
        answer = scene.try_to(c.Submit, receipt=receipt, data="x" * 9)
        assert code_of(answer) == "TOO_LARGE"
        assert "max_result_size is 10" in answer.message
        assert scene.submit(receipt, "x" * 8).outcome == "ACCEPTED"

    def test_a_project_may_have_tracks_of_its_own(self, scene: Scene) -> None:
        assert scene.do(c.DefineTrack, code="CORE", name="Core", purpose="the heart").outcome == "CREATED"
        assert scene.add("beat", track="CORE") == "CORE-001-beat"
        assert scene.do(c.DefineTrack, code="CORE", name="The core", purpose="it beats").outcome == "UPDATED"
        track: Track = scene.row(Track, "CORE")
        assert (track.name, track.purpose, track.last_sequence) == ("The core", "it beats", 1)
        scene.do(c.DefineProject, default_track="CORE")
        assert scene.add("again") == "CORE-002-again"

    # --- roles ----------------------------------------------------------------------------------------------------

    def test_each_command_asks_for_its_role(self, scene: Scene) -> None:
        key = scene.add()
        before = scene.tables()
        for kind, needed in roles.NEEDS.items():
            for role in roles.ROLES:
                if roles.ROLES.index(role) < roles.ROLES.index(needed):
                    command = some_command(kind, key)
                    if isinstance(command, (c.Assign, c.Reassign, c.Recover)):
                        command = replace(command, term=None)  # with one it is the leader's: see agent_leaders.py
                    (answer,) = scene.run(command, by=Principal(role=role))
                    assert isinstance(answer, NotAllowed), (kind, role)
                    assert needed in answer.message
                    assert role in answer.message
        (answer,) = scene.run(c.Note(project=PROJECT, task=key, text="x"), by=Principal(role="root"))
        assert isinstance(answer, NotAllowed)
        assert scene.tables() == before

    def test_agents_operate_only_where_the_project_lets_them(self, scene: Scene) -> None:
        key = scene.add()
        assert isinstance(scene.try_to(c.Cancel, task=key, by=AGENT), NotAllowed)
        scene.do(c.DefineProject, agents_may_operate=True)
        assert scene.do(c.Cancel, task=key, by=AGENT).outcome == "UPDATED"
        assert isinstance(scene.try_to(c.StopLine, scope="project:", by=AGENT), NotAllowed)
        assert isinstance(scene.try_to(c.DefineProject, boost=1, by=AGENT), NotAllowed)

    # --- plans applied again --------------------------------------------------------------------------------------

    def test_the_same_plan_again_changes_nothing(self, scene: Scene) -> None:
        tasks = (new("a", track="B", tags=("x",), priority="high"), new("b", "a", description="d" * 9000))
        first = scene.do(c.Plan, name="release", tasks=tasks)
        assert (first.outcome, len(first.tasks or ())) == ("CREATED", 2)
        before = scene.tables()
        again = scene.do(c.Plan, name="release", tasks=tasks)
        assert (again.outcome, again.tasks, again.changed) == ("UNCHANGED", (), None)
        assert scene.tables() == before

    def test_a_plan_with_subtasks_again_leaves_their_parent_waiting(self, scene: Scene) -> None:
        tasks = (new("parent"), NewTask(title="child", name="child", parent="parent"))
        parent, child = scene.plan(*tasks, name="release")
        assert scene.do(c.Plan, name="release", tasks=tasks).outcome == "UNCHANGED"
        assert scene.state(parent) == "pending"
        scene.finish(child, parent)

    def test_new_tasks_are_made_changed_ones_edited_started_ones_left(self, scene: Scene) -> None:
        a, b, d = scene.plan(new("a"), new("b", "a"), new("d"), name="release")
        receipt = scene.take(d)
        again = scene.do(
            c.Plan,
            name="release",
            tasks=(new("a", priority=20), new("b", "a", "e"), new("d", priority=20), new("e", "a")),
        )
        assert again.outcome == "UPDATED"
        assert [t["title"] for t in again.tasks or ()] == ["e"]
        assert (again.changed, again.left) == ((a, b), (d,))
        assert scene.task(a).priority == 20
        e = str((again.tasks or ())[0]["key"])
        assert scene.task(e).dag == scene.task(a).dag
        scene.submit(receipt)
        scene.finish(a)
        assert scene.claim(b).waits_for == (e,)
        scene.finish(e, b)

    def test_a_dependency_that_left_the_plan_is_removed(self, scene: Scene) -> None:
        _, b = scene.plan(new("a"), new("b", "a"), name="release")
        scene.plan(new("a"), new("b"), name="release")
        assert scene.state(b) == "ready"

    def test_a_dependency_whose_edge_changed_is_changed(self, scene: Scene) -> None:
        a, b = scene.plan(new("a"), new("b", "a"), name="release")
        scene.plan(new("a"), new("b", "a", on_failure="cancel"), name="release")
        scene.do(c.Cancel, task=a)
        assert scene.state(b) == "cancelled"

    @pytest.mark.parametrize("let_go", ["release", "fail", "environment", "rate_limit", "lease over", "wait"])
    def test_a_drained_task_is_paused_however_its_holder_lets_go(self, scene: Scene, let_go: str) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        scene.do(c.Pause, task=key, drain=True)
        assert scene.do(c.Renew, receipt=receipt).directive == "pause"
        if let_go == "lease over":
            scene.pass_time(seconds=60)
        elif let_go in ("release", "wait"):
            scene.do(c.Release if let_go == "release" else c.Wait, receipt=receipt)
        else:
            scene.fail(receipt, "task" if let_go == "fail" else let_go)
        assert scene.claim(key, "bo").outcome == "DENIED_PAUSED"
        scene.pass_time(seconds=3600)
        assert scene.do(c.Resume, task=key).state == "ready"
        assert scene.claim(key, "bo").outcome == "GRANTED"

    def test_a_drained_task_that_is_handed_in_is_completed(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Pause, task=key, drain=True)
        assert scene.submit(receipt).outcome == "ACCEPTED"
        assert scene.state(key) == "completed"

    def test_a_drained_task_that_a_person_takes_away_goes_where_they_say(self, scene: Scene) -> None:
        key = scene.add()
        scene.take(key)
        scene.do(c.Pause, task=key, drain=True)
        scene.know("bo")
        assert scene.do(c.Reassign, task=key, agent="bo").outcome == "UPDATED"
        assert scene.claim(key, "bo").outcome == "GRANTED"

    def test_an_agent_ends_no_others_session_and_reads_no_others_mail(self, scene: Scene) -> None:
        scene.take(scene.add(), "bo")
        scene.know("bo")
        scene.do(c.Send, sender="x", to="bo", text="secret")
        ann = Principal(role="agent", agent="ann", session="s-ann")
        assert code_of(scene.try_to(c.Leave, session="s-bo", by=ann)) == "NOT_ALLOWED"
        assert code_of(scene.try_to(c.Read, agent="bo", by=ann)) == "NOT_ALLOWED"
        bo = Principal(role="agent", agent="bo", session="s-bo")
        assert scene.do(c.Read, agent="bo", by=bo).mail == 1
        assert scene.do(c.Leave, session="s-bo", by=bo).outcome == "OK"

    def test_coordinating_the_store_is_for_admins(self, scene: Scene) -> None:
        scene.do(c.DefineProject, lead="auto")
        ann = Principal(role="agent", agent="ann")
        assert code_of(scene.try_to(c.Lead, holder="ann", by=ann)) == "NOT_ALLOWED"
        assert scene.do(c.Lead, holder="ann", agent=True, by=ann).outcome == "ELECTED"

    def test_what_left_the_plan_is_told_or_pruned(self, scene: Scene) -> None:
        _, b, started = scene.plan(new("a"), new("b"), new("started"), name="release")
        scene.take(started)
        outcome = scene.do(c.Plan, name="release", tasks=(new("a"),))
        assert outcome.missing == (b, started)
        assert scene.states(b, started) == ["ready", "claimed"]
        pruned = scene.do(c.Plan, name="release", tasks=(new("a"),), prune=True)
        assert pruned.changed == (b,)
        assert scene.states(b, started) == ["cancelled", "claimed"]

    def test_two_plans_do_not_take_each_others_tasks(self, scene: Scene) -> None:
        (one,) = scene.plan(new("a"), name="one")
        scene.plan(new("a"), name="two")
        answer = scene.try_to(c.Plan, name="one:two", tasks=(new("b"),))
        if not isinstance(answer, Exception):
            scene.do(c.Plan, name="one", tasks=(new("a"),), prune=True)
            assert {t.state for t in scene.rows(Task)} == {"ready"}
        assert scene.state(one) == "ready"

    def test_a_plan_that_would_close_a_circle_is_refused_whole(self, scene: Scene) -> None:
        scene.plan(new("a"), new("b", "a"), name="release")
        before = scene.tables()
        answer = scene.try_to(c.Plan, name="release", tasks=(new("a", "b"), new("b", "a"), new("more")))
        assert code_of(answer) == "CYCLE"
        assert scene.tables() == before


def one_of_each(scene: Scene) -> dict[str, str]:
    """A task in each state that a person may find."""
    keys = {state: scene.add(state) for state in ("ready", "claimed", "running", "completed", "cancelled", "paused")}
    keys["created"] = scene.add(draft=True)
    keys["pending"] = scene.add(not_before=scene.now + HOUR)
    keys["retrying"] = scene.add()
    keys["dead_lettered"] = scene.add(max_attempts=1)
    scene.take(keys["claimed"])
    scene.do(c.Start, receipt=scene.take(keys["running"]))
    scene.finish(keys["completed"])
    scene.do(c.Cancel, task=keys["cancelled"])
    scene.do(c.Pause, task=keys["paused"])
    scene.fail(scene.take(keys["retrying"]))
    scene.bury(keys["dead_lettered"])
    assert {state: scene.state(key) for state, key in keys.items()} == {state: state for state in keys}
    return keys


def some_command(kind: type[c.Command], key: str) -> c.Command:
    """A command of that kind that a person could send about the task."""
    fields: dict[str, Any] = {
        "task": key, "agent": "ann", "session": "s", "receipt": "A-001@1:" + "0" * 32, "needs": key, "text": "x",
        "question": "x", "data": {}, "tasks": (NewTask(title="x"),), "changes": {"title": "x"}, "sender": "ann",
        "patterns": ("a",), "holder": "ann", "term": 1, "scope": "project:", "code": "Q", "name": "x",
        "checker": "ann", "ok": True, "reason": "x",
        "command_id": "cmd_x", "key": "x", "model": "opus", "branch": "main", "old": "a" * 40, "new": "b" * 40,
        "processes": (), "source": "project", "target": "agent:ann", "amount": "1",
        "schedule": "s", "trigger": "t", "cron": "* * * * *", "on": "webhook", "headers": {}, "body": b"",
        "template": c.Template(tasks=(NewTask(title="x"),)), "digest": "d" * 64, "size": 1, "since": 0,
        "sink": "s", "webhook": "w", "pool": "w", "program": "claude", "url": "https://example.com/",
        "paths": ("a",), "to": "@all", "tenant": "acme", "user": "ann",
    }  # fmt: skip
    wanted = {f: fields[f] for f in kind.__struct_fields__ if f in fields}
    if kind is c.Add:
        wanted["task"] = NewTask(title="x")
    if kind in (c.Lead, c.StepDown):
        wanted["agent"] = True
    if kind is c.RewindRelay:
        wanted = {"sink": "s", "to": 0}
    is_of_store = kind in (c.CreateKey, c.RotateKey, c.RevokeKey) or kind in roles.OF_ALL_PROJECTS
    return kind(project="" if is_of_store else PROJECT, **wanted)

"""Sent again: one effect and the same answer, by request id, receipt or key. And what belongs to another project."""

from __future__ import annotations

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import queries, roles
from tenure.core.commands import Command, NewTask, Principal
from tenure.core.errors import NotFound, RequestIdReused
from tenure.core.records import Request, Session, Task, replace
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.operators import some_command
from tenure.testing.engine.receipts import VERBS
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import MEMBER, OWNER, PROJECT, Scene, code_of


class Repeats(Stage):
    # --- whose request it is --------------------------------------------------------------------------------------

    def test_a_claim_sent_again_by_anothers_key_is_refused(self, scene: Scene) -> None:
        ann = Principal(role="agent", user="ann", key="k1", agent="ann", session="s-ann")
        named, best = scene.add(), scene.add()
        first = scene.claim(named, request_id="r1", by=ann)
        other = scene.next(request_id="r2", by=ann)
        for thief in (replace(ann, user="bo", key="k2"), replace(ann, is_proven=True), Principal(agent="ann")):
            with pytest.raises(RequestIdReused, match="another key's owner"):
                scene.claim(named, request_id="r1", by=thief)
            with pytest.raises(RequestIdReused, match="another key's owner"):
                scene.next(request_id="r2", by=thief)
        rotated = replace(ann, key="k3")  # another key of the same owner
        assert scene.claim(named, request_id="r1", by=rotated).receipt == first.receipt
        assert scene.next(request_id="r2", by=rotated).receipt == other.receipt
        assert scene.states(named, best) == ["claimed", "claimed"]

    def test_a_remembered_answer_is_for_the_keys_owner_alone(self, scene: Scene) -> None:
        ann = Principal(role="agent", user="ann", key="k1", agent="robot")
        add = c.Add(project=PROJECT, task=NewTask(title="once"), request_id="r1")
        (first,) = scene.run(add, by=ann)
        (thief,) = scene.run(add, by=replace(ann, user="bo", key="k2"))
        assert isinstance(thief, RequestIdReused)
        (again,) = scene.run(add, by=replace(ann, key="k3"))
        assert code_of(again) == code_of(first)
        assert len(scene.rows(Task)) == 1

    def test_a_keys_secret_is_not_shown_to_another_who_repeats_the_request(self, scene: Scene) -> None:
        ann = Principal(role="admin", user="ann", key="k1")
        create = c.CreateKey(name="ci", request_id="r1")
        (made,) = scene.run(create, by=ann)
        assert getattr(made, "secret", None)
        (thief,) = scene.run(create, by=replace(ann, user="bo", key="k2"))
        assert isinstance(thief, RequestIdReused)

    # --- claims ---------------------------------------------------------------------------------------------------

    def test_a_claim_sent_again_gives_the_same_receipt(self, scene: Scene) -> None:
        key = scene.add()
        first = scene.claim(key, request_id="r1")
        scene.pass_time(seconds=10)
        again = scene.claim(key, request_id="r1")
        assert (again.outcome, again.receipt, again.again) == ("GRANTED", first.receipt, True)
        assert (again.generation, again.attempt, again.lease_until) == (1, 1, first.lease_until)
        assert len(scene.lineage(key)) == 1

    def test_the_best_task_asked_for_again_is_the_same_one(self, scene: Scene) -> None:
        keys = [scene.add() for _ in range(4)]
        first = scene.next(request_id="r1", n=2)
        again = scene.next(request_id="r1", n=2)
        assert again.again
        assert {x.receipt for x in first.claims or ()} == {x.receipt for x in again.claims or ()}
        assert scene.states(*keys) == ["claimed", "claimed", "ready", "ready"]

    def test_a_claim_that_was_denied_is_decided_anew(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, "ann")
        assert scene.claim(key, "bo", request_id="r1").outcome == "DENIED_ACTIVE_CLAIM"
        scene.do(c.Release, receipt=receipt)
        assert scene.claim(key, "bo", request_id="r1").outcome == "GRANTED"

    def test_the_request_id_of_a_claim_is_not_taken_for_another(self, scene: Scene) -> None:
        one, other = scene.add(), scene.add()
        scene.claim(one, request_id="r1")
        with pytest.raises(RequestIdReused, match="r1"):
            scene.claim(other, request_id="r1")
        with pytest.raises(RequestIdReused):
            scene.next(request_id="r1")
        assert scene.state(other) == "ready"

    def test_a_claim_sent_again_after_its_end_still_has_its_receipt(self, scene: Scene) -> None:
        key = scene.add()
        first = scene.claim(key, "ann", request_id="r1", lease=60)
        scene.pass_time(seconds=61)
        scene.take(key, "bo")
        again = scene.claim(key, "ann", request_id="r1", lease=60)
        assert (again.receipt, again.generation, again.lease_until) == (first.receipt, 1, None)
        assert scene.submit(again.receipt or "").outcome == "STALE_GENERATION"

    # --- receipts -------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        "verb", ["fail", "fail_with_trouble", "fail_over_budget", "release", "ask", "wait", "spawn_and_wait"]
    )
    def test_the_verb_that_ended_a_claim_may_be_sent_again(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        first = VERBS[verb](scene, receipt)
        before = scene.tables()
        again = VERBS[verb](scene, receipt)
        assert (again.outcome, again.again, again.state) == (first.outcome, True, first.state)
        assert again.retry_at == first.retry_at
        assert scene.tables() == before

    @pytest.mark.parametrize("verb", ["release", "wait", "ask"])
    def test_another_verb_after_the_end_is_no_repeat(self, scene: Scene, verb: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.fail(receipt)
        assert VERBS[verb](scene, receipt).outcome == "NO_CLAIM"

    def test_the_same_result_again_is_accepted_again(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        first = scene.submit(receipt, {"a": 1})
        before = scene.tables()
        again = scene.submit(receipt, {"a": 1})
        assert (again.outcome, again.again, again.result) == ("ACCEPTED", True, first.result)
        assert (again.work_product, again.work_lost) == (first.work_product, False)
        assert scene.tables() == before

    def test_another_result_for_a_completed_task_is_refused_and_kept(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.submit(receipt, 1)
        refused = scene.submit(receipt, 2)
        assert (refused.outcome, refused.work_lost) == ("TASK_ALREADY_COMPLETED", True)
        assert {r.data: r.accepted for r in scene.results(key)} == {1: True, 2: False}

    def test_the_request_id_of_a_result_is_not_taken_for_another(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.submit(receipt, 1, request_id="r1")
        with pytest.raises(RequestIdReused):
            scene.submit(receipt, 2, request_id="r1")
        assert scene.submit(receipt, 1, request_id="r1").again

    def test_starting_twice_is_one_start(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        for _ in range(3):
            assert scene.do(c.Start, receipt=receipt).state == "running"
        assert scene.log(key).count("task.started") == 1

    # --- keys -----------------------------------------------------------------------------------------------------

    def test_an_idempotency_key_makes_one_task(self, scene: Scene) -> None:
        first = scene.do(c.Add, task=NewTask(title="one", idempotency_key="k"))
        again = scene.do(c.Add, task=NewTask(title="another", idempotency_key="k"), request_id="r9")
        assert (first.outcome, again.outcome, again.again) == ("CREATED", "EXISTS", True)
        assert first.task is not None
        assert again.task is not None
        assert again.task["key"] == first.task["key"]
        assert len(scene.rows(Task)) == 1
        assert scene.rows(Request) == []

    def test_an_idempotency_key_in_a_plan_is_refused_where_it_is_taken(self, scene: Scene) -> None:
        key = scene.add(idempotency_key="k")
        for tasks in (
            (NewTask(title="a", idempotency_key="k"),),
            (NewTask(title="a", idempotency_key="n"), NewTask(title="b", idempotency_key="n")),
        ):
            before = scene.tables()
            answer = scene.try_to(c.Plan, tasks=tasks)
            assert code_of(answer) == "INVALID_INPUT"
            assert scene.tables() == before
        assert scene.state(key) == "ready"

    def test_what_was_spawned_in_a_run_is_returned_not_made_again(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key, lease=60)
        first = scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="part", name="x"),))
        scene.pass_time(seconds=61)
        receipt = scene.take(key, "bo")
        again = scene.do(
            c.Spawn, receipt=receipt, tasks=(NewTask(title="other", name="x"), NewTask(title="more", name="y"))
        )
        assert [t["key"] for t in first.tasks or ()] == [f"{key}::1"]
        assert [t["key"] for t in again.tasks or ()] == [f"{key}::1", f"{key}::2"]
        assert again.tasks
        assert again.tasks[0]["title"] == "part"

    def test_a_new_run_spawns_anew(self, scene: Scene) -> None:
        key = scene.add(max_attempts=1)
        receipt = scene.take(key)
        scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="part"),))
        scene.fail(receipt)
        scene.do(c.Retry, task=key)
        again = scene.do(c.Spawn, receipt=scene.take(key), tasks=(NewTask(title="part"),))
        assert [t["key"] for t in again.tasks or ()] == [f"{key}::2"]

    # --- everything else: remembered for a day --------------------------------------------------------------------

    def test_an_answer_with_an_effect_is_remembered(self, scene: Scene) -> None:
        key = scene.add()
        scene.know("bo")
        commands: list[Command] = [
            c.Add(project=PROJECT, task=NewTask(title="again"), request_id="r1"),
            c.Plan(project=PROJECT, tasks=(NewTask(title="planned"),), request_id="r2"),
            c.Pause(project=PROJECT, task=key, request_id="r3"),
            c.Edit(project=PROJECT, task=key, changes={"title": "new"}, request_id="r4"),
            c.Note(project=PROJECT, task=key, text="hear", request_id="r5"),
            c.Send(project=PROJECT, sender="ann", to="bo", text="hi", request_id="r6"),
            c.Reserve(project=PROJECT, patterns=("env:x",), agent="ann", session="s", request_id="r7"),
            c.StopLine(project=PROJECT, scope="track:B", request_id="r8"),
        ]
        first = scene.run(*commands)
        assert [a for a in first if isinstance(a, Exception)] == []
        before = scene.tables()
        again = scene.run(*commands)
        assert scene.tables() == before
        for one, other in zip(first, again, strict=True):
            assert not isinstance(other, Exception)
            assert other.again
            assert msgspec.structs.replace(other, again=False) == one

    def test_a_request_id_is_good_for_one_content_only(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Note, task=key, text="one", request_id="r1")
        before = scene.tables()
        with pytest.raises(RequestIdReused, match="r1"):
            scene.do(c.Note, task=key, text="two", request_id="r1")
        with pytest.raises(RequestIdReused):
            scene.do(c.Pause, task=key, request_id="r1")
        assert scene.tables() == before

    def test_two_principals_may_use_the_same_request_id(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Note, task=key, text="one", request_id="r1", by=OWNER)
        scene.do(c.Note, task=key, text="two", request_id="r1", by=MEMBER)
        assert scene.log(key).count("task.noted") == 2

    def test_an_answer_without_effect_is_not_remembered(self, scene: Scene) -> None:
        key = scene.add()
        assert scene.do(c.Resume, task=key, request_id="r1").outcome == "DENIED_STATE"
        scene.do(c.Pause, task=key)
        assert scene.do(c.Resume, task=key, request_id="r1").outcome == "UPDATED"

    def test_a_trace_id_does_not_make_a_request_another(self, scene: Scene) -> None:
        key = scene.add()
        scene.do(c.Note, task=key, text="one", request_id="r1", trace_id="t1")
        assert scene.do(c.Note, task=key, text="one", request_id="r1", trace_id="t2").again

    def test_after_a_day_a_request_is_forgotten_whether_or_not_it_was_swept(self, scene: Scene) -> None:
        key = scene.add()
        for request in ("r1", "r2"):
            scene.do(c.Note, task=key, text="one", request_id=request)
            scene.pass_time(hours=24)
            if request == "r2":
                scene.engine.sweep()
                assert scene.rows(Request) == []
            assert not scene.do(c.Note, task=key, text="one", request_id=request).again

    # --- projects apart -------------------------------------------------------------------------------------------

    def test_the_same_names_in_two_projects_are_two_things(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="q")
        new = NewTask(title="same", idempotency_key="k", key="B-007-same")
        for project in (PROJECT, "q"):
            assert scene.do(c.Add, project=project, task=new).outcome == "CREATED"
            claim = scene.do(c.ClaimTask, project=project, task="B-007", agent="ann", session="s", request_id="r")
            assert (claim.outcome, claim.generation) == ("GRANTED", 1)
            noted = scene.do(c.Note, project=project, task="B-007", text="x", request_id="n")
            assert not noted.again
        assert scene.task("B-007").id != scene.task("B-007", "q").id

    def test_nothing_of_another_project_can_be_named(self, scene: Scene) -> None:
        key = scene.add()
        command = scene.do(c.Cancel, task=scene.add()).command_id
        scene.do(c.Register, agent="ann", session="s-ann")
        scene.do(c.DefineProject, project="q")
        before = scene.tables()
        theirs = scene.task(key).id
        mine: list[Command] = [
            *(
                kind(project="q", task=name)
                for kind in (c.Pause, c.Resume, c.Cancel, c.Retry, c.Reset, c.Adopt, c.Archive, c.Recover, c.Abort)
                for name in (key, theirs)
            ),
            c.ClaimTask(project="q", task=theirs, agent="zoe", session="z"),
            c.Edit(project="q", task=theirs, changes={"title": "x"}),
            c.Note(project="q", task=theirs, text="x"),
            c.Publish(project="q", task=theirs),
            c.Publish(project="q", dag=scene.task(key).dag),
            c.Assign(project="q", task=theirs, agent="ann"),
            c.Link(project="q", task=theirs, needs=theirs),
            c.Undo(project="q", command_id=command or ""),
            c.Drain(project="q", agent="ann"),
            c.Terminate(project="q", agent="ann"),
            c.Leave(project="q", session="s-ann"),
        ]
        assert [code_of(a) for a in scene.run(*mine)] == ["NOT_FOUND"] * len(mine)
        (planned,) = scene.run(c.Plan(project="q", tasks=(NewTask(title="x", depends_on=(theirs,)),)))
        assert code_of(planned) == "INVALID_INPUT"
        assert scene.tables() == before

    def test_claims_are_offered_in_their_own_project_alone(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="q")
        scene.add(touches=("src/**",))
        theirs = scene.do(c.Add, project="q", task=NewTask(title="x", touches=("src/**",))).task or {}
        taken = scene.do(c.ClaimNext, project="q", agent="ann", session="s")
        assert taken.task is not None
        assert taken.task["id"] == theirs["id"]
        assert scene.do(c.ClaimNext, project="q", agent="ann", session="s").outcome == "NO_TASK"
        assert scene.next("bo").outcome == "GRANTED"  # the other project's reservation is not in the way

    def test_mail_agents_and_leaders_stay_in_their_project(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="q")
        scene.do(c.Register, agent="ann", session="s")
        scene.do(c.Register, project="q", agent="bo", session="s")
        assert scene.do(c.Send, sender="x", to="@all", text="hi").changed == ("ann",)
        assert scene.do(c.Read, project="q", agent="ann").messages == ()
        assert scene.do(c.Lead, holder="ann", agent=True).term == 1
        assert scene.do(c.Lead, project="q", holder="bo", agent=True).term == 1
        assert scene.do(c.Leave, project="q", session="s").outcome == "OK"
        assert scene.row(Session, "s").ended_at is None

    def test_a_line_stopped_here_runs_there(self, scene: Scene) -> None:
        scene.do(c.DefineProject, project="q")
        scene.do(c.Add, project="q", task=NewTask(title="x"))
        scene.do(c.StopLine, scope="project:")
        assert scene.do(c.ClaimNext, project="q", agent="ann", session="s").outcome == "GRANTED"

    def test_an_unknown_project_is_not_found_by_any_command(self, scene: Scene) -> None:
        before = scene.tables()
        for kind in roles.NEEDS:
            of_store = (c.PauseRelay, c.ResumeRelay, c.RewindRelay, c.RemoveRelay)
            if kind not in (
                c.DefineProject,
                c.Deliver,
                *of_store,
            ):  # of webhooks a stranger sees only what a signature proves
                (answer,) = scene.run(replace(some_command(kind, "A-001"), project="nowhere"))
                assert isinstance(answer, NotFound), kind
                assert "nowhere" in answer.message
        assert scene.tables() == before

    def test_an_unknown_project_is_not_found_by_any_query(self, scene: Scene) -> None:
        of_the_store = {queries.Projects, queries.Gauges, queries.Spending, queries.Keys, queries.Relays}
        of_the_store |= {queries.Tenants, queries.ShowTenant, queries.Members}
        for kind in set(queries.ALL) - of_the_store:
            needed = [f for f in msgspec.structs.fields(kind) if f.required and f.name != "project"]
            values = {f.name: msgspec.convert(["x"] if f.name == "tasks" else "x", f.type) for f in needed}
            with pytest.raises(NotFound, match="no project 'nowhere'"):
                read_query(scene.engine, kind(project="nowhere", **values))

    @pytest.mark.parametrize("since", ["nothing", "reset", "a later claim", "a new epoch", "a later result"])
    def test_an_accepted_result_sent_again_is_never_called_lost(self, scene: Scene, since: str) -> None:
        key = scene.add()
        receipt = scene.take(key)
        first = scene.submit(receipt, {"a": 1})
        if since in ("reset", "a later claim", "a later result"):
            scene.do(c.Reset, task=key)
        if since in ("a later claim", "a later result"):
            later = scene.take(key, "bo")
            if since == "a later result":
                scene.submit(later, {"a": 2})
        if since == "a new epoch":
            scene.engine.new_epoch("a failover")
        before = scene.tables()
        again = scene.submit(receipt, {"a": 1})
        assert (again.outcome, again.again, again.work_lost) == ("ACCEPTED", True, False)
        assert again.work_product == first.work_product
        assert scene.tables() == before
        assert scene.submit(receipt, {"a": "other"}).outcome != "ACCEPTED"

    def test_the_repeat_of_one_principal_is_not_anothers(self, scene: Scene) -> None:
        key = scene.add()
        held = scene.do(c.Reserve, patterns=("env:x",), agent="ann", session="s", request_id="r1")
        other = Principal(role="agent", agent="bo", session="t")
        answer = scene.do(c.Reserve, patterns=("env:x",), agent="bo", session="t", request_id="r1", by=other)
        assert held.receipt is not None
        assert (answer.outcome, answer.receipt) == ("DENIED_CONFLICT", None)
        assert scene.state(key) == "ready"

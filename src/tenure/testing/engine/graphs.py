"""Dags: made whole or not at all, without circles; what a task's end means for those that wait; growth at run time."""

from __future__ import annotations

import pytest

from tenure.core import commands as c
from tenure.core.commands import Dependency, NewTask
from tenure.core.errors import Cycle, InvalidInput, LimitReached
from tenure.core.records import Dag, Edge, Task
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import Scene, code_of


def new(name: str, *needs: str, on_failure: str = "block", **fields: object) -> NewTask:
    """A task of a plan that waits for others of it."""
    edges = tuple(Dependency(task=n, on_failure=on_failure) for n in needs)
    return NewTask(title=name, name=name, depends_on=edges, **fields)  # type: ignore[arg-type]  # fields are its own


def dag_events(scene: Scene) -> list[str]:
    return [e.kind for e in scene.events() if e.kind.startswith("dag.") and e.kind != "dag.created"]


def status(scene: Scene, key: str) -> str:
    dag: Dag = scene.row(Dag, scene.task(key).dag)
    return dag.status


class Graphs(Stage):
    # --- making ---------------------------------------------------------------------------------------------------

    def test_a_plan_is_one_dag_whose_roots_are_ready(self, scene: Scene) -> None:
        a, b, d = scene.plan(new("a"), new("b", "a"), new("d", "a", "b"))
        assert scene.states(a, b, d) == ["ready", "pending", "pending"]
        assert len({scene.task(k).dag for k in (a, b, d)}) == 1
        assert status(scene, a) == "open"

    def test_a_lone_task_has_a_dag_of_its_own(self, scene: Scene) -> None:
        assert scene.task(scene.add()).dag != scene.task(scene.add()).dag

    def test_what_waits_is_ready_with_the_last_it_waits_for(self, scene: Scene) -> None:
        a, b, d = scene.plan(new("a"), new("b"), new("d", "a", "b"))
        scene.finish(a)
        denied = scene.claim(d)
        assert (denied.outcome, denied.waits_for) == ("DENIED_NOT_READY", (b,))
        scene.finish(b)
        granted = scene.claim(d)
        assert granted.outcome == "GRANTED"
        assert granted.inputs is not None
        assert {k: v["data"] for k, v in granted.inputs.items()} == {a: f"output of {a}", b: f"output of {b}"}

    def test_a_plan_may_wait_for_what_is_there_already(self, scene: Scene) -> None:
        done, open_ = scene.add(), scene.add()
        scene.finish(done)
        (free,) = scene.plan(new("x", done))
        (waits,) = scene.plan(new("y", done, open_))
        assert scene.states(free, waits) == ["ready", "pending"]

    @pytest.mark.parametrize(
        ("tasks", "spelled"),
        [
            ((new("a", "b"), new("b", "a")), "A-001-a → A-002-b → A-001-a"),
            ((new("a", "a"),), "A-001-a → A-001-a"),
            ((new("a", "b"), new("b", "d"), new("d", "a"), new("e")), "A-001-a → A-002-b → A-003-d → A-001-a"),
        ],
    )
    def test_a_circle_is_refused_and_spelled(self, scene: Scene, tasks: tuple[NewTask, ...], spelled: str) -> None:
        before = scene.tables()
        with pytest.raises(Cycle) as refused:
            scene.plan(*tasks)
        circle = refused.value.message.rpartition(": ")[2].split(" → ")
        wanted = spelled.split(" → ")
        assert circle[0] == circle[-1]
        assert set(circle) == set(wanted)
        turned = wanted[:-1].index(circle[0])
        assert circle[:-1] == wanted[turned:-1] + wanted[:turned]
        assert scene.tables() == before

    def test_a_long_circle_is_spelled_in_short(self, scene: Scene) -> None:
        with pytest.raises(Cycle) as refused:
            scene.plan(*(new(f"t{n}", f"t{(n + 1) % 100}") for n in range(100)))
        assert "…" in refused.value.message
        assert len(refused.value.message) < 400

    def test_a_link_that_closes_a_circle_is_refused_and_spelled(self, scene: Scene) -> None:
        a, b, d = scene.plan(new("a"), new("b", "a"), new("d", "b"))
        before = scene.tables()
        with pytest.raises(Cycle, match=f"{a} → {d} → {b} → {a}"):
            scene.do(c.Link, task=a, needs=d)
        with pytest.raises(Cycle, match=f"{a} → {a}"):
            scene.do(c.Link, task=a, needs=a)
        assert scene.tables() == before

    def test_a_parent_that_would_wait_for_itself_is_refused(self, scene: Scene) -> None:
        before = scene.tables()
        with pytest.raises(Cycle):
            scene.plan(
                new("p", "q"), new("q", "child"), NewTask(title="x", name="child", parent="p", depends_on=("p",))
            )
        with pytest.raises(Cycle):
            scene.plan(NewTask(title="a", name="a", parent="b"), NewTask(title="b", name="b", parent="a"))
        assert scene.tables() == before

    def test_an_unknown_or_double_name_stores_nothing(self, scene: Scene) -> None:
        before = scene.tables()
        for tasks, pattern in (
            ((new("a"), new("b", "aa")), "'aa'"),
            ((new("a"), new("a")), "'a'"),
            ((new("a", key="B-001-x"), new("b", key="B-001-y")), "B-001"),
            ((new("a"), new("b", track="Q")), "'Q'"),
        ):
            with pytest.raises(InvalidInput, match=pattern):
                scene.plan(*tasks)
        assert scene.tables() == before

    def test_a_name_that_is_nearly_right_is_suggested(self, scene: Scene) -> None:
        with pytest.raises(InvalidInput, match="did you mean parser"):
            scene.plan(new("parser"), new("x", "parsr"))
        with pytest.raises(InvalidInput) as refused:
            scene.plan(new("parser", "parsr"))
        assert "did you mean" not in str(refused.value)  # itself

    def test_keys_are_given_per_track_and_never_twice(self, scene: Scene) -> None:
        keys = scene.plan(new("a", track="B"), new("b", key="B-007-mine"), new("d", track="B"), new("e", track="C"))
        assert keys == ["B-008-a", "B-007-mine", "B-009-d", "C-001-e"]
        with pytest.raises(InvalidInput, match="B-007 is taken"):
            scene.add(key="B-007-yours")
        scene.do(c.Cancel, task="B-009")
        assert scene.add("next", track="B") == "B-010-next"

    def test_keys_grow_past_999(self, scene: Scene) -> None:
        scene.add(key="B-999-last")
        assert scene.add("more", track="B") == "B-1000-more"
        assert scene.task("B-1000").key == "B-1000-more"

    def test_a_dependency_that_is_named_twice_counts_once(self, scene: Scene) -> None:
        a, b = scene.plan(new("a"), new("b", "a", "a"))
        scene.finish(a)
        assert scene.state(b) == "ready"

    def test_a_parent_that_also_names_its_subtask_as_dependency_waits_once(self, scene: Scene) -> None:
        parent, child = scene.plan(new("p", "child"), NewTask(title="x", name="child", parent="p"))
        scene.finish(child)
        assert scene.state(parent) == "ready"

    # --- drafts ---------------------------------------------------------------------------------------------------

    def test_a_draft_is_not_offered_until_it_is_published(self, scene: Scene) -> None:
        a, b = scene.plan(new("a", draft=True), new("b", "a", draft=True))
        assert scene.states(a, b) == ["created", "created"]
        assert scene.next().outcome == "NO_TASK"
        assert scene.do(c.Publish, dag=scene.task(a).dag).changed == (a, b)
        assert scene.states(a, b) == ["ready", "pending"]
        assert scene.do(c.Publish, task=a).outcome == "UNCHANGED"

    def test_a_draft_holds_its_dependents_back(self, scene: Scene) -> None:
        a, b = scene.plan(new("a", draft=True), new("b", "a"))
        assert scene.state(b) == "pending"
        scene.do(c.Publish, task=a)
        scene.finish(a)
        assert scene.state(b) == "ready"

    # --- links ----------------------------------------------------------------------------------------------------

    def test_a_dependency_added_to_a_ready_task_makes_it_wait(self, scene: Scene) -> None:
        a, b = scene.add(), scene.add()
        assert scene.do(c.Link, task=b, needs=a).state == "pending"
        assert scene.do(c.Link, task=b, needs=a).outcome == "UNCHANGED"
        assert scene.do(c.Unlink, task=b, needs=a).state == "ready"
        assert scene.rows(Edge) == []

    def test_a_dependency_that_is_met_already_holds_nobody_back(self, scene: Scene) -> None:
        a, b = scene.add(), scene.add()
        scene.finish(a)
        assert scene.do(c.Link, task=b, needs=a).state == "ready"

    def test_what_a_failure_means_can_be_changed_on_a_link_that_is_there(self, scene: Scene) -> None:
        a, b = scene.add(max_attempts=1), scene.add()
        scene.do(c.Link, task=b, needs=a)
        changed = scene.do(c.Link, task=b, needs=a, on_failure="cancel")
        assert (changed.outcome, changed.state) == ("UPDATED", "pending")
        assert [edge.on_failure for edge in scene.rows(Edge)] == ["cancel"]
        assert scene.events(kind="task.linked")[-1].details["before"] == "block"
        assert scene.do(c.Link, task=b, needs=a, on_failure="cancel").outcome == "UNCHANGED"
        assert scene.do(c.Undo, command_id=changed.command_id).outcome == "UPDATED"
        assert [edge.on_failure for edge in scene.rows(Edge)] == ["block"]
        scene.do(c.Link, task=b, needs=a, on_failure="cancel")
        scene.bury(a)
        assert scene.state(b) == "cancelled"

    @pytest.mark.parametrize(("on_failure", "state"), [("cancel", "cancelled"), ("ignore", "ready")])
    def test_a_link_changed_after_the_failure_is_judged_at_once(
        self, scene: Scene, on_failure: str, state: str
    ) -> None:
        dead, b = scene.add(max_attempts=1), scene.add()
        scene.do(c.Link, task=b, needs=dead)
        scene.bury(dead)
        changed = scene.do(c.Link, task=b, needs=dead, on_failure=on_failure)
        assert (changed.outcome, changed.state, scene.state(b)) == ("UPDATED", state, state)
        assert scene.do(c.Undo, command_id=changed.command_id).outcome == "UPDATED"
        assert scene.state(b) == "pending"
        assert [edge.on_failure for edge in scene.rows(Edge)] == ["block"]

    def test_a_held_or_finished_task_gets_no_new_dependency(self, scene: Scene) -> None:
        a, held, done = scene.add(), scene.add(), scene.add()
        scene.take(held)
        scene.finish(done)
        for key in (held, done):
            before = scene.tables()
            assert scene.do(c.Link, task=key, needs=a).outcome == "DENIED_STATE"
            assert scene.tables() == before

    def test_a_link_to_a_failed_task_cancels_at_once_where_it_says_so(self, scene: Scene) -> None:
        dead = scene.add(max_attempts=1)
        scene.bury(dead)
        cancelled, ignoring, blocked = scene.add(), scene.add(), scene.add()
        scene.do(c.Link, task=cancelled, needs=dead, on_failure="cancel")
        scene.do(c.Link, task=ignoring, needs=dead, on_failure="ignore")
        scene.do(c.Link, task=blocked, needs=dead)
        assert scene.states(cancelled, ignoring, blocked) == ["cancelled", "ready", "pending"]

    def test_a_new_task_whose_dependency_has_failed_does_what_its_edge_says_at_once(self, scene: Scene) -> None:
        dead = scene.add(max_attempts=1)
        scene.bury(dead)
        made = scene.plan(
            new("blocked", dead),
            new("cancelled", dead, on_failure="cancel"),
            new("ignoring", dead, on_failure="ignore"),
            new("below", "cancelled", on_failure="cancel"),
        )
        assert scene.states(*made) == ["pending", "cancelled", "ready", "cancelled"]
        scene.do(c.Retry, task=dead)
        assert scene.states(*made) == ["pending", "pending", "pending", "pending"]

    # --- failed dependencies --------------------------------------------------------------------------------------

    @pytest.mark.parametrize("how", ["cancelled", "dead_lettered"])
    @pytest.mark.parametrize(
        ("on_failure", "state"), [("block", "pending"), ("cancel", "cancelled"), ("ignore", "ready")]
    )
    def test_a_failed_dependency_does_what_its_edge_says(
        self, scene: Scene, how: str, on_failure: str, state: str
    ) -> None:
        a, b = scene.plan(new("a", max_attempts=1), new("b", "a", on_failure=on_failure))
        if how == "cancelled":
            scene.do(c.Cancel, task=a)
        else:
            scene.bury(a)
        assert scene.states(a, b) == [how, state]

    def test_an_ignored_failure_counts_as_met_without_output(self, scene: Scene) -> None:
        a, b = scene.plan(new("a", max_attempts=1), new("b", "a", on_failure="ignore"))
        scene.fail(scene.take(a), message="broken")
        granted = scene.claim(b)
        assert granted.inputs is not None
        assert granted.inputs[a]["state"] == "dead_lettered"
        assert granted.inputs[a]["error"]["message"] == "broken"
        assert "data" not in granted.inputs[a]

    def test_a_cascade_goes_down_a_long_chain(self, scene: Scene) -> None:
        chain = [new("t0", max_attempts=1)]
        chain += [new(f"t{n}", f"t{n - 1}", on_failure="cancel") for n in range(1, 300)]
        keys = scene.plan(*chain)
        scene.bury(keys[0])
        assert {scene.state(k) for k in (keys[1], keys[150], keys[299])} == {"cancelled"}
        scene.do(c.Retry, task=keys[0])
        assert {scene.state(k) for k in (keys[1], keys[150], keys[299])} == {"pending"}

    def test_retrying_a_dead_letter_brings_back_what_its_cascade_cancelled_and_nothing_else(self, scene: Scene) -> None:
        a, b, d, e = scene.plan(
            new("a", max_attempts=1),
            new("b", "a", on_failure="cancel"),
            new("d", "b", on_failure="cancel"),
            new("e", "a", on_failure="cancel"),
        )
        scene.do(c.Cancel, task=e)
        scene.bury(a)
        assert scene.states(b, d, e) == ["cancelled"] * 3
        scene.do(c.Retry, task=a)
        assert scene.states(a, b, d, e) == ["ready", "pending", "pending", "cancelled"]
        scene.finish(a, b, d)

    def test_what_was_cancelled_with_its_parent_in_a_cascade_comes_back_with_it(self, scene: Scene) -> None:
        a, b, child = scene.plan(
            new("a", max_attempts=1),
            new("b", "a", on_failure="cancel"),
            NewTask(title="child", name="child", parent="b"),
        )
        scene.bury(a)
        assert scene.states(b, child) == ["cancelled", "cancelled"]
        scene.do(c.Retry, task=a)
        assert scene.states(b, child) == ["pending", "ready"]
        scene.finish(a, child, b)

    def test_a_blocked_task_goes_on_when_the_dead_letter_is_retried(self, scene: Scene) -> None:
        a, b = scene.plan(new("a", max_attempts=1), new("b", "a"))
        scene.bury(a)
        scene.do(c.Retry, task=a)
        scene.finish(a)
        assert scene.state(b) == "ready"

    def test_a_held_dependent_is_cancelled_with_its_claim(self, scene: Scene) -> None:
        a, b = scene.plan(new("a"), new("b", "a", on_failure="cancel"))
        scene.finish(a)
        receipt = scene.take(b)
        scene.do(c.Reset, task=a)
        scene.do(c.Cancel, task=a)
        assert scene.state(b) == "cancelled"
        assert scene.do(c.Renew, receipt=receipt).outcome == "TASK_CANCELLED"

    # --- reset upstream -------------------------------------------------------------------------------------------

    def test_a_reset_sends_those_that_nobody_claimed_back_and_names_the_rest(self, scene: Scene) -> None:
        a, waiting, held, done = scene.plan(new("a"), new("w", "a"), new("h", "a"), new("d", "a"))
        scene.finish(a)
        receipt = scene.take(held)
        scene.finish(done)
        reset = scene.do(c.Reset, task=a)
        assert reset.left == tuple(sorted((held, done)))
        assert scene.states(a, waiting, held, done) == ["ready", "pending", "claimed", "completed"]
        assert scene.submit(receipt).outcome == "ACCEPTED"
        scene.finish(a)
        assert scene.state(waiting) == "ready"

    def test_a_cascading_reset_starts_everything_below_over(self, scene: Scene) -> None:
        a, b, d, held = scene.plan(new("a"), new("b", "a"), new("d", "b"), new("h", "a"))
        scene.finish(a, b, d)
        receipt = scene.take(held)
        assert scene.do(c.Reset, task=a, cascade=True).left is None
        assert scene.states(a, b, d, held) == ["ready", "pending", "pending", "pending"]
        assert [scene.task(k).run for k in (a, b, d)] == [2, 2, 2]
        assert scene.submit(receipt).outcome == "NO_CLAIM"
        scene.finish(a, b, d, held)

    def test_a_released_task_whose_dependency_was_reset_waits_again(self, scene: Scene) -> None:
        a, b = scene.plan(new("a"), new("b", "a"))
        scene.finish(a)
        receipt = scene.take(b)
        scene.do(c.Reset, task=a)
        scene.do(c.Release, receipt=receipt)
        assert scene.state(b) == "pending"

    def test_a_reset_keeps_the_old_result_and_accepts_one_more(self, scene: Scene) -> None:
        key = scene.add()
        scene.submit(scene.take(key), 1)
        scene.do(c.Reset, task=key)
        scene.submit(scene.take(key), 2)
        assert sorted((r.run, r.data) for r in scene.results(key) if r.accepted) == [(1, 1), (2, 2)]

    # --- where a dag stands ---------------------------------------------------------------------------------------

    def test_a_dag_completes_with_its_last_task_and_says_so_once(self, scene: Scene) -> None:
        a, b, d = scene.plan(new("a"), new("b"), new("d"))
        scene.finish(a)
        scene.do(c.Cancel, task=b)
        assert (status(scene, a), dag_events(scene)) == ("open", [])
        scene.finish(d)
        assert (status(scene, a), dag_events(scene)) == ("completed", ["dag.completed"])
        scene.do(c.Note, task=a, text="x")
        scene.engine.sweep()
        assert dag_events(scene) == ["dag.completed"]

    def test_a_dag_that_goes_on_after_its_end_begins_a_new_run(self, scene: Scene) -> None:
        (key,) = scene.plan(NewTask(title="a"))
        for run in (1, 2, 3):
            scene.finish(key)
            dag = scene.rows(Dag)[0]
            assert (dag.run, dag.status, dag.ended_at) == (run, "completed", scene.now)
            scene.pass_time(seconds=1)
            scene.do(c.Reset, task=key)
            assert scene.rows(Dag)[0].ended_at is None
        assert [e.details["run"] for e in scene.events(kind="dag.completed")] == [1, 2, 3]
        assert [e.details["run"] for e in scene.events(kind="dag.reopened")] == [2, 3, 4]

    def test_a_dag_is_cancelled_when_all_of_it_is(self, scene: Scene) -> None:
        a, b = scene.plan(new("a"), new("b"))
        scene.do(c.Cancel, task=a)
        scene.do(c.Cancel, task=b)
        assert (status(scene, a), dag_events(scene)) == ("cancelled", ["dag.cancelled"])

    def test_a_dag_fails_when_one_is_dead_and_nothing_else_can_run(self, scene: Scene) -> None:
        a, b, d = scene.plan(new("a", max_attempts=1), new("b", "a"), new("d"))
        scene.bury(a)
        assert (status(scene, a), dag_events(scene)) == ("open", [])
        scene.finish(d)
        assert (status(scene, b), dag_events(scene)) == ("failed", ["dag.failed"])
        scene.do(c.Retry, task=a)
        assert status(scene, a) == "open"

    def test_a_dag_has_not_failed_where_the_failure_lets_others_run(self, scene: Scene) -> None:
        a, b = scene.plan(new("a", max_attempts=1), new("b", "a", on_failure="ignore"))
        scene.bury(a)
        assert (status(scene, a), dag_events(scene)) == ("open", [])
        scene.finish(b)
        assert (status(scene, a), dag_events(scene)) == ("failed", ["dag.failed"])

    def test_a_dag_has_not_failed_while_a_completion_lets_others_run(self, scene: Scene) -> None:
        dead, a, b = scene.plan(new("dead", max_attempts=1), new("a"), new("b", "a"))
        scene.bury(dead)
        scene.finish(a)
        assert (status(scene, b), dag_events(scene)) == ("open", [])
        scene.finish(b)
        assert dag_events(scene) == ["dag.failed"]

    # --- subtasks -------------------------------------------------------------------------------------------------

    def test_a_declared_subtask_blocks_its_parent(self, scene: Scene) -> None:
        parent = scene.add()
        child = scene.add("part", parent=parent)
        assert child == f"{parent}::1"
        assert scene.states(parent, child) == ["pending", "ready"]
        scene.finish(child)
        assert scene.state(parent) == "ready"

    def test_a_held_task_gets_subtasks_from_its_holder_alone(self, scene: Scene) -> None:
        parent = scene.add()
        scene.take(parent)
        before = scene.tables()
        answer = scene.try_to(c.Add, task=NewTask(title="part", parent=parent))
        assert code_of(answer) == "DENIED_STATE"
        assert scene.tables() == before

    def test_a_spawned_subtask_blocks_nobody_unless_the_holder_waits(self, scene: Scene) -> None:
        parent = scene.add()
        receipt = scene.take(parent)
        spawned = scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="part"),))
        assert (spawned.state, [t["state"] for t in spawned.tasks or ()]) == ("running", ["ready"])
        assert scene.submit(receipt).outcome == "ACCEPTED"
        assert scene.state(f"{parent}::1") == "ready"

    def test_a_waiting_parent_comes_back_with_outputs_and_failures(self, scene: Scene) -> None:
        parent = scene.add()
        parts = (NewTask(title="good"), NewTask(title="bad", max_attempts=1), NewTask(title="dropped"))
        scene.do(c.Spawn, receipt=scene.take(parent), tasks=parts, wait=True)
        good, bad, dropped = (f"{parent}::{n}" for n in (1, 2, 3))
        scene.finish(good)
        scene.fail(scene.take(bad), message="no")
        assert scene.state(parent) == "pending"
        scene.do(c.Cancel, task=dropped)
        back = scene.claim(parent)
        assert (back.outcome, back.generation, back.attempt) == ("GRANTED", 2, 1)
        assert back.inputs is not None
        assert {k: v["state"] for k, v in back.inputs.items()} == {
            good: "completed",
            bad: "dead_lettered",
            dropped: "cancelled",
        }
        assert back.inputs[good]["data"] == f"output of {good}"
        assert back.inputs[bad]["error"]["message"] == "no"

    def test_a_holder_may_wait_later_for_what_it_spawned_before(self, scene: Scene) -> None:
        parent = scene.add()
        receipt = scene.take(parent)
        scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="one"), NewTask(title="two")))
        scene.finish(f"{parent}::1", agent="bo")
        waited = scene.do(c.Wait, receipt=receipt)
        assert (waited.state, waited.waits_for) == ("pending", (f"{parent}::2",))
        scene.finish(f"{parent}::2", agent="bo")
        assert scene.state(parent) == "ready"

    def test_waiting_for_nothing_is_over_at_once(self, scene: Scene) -> None:
        parent = scene.add()
        assert scene.do(c.Wait, receipt=scene.take(parent)).state == "ready"

    def test_a_parent_cannot_wait_for_a_subtask_that_waits_for_it(self, scene: Scene) -> None:
        parent = scene.add()
        between = scene.add("between", depends_on=(parent,))
        for needed in (parent, between):
            receipt = scene.take(parent)
            before = scene.tables()
            answer = scene.try_to(
                c.Spawn, receipt=receipt, tasks=(NewTask(title="part", depends_on=(needed,)),), wait=True
            )
            assert code_of(answer) == "CYCLE"
            assert scene.tables() == before
            scene.do(c.Release, receipt=receipt)

    def test_cancelling_a_parent_cancels_its_open_subtasks(self, scene: Scene) -> None:
        parent = scene.add()
        receipt = scene.take(parent)
        scene.do(c.Spawn, receipt=receipt, tasks=tuple(NewTask(title=t) for t in ("done", "held", "open")))
        done, held, open_ = (f"{parent}::{n}" for n in (1, 2, 3))
        scene.finish(done, agent="bo")
        child_receipt = scene.take(held, "bo")
        grandchild = scene.do(c.Spawn, receipt=child_receipt, tasks=(NewTask(title="deep"),)).tasks or ()
        scene.do(c.Cancel, task=parent)
        assert scene.states(parent, done, held, open_) == ["cancelled", "completed", "cancelled", "cancelled"]
        assert scene.state(str(grandchild[0]["key"])) == "cancelled"

    def test_subtasks_are_of_their_parents_dag(self, scene: Scene) -> None:
        parent = scene.add()
        receipt = scene.take(parent)
        scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="part"),))
        assert scene.task(f"{parent}::1").dag == scene.task(parent).dag
        scene.submit(receipt)
        assert status(scene, parent) == "open"
        scene.finish(f"{parent}::1")
        assert (status(scene, parent), dag_events(scene)) == ("completed", ["dag.completed"])

    # --- bounds of growth -----------------------------------------------------------------------------------------

    def test_subtasks_go_five_deep(self, scene: Scene) -> None:
        key = scene.add()
        for _ in range(5):
            key = scene.add("deeper", parent=key)
        with pytest.raises(LimitReached, match="5 levels deep"):
            scene.add("too deep", parent=key)

    def test_a_task_has_two_hundred_children(self, scene: Scene) -> None:
        parent = scene.add()
        receipt = scene.take(parent)
        scene.do(c.Spawn, receipt=receipt, tasks=tuple(NewTask(title=f"part {n}") for n in range(200)))
        before = scene.tables()
        with pytest.raises(LimitReached, match="200"):
            scene.do(c.Spawn, receipt=receipt, tasks=(NewTask(title="one more"),))
        assert scene.tables() == before

    def test_a_lineage_has_a_thousand_tasks_however_it_grows(self, scene: Scene) -> None:
        def family(children: int) -> list[NewTask]:
            tasks = [NewTask(title="root", name="root")]
            tasks += [NewTask(title="c", name=f"c{n}", parent="root") for n in range(5)]
            tasks += [NewTask(title="g", name=f"g{n}", parent=f"c{n % 5}") for n in range(children)]
            return tasks

        before = scene.tables()
        with pytest.raises(LimitReached, match="1000"):
            scene.plan(*family(995))
        assert scene.tables() == before
        keys = scene.plan(*family(994))
        assert len(keys) == 1000
        assert scene.rows(Task, parent=None)[0].lineage == 1000
        with pytest.raises(LimitReached, match="1000"):
            scene.add("one more", parent=keys[-1])

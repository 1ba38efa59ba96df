"""Undo: the opposite of one earlier command, as new events, where nothing has happened since."""

from __future__ import annotations

import pytest

from tenure.core import commands as c
from tenure.core.commands import Principal
from tenure.core.errors import NotAllowed, NotFound
from tenure.core.records import DeadLetter
from tenure.testing.engine.graphs import new
from tenure.testing.engine.operators import HOUR, one_of_each
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import MEMBER, OWNER, Scene


class Undo(Stage):
    @pytest.mark.parametrize("state", ["created", "pending", "ready", "paused", "retrying", "dead_lettered"])
    def test_a_cancelled_task_goes_back_to_where_it_was(self, scene: Scene, state: str) -> None:
        key = one_of_each(scene)[state]
        cancelled = scene.do(c.Cancel, task=key)
        undone = scene.do(c.Undo, command_id=cancelled.command_id)
        assert (undone.outcome, undone.changed, scene.state(key)) == ("UPDATED", (key,), state)
        if state == "dead_lettered":
            letter = scene.rows(DeadLetter)[0]
            assert (letter.resolution, letter.reviewed_by) == (None, None)

    def test_a_cancelled_claim_does_not_come_back(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Undo, command_id=scene.do(c.Cancel, task=key).command_id)
        assert scene.state(key) == "ready"
        assert scene.do(c.Renew, receipt=receipt).outcome == "NO_CLAIM"

    def test_what_was_cancelled_along_comes_back_along(self, scene: Scene) -> None:
        parent = scene.add()
        child = scene.add("child", parent=parent)
        dependent = scene.add("dependent", depends_on=(c.Dependency(task=parent, on_failure="cancel"),))
        cancelled = scene.do(c.Cancel, task=parent)
        assert scene.states(parent, child, dependent) == ["cancelled"] * 3
        undone = scene.do(c.Undo, command_id=cancelled.command_id)
        assert sorted(undone.changed or ()) == sorted((parent, child, dependent))
        assert scene.states(parent, child, dependent) == ["pending", "ready", "pending"]
        scene.finish(child, parent, dependent)

    def test_an_archived_task_is_shown_again(self, scene: Scene) -> None:
        key = scene.add()
        scene.finish(key)
        archived = scene.do(c.Archive, task=key)
        assert scene.task(key).archived_at is not None
        scene.do(c.Undo, command_id=archived.command_id)
        assert scene.task(key).archived_at is None

    @pytest.mark.parametrize("cascade", [True, False])
    def test_after_an_undone_reset_the_old_result_stands_again(self, scene: Scene, cascade: bool) -> None:
        a, b, waiting = scene.plan(new("a"), new("b", "a"), new("w", "a"))
        scene.finish(a, b)
        old = scene.task(a)
        reset = scene.do(c.Reset, task=a, cascade=cascade)
        scene.do(c.Undo, command_id=reset.command_id)
        task = scene.task(a)
        assert (task.state, task.run, task.work_product) == ("completed", 1, old.work_product)
        assert (task.attempts, task.given_back, task.completed_at) == (old.attempts, old.given_back, old.completed_at)
        assert scene.states(b, waiting) == ["completed", "ready"]
        granted = scene.claim(waiting)
        assert granted.inputs is not None
        assert granted.inputs[a]["data"] == f"output of {a}"

    @pytest.mark.parametrize("changes", [None, {"max_attempts": 9, "title": "easier"}])
    def test_after_an_undone_retry_it_is_a_dead_letter_again(
        self, scene: Scene, changes: dict[str, object] | None
    ) -> None:
        a, victim = scene.plan(new("a", max_attempts=2), new("v", "a", on_failure="cancel"))
        scene.do(c.Release, receipt=scene.take(a))
        scene.bury(a)
        old = scene.task(a)
        retried = scene.do(c.Retry, task=a, changes=changes, note="again")
        assert scene.states(a, victim) == ["ready", "pending"]
        scene.do(c.Undo, command_id=retried.command_id)
        task = scene.task(a)
        assert (task.state, task.run, task.attempts, task.given_back) == ("dead_lettered", 1, 2, old.given_back)
        assert (task.max_attempts, task.dead_lettered_at) == (2, old.dead_lettered_at)
        assert scene.state(victim) == "cancelled"
        (letter,) = scene.rows(DeadLetter)
        assert (letter.resolution, letter.note) == (None, None)
        assert scene.log(a).count("task.dead_lettered") == 1
        scene.do(c.Retry, task=a)
        scene.finish(a)

    def test_edited_fields_get_their_old_values(self, scene: Scene) -> None:
        deadline = scene.now + HOUR
        old = {
            "title": "old", "description": "d" * 5000, "tags": ["x"], "priority": 33, "deadline": deadline,
            "metadata": {"a": 1}, "boost": 1.0, "max_attempts": 4, "spec": {"prompt": "p"}, "touches": ["src/**"],
            "constraints": {"region": "eu"}, "output": {"type": "json"}, "on_lost": "hold", "type": "review",
        }  # fmt: skip
        key = scene.add("old", **{k: tuple(v) if isinstance(v, list) else v for k, v in old.items() if k != "title"})
        was = scene.task(key)
        edited = scene.do(
            c.Edit,
            task=key,
            changes={
                "title": "new", "description": "", "tags": [], "priority": 1, "deadline": None, "metadata": {},
                "boost": 0, "max_attempts": 1, "spec": {}, "touches": [], "constraints": {}, "output": {},
                "on_lost": "retry", "type": "code",
            },
        )  # fmt: skip
        scene.do(c.Undo, command_id=edited.command_id)
        now = scene.task(key)
        same = ("priority", "boost", "deadline", "max_attempts", "region", "tags", "type", "guarded", "lane", "state")
        assert [getattr(now, f) for f in same] == [getattr(was, f) for f in same]
        scene.do(c.Register, agent="ann", region="eu")
        view = scene.claim(key).task or {}
        assert [view[k] for k in ("title", "description", "spec", "metadata", "output")] == [
            old[k] for k in ("title", "description", "spec", "metadata", "output")
        ]

    def test_old_texts_that_are_large_come_back_and_stand_in_no_event(self, scene: Scene) -> None:
        spec = {"prompt": "p" * 100_000}
        key = scene.add(spec=spec, description="d" * 60_000)
        edited = scene.do(c.Edit, task=key, changes={"spec": {"$body": "x"}, "description": "short"})
        undone = scene.do(c.Undo, command_id=edited.command_id)
        scene.do(c.Undo, command_id=scene.do(c.Undo, command_id=undone.command_id).command_id)
        view = scene.claim(key).task or {}
        assert (view["spec"], view["description"]) == (spec, "d" * 60_000)
        assert all(len(str(event)) < 20_000 for event in scene.events())

    @pytest.mark.parametrize(
        ("on_failure", "state"), [("cancel", "cancelled"), ("ignore", "ready"), ("block", "pending")]
    )
    def test_a_dependency_that_comes_back_means_of_a_failure_what_it_meant(
        self, scene: Scene, on_failure: str, state: str
    ) -> None:
        needed, waits = scene.plan(new("needed", max_attempts=1), new("waits", "needed", on_failure=on_failure))
        unlinked = scene.do(c.Unlink, task=waits, needs=needed)
        assert scene.state(waits) == "ready"
        assert scene.do(c.Undo, command_id=unlinked.command_id).outcome == "UPDATED"
        assert scene.state(waits) == "pending"
        scene.bury(needed)
        assert scene.state(waits) == state

    def test_an_undone_edit_can_be_undone_in_turn(self, scene: Scene) -> None:
        key = scene.add(priority=50)
        edited = scene.do(c.Edit, task=key, changes={"priority": 20})
        undone = scene.do(c.Undo, command_id=edited.command_id)
        assert scene.task(key).priority == 50
        assert scene.do(c.Undo, command_id=undone.command_id).outcome == "UPDATED"
        assert scene.task(key).priority == 20

    def test_what_a_plan_made_is_cancelled_and_what_it_changed_restored(self, scene: Scene) -> None:
        a, b = scene.plan(new("a", priority=50), new("b"), name="release")
        applied = scene.do(c.Plan, name="release", tasks=(new("a", priority=10), new("b", "a"), new("e", "a")))
        e = str((applied.tasks or ())[0]["key"])
        scene.do(c.Undo, command_id=applied.command_id)
        assert scene.states(a, b, e) == ["ready", "ready", "cancelled"]
        assert scene.task(a).priority == 50

    def test_an_undo_says_what_changed_and_does_nothing(self, scene: Scene) -> None:
        a, b = scene.add(), scene.add()
        edited = scene.do(c.Edit, task=a, changes={"title": "x"})
        scene.do(c.Note, task=a, text="since")
        before = scene.tables()
        refused = scene.do(c.Undo, command_id=edited.command_id)
        assert (refused.outcome, refused.changed) == ("CANNOT_UNDO", (a,))
        assert a in refused.message
        assert scene.tables() == before
        cancelled = scene.do(c.Cancel, task=b)
        assert scene.do(c.Undo, command_id=cancelled.command_id).outcome == "UPDATED"
        assert scene.do(c.Undo, command_id=cancelled.command_id).outcome == "CANNOT_UNDO"

    def test_an_undone_retry_that_was_edited_is_not_undone_by_half(self, scene: Scene) -> None:
        """Its edit alone would have an opposite: the task would be edited again, and still be a dead letter."""
        key = scene.add(max_attempts=1)
        scene.bury(key)
        retried = scene.do(c.Retry, task=key, changes={"title": "easier"}, note="again")
        undone = scene.do(c.Undo, command_id=retried.command_id)
        before = scene.tables()
        assert scene.do(c.Undo, command_id=undone.command_id).outcome == "CANNOT_UNDO"
        assert scene.tables() == before
        assert scene.state(key) == "dead_lettered"

    def test_undoing_a_plan_cancels_each_task_once(self, scene: Scene) -> None:
        """To cancel the first cancels the second along: that one is in a final state when its own turn comes."""
        tasks = (new("needs", "needed", on_failure="cancel"), new("needed"))
        applied = scene.do(c.Plan, name="release", tasks=tasks)
        keys = [str(task["key"]) for task in applied.tasks or ()]
        assert scene.do(c.Undo, command_id=applied.command_id).outcome == "UPDATED"
        assert scene.states(*keys) == ["cancelled", "cancelled"]
        assert [scene.log(key).count("task.cancelled") for key in keys] == [1, 1]

    def test_what_has_no_opposite_is_not_undone(self, scene: Scene) -> None:
        key = scene.add()
        paused = scene.do(c.Pause, task=key)
        assert scene.do(c.Undo, command_id=paused.command_id).outcome == "CANNOT_UNDO"
        assert scene.state(key) == "paused"

    def test_an_unknown_command_is_not_found(self, scene: Scene) -> None:
        with pytest.raises(NotFound, match="cmd_nothing"):
            scene.do(c.Undo, command_id="cmd_nothing")

    def test_a_member_undoes_its_own_and_an_admin_everybodys(self, scene: Scene) -> None:
        key = scene.add()
        theirs = scene.do(c.Cancel, task=key, by=OWNER)
        assert isinstance(scene.try_to(c.Undo, command_id=theirs.command_id, by=MEMBER), NotAllowed)
        admin = Principal(role="admin", user="ada")
        assert scene.do(c.Undo, command_id=theirs.command_id, by=admin).outcome == "UPDATED"
        own = scene.do(c.Cancel, task=key, by=MEMBER)
        assert scene.do(c.Undo, command_id=own.command_id, by=MEMBER).outcome == "UPDATED"

    def test_an_undo_writes_new_events_and_takes_none_away(self, scene: Scene) -> None:
        key = scene.add()
        cancelled = scene.do(c.Cancel, task=key)
        before = scene.events()
        scene.do(c.Undo, command_id=cancelled.command_id)
        after = scene.events()
        assert after[: len(before)] == before
        assert [e.kind for e in after[len(before) :]] == ["task.uncancelled", "command.undone"]

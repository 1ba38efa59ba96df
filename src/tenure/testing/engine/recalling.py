"""What is done with archived tasks: no verb can tell whether one has gone. And how they go for good."""

from __future__ import annotations

from typing import Any

import pytest

from tenure.core import archive
from tenure.core import commands as c
from tenure.core.commands import Dependency, NewTask, Totals
from tenure.core.errors import InvalidInput
from tenure.core.records import Archived, Body, Dag, Edge, Task, Track, replace
from tenure.engine.archive import mover
from tenure.engine.reads import event_log, tasks
from tenure.testing.engine.archive import DAYS, archived, churning, eventful, look, moved
from tenure.testing.engine.histories import History, Player
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene, comparable, forged


class Recalling(Stage):
    # --- what can still be done -----------------------------------------------------------------------------------

    def test_the_receipt_of_an_accepted_result_is_told_so_again(self, scene: Scene) -> None:
        churning(scene)
        receipt = scene.take(scene.add())
        first = scene.submit(receipt, {"a": 1})
        assert moved(scene) == 1
        again = scene.submit(receipt, {"a": 1})
        assert (again.outcome, again.again, again.work_product) == ("ACCEPTED", True, first.work_product)
        assert scene.rows(Task) == []
        assert scene.do(c.Renew, receipt=receipt).outcome == "TASK_ALREADY_COMPLETED"
        forgery = forged(receipt, nonce=bytes(16))
        assert scene.submit(forgery, {"a": 1}).outcome == "SESSION_MISMATCH"
        assert scene.submit(forged(receipt, generation=2), {"a": 1}).outcome == "FUTURE_GENERATION"
        assert scene.submit(forged(receipt, name="A-002")).outcome == "NOT_FOUND"
        assert scene.rows(Task) == []

    def test_another_result_is_refused_and_kept(self, scene: Scene) -> None:
        churning(scene)
        key = scene.add()
        stale = scene.take(key, lease=60)
        scene.pass_time(seconds=61)
        scene.finish(key, agent="bo")
        assert moved(scene) == 1
        refused = scene.submit(stale, "from beyond")
        assert (refused.outcome, refused.work_lost) == ("STALE_GENERATION", True)
        assert [(r.data, r.accepted) for r in sorted(scene.results(key), key=lambda r: r.accepted)] == [
            ("from beyond", False),
            (f"output of {key}", True),
        ]
        assert scene.engine.verify() == []
        assert scene.log(key) == ["task.result_refused"]  # the rest is in the archive
        kinds = [e["kind"] for e in look(scene, event_log.log, task=key)]
        assert kinds[0] == "task.created"
        assert kinds[-2:] == ["task.completed", "task.result_refused"]
        assert [e["version"] for e in look(scene, event_log.log, task=key)] == list(range(1, len(kinds) + 1))
        assert moved(scene) == 1
        assert [e["kind"] for e in look(scene, event_log.log, task=key)] == kinds

    def test_usage_that_comes_late_is_booked(self, scene: Scene) -> None:
        churning(scene)
        receipt = scene.take(scene.add())
        scene.submit(receipt, usage=(Totals(model="opus", fresh=1),))
        assert moved(scene) == 1
        assert scene.do(c.ReportUsage, receipt=receipt, model="haiku", fresh=5).late
        assert look(scene, tasks.show, "A-001")["usage"]["fresh"] == 6
        assert look(scene, tasks.status)["usage"]["fresh"] == 6
        assert moved(scene) == 1
        assert look(scene, tasks.status)["usage"]["fresh"] == 6

    def test_a_task_that_is_reset_comes_back_whole(self, scene: Scene) -> None:
        key = eventful(scene)
        churning(scene)
        id, generation = scene.task(key).id, scene.task(key).generation
        before = {kind: scene.rows(kind, **{field: id}) for kind, field in archive.OWNED.items() if kind is not Task}
        assert moved(scene) == 1
        assert scene.do(c.Reset, task=key).outcome == "UPDATED"
        assert scene.engine.verify() == []
        assert {kind: scene.rows(kind, **{archive.OWNED[kind]: id}) for kind in before} == before
        task = scene.task(key)
        assert (task.state, task.run, task.archived_at) == ("ready", 3, None)
        assert scene.claim(key, "dy").generation == generation + 1
        assert [row.out for row in scene.rows(Archived)] == [True]

    def test_one_that_comes_back_waits_for_what_has_opened_since(self, scene: Scene) -> None:
        churning(scene)
        scene.add("a")
        scene.add("b", depends_on=("A-001",))
        scene.finish("A-001", "A-002")
        assert moved(scene) == 2
        scene.do(c.Reset, task="A-001")
        assert scene.do(c.Reset, task="A-002").state == "pending"
        assert scene.engine.verify() == []
        scene.finish("A-001")
        assert scene.state("A-002") == "ready"

    def test_large_values_go_along_and_stay_for_whoever_else_refers_to_them(self, scene: Scene) -> None:
        churning(scene)
        large = {"prompt": "x" * 5000}
        for n in range(3):
            scene.add(str(n), spec=large)
        (body,) = scene.rows(Body)
        assert body.uses == 3
        scene.finish("A-001", "A-002")
        assert moved(scene) == 2
        assert [row.uses for row in scene.rows(Body)] == [1]
        scene.do(c.Cancel, task="A-003")
        assert moved(scene) == 1
        assert scene.rows(Body) == []
        assert look(scene, tasks.show, "A-001")["spec"] == large
        scene.do(c.Reset, task="A-001")
        scene.do(c.Note, task="A-002", text="and this one")
        assert scene.rows(Body) == [replace(body, uses=2)]
        assert (scene.claim("A-001").task or {})["spec"] == large
        assert moved(scene) == 1
        assert [row.uses for row in scene.rows(Body)] == [1]

    def test_a_large_value_of_the_archive_that_is_used_anew_is_stored(self, scene: Scene) -> None:
        churning(scene)
        large = "y" * 5000
        receipt = scene.take(scene.add())
        scene.submit(receipt, large)
        assert moved(scene) == 1
        answers = scene.run(
            c.Submit(project=PROJECT, receipt=receipt, data=large),  # looks at the archived one
            c.Add(project=PROJECT, task=NewTask(title="again", description=large)),
        )
        assert [getattr(a, "outcome", a) for a in answers] == ["ACCEPTED", "CREATED"]
        assert [row.uses for row in scene.rows(Body)] == [1]
        assert len(scene.rows(Task)) == 1
        assert look(scene, tasks.show, "A-002")["description"] == large
        assert look(scene, tasks.show, "A-001")["result"]["data"] == large

    def test_claims_are_denied_for_what_the_task_is(self, scene: Scene) -> None:
        churning(scene)
        scene.finish(scene.add())
        scene.do(c.Cancel, task=scene.add())
        assert moved(scene) == 2
        assert [scene.claim(k).outcome for k in ("A-001", "A-002")] == ["DENIED_COMPLETED", "DENIED_CANCELLED"]
        assert scene.rows(Task) == []

    def test_the_same_idempotency_key_gives_the_archived_task(self, scene: Scene) -> None:
        churning(scene)
        key = scene.add(idempotency_key="once")
        scene.finish(key)
        assert moved(scene) == 1
        again = scene.do(c.Add, task=NewTask(title="other", idempotency_key="once"))
        assert (again.outcome, (again.task or {})["key"]) == ("EXISTS", key)
        with pytest.raises(InvalidInput, match="once"):
            scene.plan(NewTask(title="x", idempotency_key="once"))

    def test_keys_are_never_given_twice(self, scene: Scene) -> None:
        churning(scene)
        scene.finish(scene.add())
        assert moved(scene) == 1
        assert scene.add().startswith("A-002")
        with pytest.raises(InvalidInput, match="taken"):
            scene.add(key="A-001-again")

    def test_a_dependency_on_an_archived_task_counts_for_what_that_is(self, scene: Scene) -> None:
        churning(scene)
        scene.finish(scene.add("done"))
        scene.do(c.Cancel, task=scene.add("gone"))
        assert moved(scene) == 2
        met = scene.add("met", depends_on=("A-001",))
        blocked = scene.add("blocked", depends_on=("A-002",))
        ignored = scene.add("ignored", depends_on=(Dependency(task="A-002", on_failure="ignore"),))
        doomed = scene.add("doomed", depends_on=(Dependency(task="A-002", on_failure="cancel"),))
        assert scene.states(met, blocked, ignored, doomed) == ["ready", "pending", "ready", "cancelled"]
        assert scene.engine.verify() == []
        assert len(scene.rows(Task)) == 4  # none of the two came back for that
        assert (scene.claim(met).inputs or {})["A-001-done"]["data"] == "output of A-001-done"
        assert look(scene, tasks.show, blocked)["blocked_by"] == ["A-002-gone"]
        assert scene.do(c.Unlink, task=blocked, needs="A-002").state == "ready"
        assert scene.engine.verify() == []

    def test_a_circle_through_the_archive_is_found(self, scene: Scene) -> None:
        churning(scene)
        for n in range(1, 4):
            scene.add(str(n), depends_on=(f"A-{n - 1:03d}",) if n > 1 else ())
        scene.finish("A-001", "A-002", "A-003")
        assert moved(scene) == 3
        scene.do(c.Reset, task="A-001")
        after = scene.add("after", depends_on=("A-003",))
        answer = scene.try_to(c.Link, task="A-001", needs=after)
        assert isinstance(answer, Exception)
        assert "A-001-1 → A-004-after → A-003-3 → A-002-2 → A-001-1" in str(answer)
        assert scene.engine.verify() == []

    def test_a_command_that_is_refused_brings_nothing_back(self, scene: Scene) -> None:
        churning(scene)
        scene.finish(scene.add())
        assert moved(scene) == 1
        before = scene.tables()
        assert scene.do(c.Pause, task="A-001").outcome == "DENIED_STATE"
        answers = scene.run(
            c.Edit(project=PROJECT, task="A-001", changes={"title": ""}), c.Retry(project=PROJECT, task="A-001")
        )
        assert len(answers) == 2
        assert scene.tables() == before

    def test_a_new_epoch_leaves_the_archive_alone(self, scene: Scene) -> None:
        churning(scene)
        receipt = scene.take(scene.add())
        scene.submit(receipt, "x")
        assert moved(scene) == 1
        scene.engine.new_epoch("restored")
        assert scene.submit(receipt, "x").outcome == "ACCEPTED"
        assert scene.submit(receipt, "y").outcome == "STALE_EPOCH"
        assert [r.data for r in scene.results("A-001")] == ["x", "y"]

    # --- in the end -----------------------------------------------------------------------------------------------

    def test_the_archive_is_kept_for_ever_unless_told(self, scene: Scene) -> None:
        churning(scene)
        scene.finish(scene.add())
        scene.engine.sweep()
        scene.pass_time(hours=10_000 * DAYS)
        scene.engine.sweep()
        assert len(scene.rows(Archived)) == 1

    def test_after_its_time_the_row_goes_and_leaves_counts(self, scene: Scene) -> None:
        churning(scene, history_retention=30)
        receipt = scene.take(scene.add(idempotency_key="k"))
        scene.submit(receipt, usage=(Totals(model="opus", fresh=3),))
        scene.finish(*scene.plan(NewTask(title="a"), NewTask(title="b")))
        before = look(scene, tasks.status)
        assert moved(scene) == 3
        scene.pass_time(hours=30 * DAYS - 1)
        scene.engine.sweep()
        assert len(scene.rows(Archived)) == 3
        scene.pass_time(hours=1)
        scene.engine.sweep()
        assert scene.rows(Archived) == scene.rows(Dag) == []
        assert scene.engine.verify() == []
        after = look(scene, tasks.status)
        for part in ("tasks", "tracks", "usage"):
            assert after[part] == before[part]
        assert scene.submit(receipt).outcome == "NOT_FOUND"
        with pytest.raises(InvalidInput, match="taken"):
            scene.add(key="A-002-again")
        assert scene.add(idempotency_key="k").startswith("A-004")
        assert scene.rows(Track, id="A")[0].gone == ((1, 3),)

    def test_the_time_in_the_archive_counts_from_when_it_went_there(self, scene: Scene) -> None:
        churning(scene, history_retention=30)
        key = scene.add()
        scene.pass_time(hours=40 * DAYS)
        scene.finish(key)
        assert moved(scene) == 1
        scene.pass_time(hours=29 * DAYS)
        assert (moved(scene), archived(scene)) == (0, [key])
        scene.pass_time(hours=1 * DAYS)
        assert (moved(scene), archived(scene)) == (0, [])

    def test_what_something_still_waits_for_is_not_pruned(self, scene: Scene) -> None:
        churning(scene, history_retention=1)
        scene.finish(scene.add())
        scene.engine.sweep()
        open_ = scene.add("open", depends_on=("A-001",))
        scene.pass_time(hours=2 * DAYS)
        scene.engine.sweep()
        assert archived(scene) == ["A-001-work"]
        assert (scene.claim(open_).inputs or {})["A-001-work"]["state"] == "completed"

    def test_what_came_back_is_not_pruned(self, scene: Scene) -> None:
        churning(scene, history_retention=1)
        scene.finish(scene.add())
        scene.engine.sweep()
        scene.do(c.Reset, task="A-001")
        scene.pass_time(hours=2 * DAYS)
        scene.engine.sweep()
        assert len(look(scene, event_log.log, task="A-001")) == 4

    def test_one_whose_dependency_is_gone_for_good_can_still_come_back(self, scene: Scene) -> None:
        churning(scene)
        scene.add("a")
        scene.add("b", depends_on=("A-001",))
        scene.finish("A-001")
        scene.do(c.DefineProject, limits={"archive_after": 0, "history_retention": 1})
        scene.finish("A-002")
        assert moved(scene) == 2
        first = scene.rows(Archived, key="A-001-a")[0]
        scene.put(first, replace(first, archived_at=first.archived_at - 2 * archive.DAY, created_at=0))
        scene.broken = True
        scene.engine.sweep()
        assert archived(scene) == ["A-002-b"]
        assert scene.do(c.Reset, task="A-002").state == "ready"
        assert scene.rows(Edge) == []
        assert (scene.task("A-002").waits_on, scene.task("A-002").unmet) == (0, 0)

    # --- damage ---------------------------------------------------------------------------------------------------

    def test_a_damaged_document_is_found_by_verify(self, scene: Scene) -> None:
        churning(scene)
        scene.finish(scene.add(), scene.add())
        assert moved(scene) == 2
        scene.broken = True
        one, other = scene.rows(Archived)
        scene.put(one, replace(one, document=one.document[:-3]))
        scene.put(other, replace(other, state="cancelled"))
        wrong = scene.engine.verify(with_replay=False)
        assert len(wrong) == 2
        assert "truncated" in wrong[0]
        assert "not the one" in wrong[1]
        scene.put(replace(one, document=one.document[:-3]), None)
        assert any("tasks in the archive" in line for line in scene.engine.verify(with_replay=False))

    # --- all together ---------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("seed", [2, 32, 40, 46, 49, 54])  # of those in which much goes, and some comes back
    def test_no_answer_depends_on_whether_tasks_were_archived(self, scene: Scene, seed: int) -> None:
        from tenure.stores.memory import Memory  # here: the suite itself knows no store
        from tenure.testing.clock import FakeClock

        clock = FakeClock()
        other = Scene(Memory(clock=clock), clock)
        churning(scene)
        other.do(c.DefineProject, limits={"archive_after": 10**9})
        answers = _played(scene, seed, archiving_too=True)
        for mine, theirs in zip(answers, _played(other, seed, archiving_too=False), strict=True):
            assert mine == theirs
        assert scene.rows(Archived)


def _played(scene: Scene, seed: int, *, archiving_too: bool) -> list[Any]:
    """The answers of a history without what the archive is known to take along.

    That is: undoing, which goes by the log; a cascade of resets, which does not reach into the archive; the request
    ids of claims; and the mark of being archived itself.
    """
    player, answers = Player(scene), []
    for turn, step in enumerate(History(seed, 60)):
        if not callable(step):
            scene.pass_time(seconds=step)
            continue
        command = step(player)
        if isinstance(command, c.Undo | c.Archive) or (isinstance(command, c.Reset) and command.cascade):
            continue
        if isinstance(command, c.ClaimTask):
            command = replace(command, request_id=None)
        (answer,) = scene.run(command)
        player.learn(command, answer)
        answers.append((turn, type(command).__name__, _unmarked(comparable(answer))))
        if archiving_too and turn % 3 == 0:
            assert mover.move_all(scene.engine, PROJECT).failed == {}
            assert scene.engine.verify() == []
    return answers


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k not in ("archived_at", "left")}
    return [_unmarked(v) for v in value] if isinstance(value, list) else value

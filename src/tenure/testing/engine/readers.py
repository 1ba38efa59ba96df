"""Readers of the log hold the archive back: nothing goes that one of them has not passed."""

from __future__ import annotations

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.records import Archived, Cursor, Cycles, Leader, replace
from tenure.engine.archive import mover
from tenure.engine.archive.log_readers import holding_back
from tenure.engine.duties.election import hear_alone, stand
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.stage import Stage
from tenure.testing.engine.triggers import hear, made, set_trigger
from tenure.testing.factories import PROJECT, Scene


def archive_all(scene: Scene) -> mover.Moved:
    return mover.move_all(scene.engine, PROJECT, older=0)


def retained(scene: Scene) -> int:
    return len(scene.rows(Archived))


class LogReaders(Stage):
    def test_an_event_that_no_trigger_has_heard_does_not_go(self, scene: Scene) -> None:
        set_trigger(scene, on="task.completed")
        key = scene.add("parse")
        scene.finish(key)
        done = archive_all(scene)
        assert (done.tasks, done.held_back, retained(scene)) == (0, 1, 0)
        scene.engine.sweep()
        assert retained(scene) == 0
        hear(scene)
        assert made(scene) == [f"Look at {key}"]
        assert archive_all(scene).tasks == 1

    def test_where_nobody_leads_the_archive_has_triggers_hear_the_rest_first(self, scene: Scene) -> None:
        set_trigger(scene, on="task.completed")
        key = scene.add("parse")
        scene.finish(key)
        assert hear_alone(scene.engine, PROJECT, "archive")
        assert made(scene) == [f"Look at {key}"]
        assert (archive_all(scene).tasks, retained(scene)) == (1, 1)
        (leader,) = scene.stored_rows(Leader)
        assert leader.until <= scene.now  # it leads no more
        assert hear_alone(scene.engine, PROJECT, "archive")  # nothing is left to hear
        assert made(scene) == [f"Look at {key}"]

    def test_where_somebody_leads_hearing_is_left_to_it(self, scene: Scene) -> None:
        set_trigger(scene, on="task.completed")
        scene.finish(scene.add("parse"))
        assert stand(scene.engine, "server", 30.0, None, Cycles()).ok
        assert not hear_alone(scene.engine, PROJECT, "archive")
        assert (made(scene), archive_all(scene).tasks) == ([], 0)

    def test_the_slowest_of_several_readers_holds_back_what_it_has_not_passed(self, scene: Scene) -> None:
        first, second = scene.add(), scene.add()
        scene.finish(first)
        seen = scene.events(project=PROJECT)[-1].sequence
        scene.finish(second)
        last = scene.events(project=PROJECT)[-1].sequence
        for name, sequence in (("quick", last), ("slow", seen)):
            scene.put(None, Cursor(project=PROJECT, id=name, sequence=sequence))
        assert scene.engine.read_settled((PROJECT,), lambda work: list(holding_back(work, PROJECT))) == ["slow"]
        ahead = mover.could_move(scene.engine, PROJECT, older=0)
        assert (ahead.tasks, ahead.held_back) == (1, 1)
        done = archive_all(scene)
        assert (done.tasks, done.held_back) == (1, 1)
        slow = scene.row(Cursor, "slow")
        scene.put(slow, replace(slow, sequence=last))
        assert archive_all(scene).tasks == 1

    def test_a_lineage_goes_whole_or_stays_whole(self, scene: Scene) -> None:
        key = scene.add()
        receipt = scene.take(key)
        scene.do(c.Spawn, receipt=receipt, tasks=(c.NewTask(title="part"),))
        scene.finish(f"{key}::1", agent="bo")
        seen = scene.events(project=PROJECT)[-1].sequence
        scene.submit(receipt)
        scene.put(None, Cursor(project=PROJECT, id="slow", sequence=seen))
        assert (archive_all(scene).tasks, archive_all(scene).held_back) == (0, 2)

    def test_metrics_name_the_reader_and_for_how_long_it_holds_back(self, scene: Scene) -> None:
        set_trigger(scene, on="task.completed")
        scene.finish(scene.add())
        scene.pass_time(seconds=90)
        (entry,) = read_query(scene.engine, q.Gauges(most=10))
        assert entry["readers"] == {"triggers": 90.0}
        hear(scene)
        (entry,) = read_query(scene.engine, q.Gauges(most=10))
        assert set(entry["readers"]) == {"triggers"}

"""Tasks by state as a server keeps them: at every moment the same as counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask
from tenure.engine import Engine
from tenure.engine.reads import task_counts
from tenure.engine.reads.query_table import read_query
from tenure.engine.reads.task_counts import TaskCounts
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene


class Follower:
    """A process that follows the log as a server does, but only when `follow` is called."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self.counts, self._position = scene, TaskCounts(), self._end(scene)
        self.counts.position = lambda: self._position
        context = msgspec.structs.replace(scene.engine.context, counts=self.counts)
        self.engine = Engine(scene.store, scene.dice, context)

    def _end(self, scene: Scene) -> int:
        events = scene.engine.read(lambda tx: tx.events({}, limit=1, last=True), follows=True)
        return events[-1].sequence if events else 0

    def follow(self) -> None:
        events = self._scene.engine.read(lambda tx: tx.events({}, after=self._position), follows=True)
        if events:
            self._position = events[-1].sequence
            self.counts.hear(events)

    def check(self) -> Any:
        """What it answers is what a count answers."""
        kept = read_query(self.engine, q.Status(project=PROJECT))
        counted = read_query(self._scene.engine, q.Status(project=PROJECT))
        assert (kept["tasks"], kept["tracks"]) == (counted["tasks"], counted["tracks"])
        return kept["tasks"]


class KeptCounts(Stage):
    def test_kept_counts_are_those_of_the_rows_after_each_step(self, scene: Scene) -> None:
        follower = Follower(scene)
        steps: list[Callable[[], object]] = [
            lambda: scene.add("one"),
            lambda: scene.plan(NewTask(title="a", name="a"), NewTask(title="b", name="b", depends_on=("a",))),
            lambda: scene.finish("A-001"),
            lambda: scene.take("A-002", lease=5),
            lambda: scene.pass_time(seconds=60),  # its lease is over, and nobody has written that
            lambda: scene.do(c.Pause, task="A-002"),
            lambda: scene.do(c.Resume, task="A-002"),
            lambda: scene.finish("A-002"),
            lambda: scene.bury("A-003"),
            lambda: scene.do(c.Retry, task="A-003"),
            lambda: scene.do(c.Cancel, task="A-003"),
            lambda: scene.do(c.Reset, task="A-001"),
            lambda: scene.add("draft", draft=True, track="B"),
        ]
        for number, step in enumerate(steps):
            step()
            follower.check()
            if number % 3 == 1:
                follower.follow()
                follower.check()
        assert follower.check()["created"] == 1

    def test_tasks_are_counted_once_and_then_kept(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        scene.add()
        follower = Follower(scene)
        follower.check()
        counted: list[str] = []

        def count(work: UnitOfWork, project: str) -> Counter[tuple[str, str]]:
            counted.append(project)
            return Counter()

        monkeypatch.setattr(task_counts, "_counted", count)
        scene.finish("A-001")
        follower.follow()
        scene.add("another")
        asked = read_query(follower.engine, q.Status(project=PROJECT))
        assert (asked["tasks"], counted) == ({"completed": 1, "ready": 1}, [])
        session = scene.last_claim("A-001").session
        view = read_query(follower.engine, q.ShowSession(project=PROJECT, session=session))
        progress = {"completed": 1, "in_progress": 0, "pending": 1}
        assert (view["track_progress"], counted) == ({"A": progress}, [])

    def test_an_event_heard_while_tasks_are_counted_is_added_once(self, scene: Scene) -> None:
        """The count is of a transaction that began before the event; it is kept after the event was heard."""
        follower = Follower(scene)
        scene.add()
        before = follower.counts.before(PROJECT)
        rows = scene.engine.read_settled((PROJECT,), lambda work: task_counts._counted(work, PROJECT))
        scene.add("meanwhile")
        follower.follow()
        rows["ready", "A"] -= 1  # the first task is behind the position of `before`
        follower.counts.keep(PROJECT, before.position, scene.now, rows)
        assert follower.check() == {"ready": 2}
        scene.add("later")
        follower.follow()  # moves the position past all of them
        assert follower.check() == {"ready": 3}

    def test_an_event_that_was_counted_is_not_added_when_it_is_heard(self, scene: Scene) -> None:
        """The position is ahead of what was heard for a moment: a count then has events that are heard after it."""
        follower = Follower(scene)
        scene.add()
        events = scene.engine.read(lambda tx: tx.events({}, after=follower.counts.position()), follows=True)
        follower.counts.position = lambda: events[-1].sequence
        follower.check()
        follower.counts.hear(events)
        assert follower.check() == {"ready": 1}

    def test_kept_counts_are_counted_again_after_a_while(self, scene: Scene) -> None:
        follower = Follower(scene)
        scene.add()
        follower.check()
        follower.counts.keep(PROJECT, follower.counts.position(), scene.now, Counter({("ready", "A"): 7}))
        assert read_query(follower.engine, q.Status(project=PROJECT))["tasks"]["ready"] > 1
        scene.pass_time(seconds=601)
        assert follower.check() == {"ready": 1}

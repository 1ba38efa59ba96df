"""Readers of the log that are not brokers: local hooks run at most once, notices reach people and are few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from tenure.core import commands as c
from tenure.core import notices
from tenure.core.notices import Summary
from tenure.core.records import Agent, Sink
from tenure.engine.duties.coordinator import LEASE
from tenure.engine.relay.hook_reader import HookReader
from tenure.engine.relay.notice_reader import STALE_EVERY, NoticeReader, Target
from tenure.engine.relay.reader import Reader
from tenure.sinks.port import SinkUnavailable
from tenure.testing.engine.coordinators import Office
from tenure.testing.engine.relays import Post
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, Scene
from tenure.testing.memory_sink import MemorySink

HOOKS = {"task.completed": [["tell"], ["count", "one"]], "task.dead_lettered": [["cry"]]}


class Runner:
    """Takes the place of the one that starts commands."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Sequence[str], dict[str, Any]]] = []
        self.on_start: Callable[[], None] = lambda: None

    def start(self, argv: Sequence[str], stdin: bytes) -> None:
        self.on_start()
        self.jobs.append((argv, msgspec.json.decode(stdin)))

    def close(self) -> None: ...


class Channel:
    def __init__(self) -> None:
        self.sent: list[Summary] = []
        self.fails = False

    def send(self, summary: Summary) -> None:
        if self.fails:
            raise SinkUnavailable("nobody listens")
        self.sent.append(summary)


class RemindedSink(MemorySink):
    rewinds = 0

    def rewound(self) -> None:
        self.rewinds += 1


def run(reader: Reader) -> None:
    for _ in range(20):
        if reader.step() != 0.0:
            return


class LeadingProcess:
    """A process that leads, with hooks and notices."""

    def __init__(self, office: Office, name: str, started: Runner, people: Channel, **target: Any) -> None:
        self.office, self.failures = office, list[str]()
        self.coordinator = office.another(name)
        self.coordinator.step()
        engine, led = self.coordinator.engine, self.coordinator.led
        self.hooks = HookReader(engine, HOOKS, started, led, failed=self.failures.append)  # type: ignore[arg-type]
        targets = {"team": Target(people, **target)}
        self.notices = NoticeReader(engine, targets, led, office.watches[name], failed=self.failures.append)

    def row(self, name: str) -> Sink:
        rows: list[Sink] = self.office.scene.stored_rows(Sink)
        return next(row for row in rows if row.id == name)

    def run(self) -> None:
        for _ in range(2):  # one that could not renew in time stands again
            self.coordinator.step()
        run(self.hooks)
        run(self.notices)


class HooksAndNotices(Stage):
    @pytest.fixture
    def office(self, scene: Scene) -> Office:
        return Office(scene)

    @pytest.fixture
    def started(self) -> Runner:
        return Runner()

    @pytest.fixture
    def people(self) -> Channel:
        return Channel()

    @pytest.fixture
    def leader(self, office: Office, started: Runner, people: Channel) -> LeadingProcess:
        leader = LeadingProcess(office, "one", started, people)
        leader.run()  # a new reader gets events from here on
        return leader

    # --- hooks ----------------------------------------------------------------------------------------------------

    def test_each_command_of_a_hook_runs_once_with_the_event(
        self, scene: Scene, leader: LeadingProcess, started: Runner
    ) -> None:
        key = scene.task(scene.add()).key
        scene.finish(key)
        leader.run()
        leader.run()
        assert [argv for argv, _ in started.jobs] == [["tell"], ["count", "one"]]
        assert {(body["kind"], body["payload"]["key"]) for _, body in started.jobs} == {("evt.task.completed", key)}

    def test_the_place_moves_before_a_hook_runs(self, scene: Scene, leader: LeadingProcess, started: Runner) -> None:
        places: list[int] = []
        started.on_start = lambda: places.append(leader.row("hooks").sequence)
        scene.finish(scene.add())
        end = scene.events(kind="task.completed")[-1].sequence
        leader.run()
        assert places
        assert all(place >= end for place in places)

    def test_a_process_that_dies_as_a_hook_begins_does_not_run_it_again(
        self, scene: Scene, office: Office, leader: LeadingProcess, started: Runner, people: Channel
    ) -> None:
        def die() -> None:
            raise MemoryError

        scene.finish(scene.add())
        started.on_start = die
        run(leader.hooks)
        started.on_start = lambda: None
        office.pass_time(LEASE * 1.1)
        LeadingProcess(office, "two", started, people).run()
        assert started.jobs == []

    def test_a_process_whose_term_is_over_runs_no_hook(
        self, scene: Scene, office: Office, leader: LeadingProcess, started: Runner, people: Channel
    ) -> None:
        scene.finish(scene.add())
        office.pass_by("one", LEASE * 1.1)
        other = LeadingProcess(office, "two", started, people)
        run(leader.hooks)
        assert started.jobs == []
        other.run()
        assert len(started.jobs) == 2

    def test_hooks_that_are_paused_run_later(self, scene: Scene, leader: LeadingProcess, started: Runner) -> None:
        scene.engine.do(c.PauseRelay(project="", sink="hooks"))
        scene.finish(scene.add())
        leader.run()
        assert started.jobs == []
        scene.engine.do(c.ResumeRelay(project="", sink="hooks"))
        leader.run()
        assert len(started.jobs) == 2

    # --- notices --------------------------------------------------------------------------------------------------

    def test_many_dead_letters_in_a_minute_make_two_messages(
        self, scene: Scene, leader: LeadingProcess, people: Channel
    ) -> None:
        for _ in range(24):
            scene.bury(scene.add(max_attempts=1))
            leader.run()
            leader.office.pass_time(2)
        leader.office.pass_time(60)
        leader.run()
        assert [(s.kind, s.count) for s in people.sent] == [(notices.DEAD_LETTER, 1), (notices.DEAD_LETTER, 23)]

    def test_a_new_leader_sends_what_waits_and_no_third_message(
        self, scene: Scene, office: Office, leader: LeadingProcess, people: Channel, started: Runner
    ) -> None:
        for _ in range(3):
            scene.bury(scene.add(max_attempts=1))
            leader.run()
        assert [s.count for s in people.sent] == [1]
        office.pass_time(LEASE * 1.1)
        other = LeadingProcess(office, "two", started, people)
        other.run()
        scene.bury(scene.add(max_attempts=1))
        other.run()
        assert [s.count for s in people.sent] == [1]
        office.pass_time(60)
        other.run()
        assert [s.count for s in people.sent] == [1, 3]
        end = scene.events(kind="task.dead_lettered")[-1].sequence
        assert other.row("notices").sequence >= end

    def test_a_channel_that_fails_gets_its_notices_later_and_says_so(
        self, scene: Scene, leader: LeadingProcess, people: Channel
    ) -> None:
        people.fails = True
        scene.bury(scene.add(max_attempts=1))
        leader.run()
        assert "nobody listens" in (leader.row("notices").error or "")
        assert leader.failures == ["notices: nobody listens"]
        people.fails = False
        leader.office.pass_time(61)
        leader.run()
        assert [s.count for s in people.sent] == [1]
        assert leader.row("notices").error is None

    def test_a_channel_gets_only_the_kinds_that_it_names(
        self, scene: Scene, office: Office, people: Channel, started: Runner
    ) -> None:
        leader = LeadingProcess(office, "one", started, people, kinds=frozenset({notices.AGENT_DIED}))
        leader.run()
        scene.bury(scene.add(max_attempts=1))
        leader.run()
        assert people.sent == []

    def test_people_hear_once_that_most_agents_are_stale(
        self, scene: Scene, leader: LeadingProcess, people: Channel
    ) -> None:
        for agent in ("ann", "bob"):
            scene.finish(scene.add(), agent=agent)
        leader.office.pass_time(max(row.stale_after for row in scene.stored_rows(Agent)) / 1e6 + 1)
        for _ in range(3):
            leader.office.pass_time(STALE_EVERY + 1)
            leader.run()
        assert [(s.kind, s.first[0].project) for s in people.sent] == [(notices.AGENTS_STALE, PROJECT)]

    # --- sinks that must know of a rewind -----------------------------------------------------------------------

    def test_a_sink_is_told_of_a_rewind_once_and_also_by_the_next_leader(self, scene: Scene) -> None:
        sink = RemindedSink()
        post = Post(scene, sink=sink)
        post.run()
        before = sink.rewinds
        scene.engine.do(c.RewindRelay(project="", sink="broker", to=0))
        post.run()
        post.run()
        assert sink.rewinds == before + 1
        scene.engine.do(c.RewindRelay(project="", sink="broker", to=0))
        scene.pass_time(seconds=LEASE * 1.1)  # its process dies
        Post(scene, "two", sink).run()
        assert sink.rewinds == before + 2

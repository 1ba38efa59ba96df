"""Coordinators: one leads, no tick is begun twice, and whoever was deposed writes nothing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core.errors import InvalidInput, NotFound, StoreUnavailable
from tenure.core.events import Event
from tenure.core.records import Cycles, Leader, Task, replace
from tenure.engine import Engine
from tenure.engine.duties.coordinator import GIVEN_UP, LEASE, RENEWED, Coordinator, Note
from tenure.engine.duties.election import DUTIES, SECOND, Duty, LeaderEngine, stand
from tenure.engine.duties.sweep import settle, tidy
from tenure.engine.reads.coordinator_status import logs, recover, status
from tenure.engine.runtime.effects import PAGE, Report
from tenure.engine.runtime.unit_of_work import Refused, UnitOfWork
from tenure.engine.verbs.lead import COORDINATOR
from tenure.stores.port import Transaction
from tenure.testing.engine.graphs import new
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import PROJECT, SECRETS, Dice, Scene

EVERY = 2 * SECOND
THREADS = 4


class Watch:
    """A monotonic clock that is moved by hand, in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Office:
    """Processes that could lead, on one store: each with an engine and a watch of its own."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.watches: dict[str, Watch] = {}

    def another(self, name: str, **settings: Any) -> Coordinator:
        watch = self.watches[name] = Watch()
        return Coordinator(Engine(self.scene.store, Dice(len(self.watches)), SECRETS), name, watch, **settings)

    def pass_time(self, seconds: float) -> None:
        """For everybody: the store's clock, and all watches."""
        self.scene.pass_time(seconds=seconds)
        for watch in self.watches.values():
            watch.now += seconds

    def pass_by(self, sleeper: str, seconds: float) -> None:
        """For everybody but one, which is stopped so long and does not know it."""
        self.pass_time(seconds)
        self.watches[sleeper].now -= seconds


def noted(engine: Engine, text: str) -> None:
    """A write of a duty: one event, which says in whose term it was written."""
    assert isinstance(engine, LeaderEngine)

    def decide(work: UnitOfWork) -> None:
        work.record("task.noted", project=PROJECT, message=text, details={"term": engine.term})

    engine.transact((PROJECT,), decide)


def noting(run: Callable[[Engine, str], None], every: int = EVERY) -> dict[str, Duty]:
    def report(engine: Engine, project: str) -> Report:
        run(engine, project)
        return Report()

    return {"noting": Duty(every, lambda engine, now: [PROJECT], report)}


def notes(scene: Scene) -> list[str]:
    return [event.message for event in scene.events(kind="task.noted")]


def held_to_their_terms(events: list[Event]) -> bool:
    """Whether every note was written in the term that was in force."""
    term = 0
    for event in events:
        if event.kind == "leader.elected":
            assert event.details["term"] == term + 1
            term += 1
        elif event.kind == "task.noted" and event.details["term"] != term:
            return False
    return True


class Coordinators(Stage):
    @pytest.fixture
    def office(self, scene: Scene) -> Office:
        return Office(scene)

    # --- how often -------------------------------------------------------------------------------------------------

    def test_a_duty_with_nothing_to_do_is_not_asked_again_for_each_write(self, office: Office) -> None:
        asked: list[str] = []

        def duty(name: str, *, on_events: bool = False) -> Duty:
            def find(engine: Engine, now: int) -> list[str]:
                asked.append(name)
                return []

            return Duty(60 * SECOND, find, lambda engine, project: Report(), on_events=on_events)

        one = office.another("one", duties={"rare": duty("rare"), "prompt": duty("prompt", on_events=True)})
        for _ in range(3):
            one.step()
            office.pass_time(0.5)
        assert asked == ["rare", "prompt", "prompt", "prompt"]
        office.pass_time(1.0)
        one.step()
        assert asked[4:] == ["rare", "prompt"]

    # --- who leads ------------------------------------------------------------------------------------------------

    def test_one_leads_and_the_others_wait_for_its_lease(self, office: Office) -> None:
        one, two = office.another("one"), office.another("two")
        one.step()
        patience = two.step()
        assert (one.term, two.term) == (1, None)
        assert LEASE <= patience < LEASE + 1

    def test_a_leader_renews_and_keeps_its_term(self, office: Office) -> None:
        one, two = office.another("one"), office.another("two")
        for _ in range(100):
            one.step()
            two.step()
            office.pass_time(LEASE * RENEWED)
        assert (one.term, two.term) == (1, None)
        assert len(office.scene.events(kind="leader.elected")) == 1

    def test_who_stands_by_writes_nothing(self, office: Office) -> None:
        one, two = office.another("one"), office.another("two")
        one.step()
        before = office.scene.tables()
        two.step()
        assert office.scene.tables() == before

    def test_when_a_leader_dies_another_leads_once_its_lease_is_over(self, office: Office) -> None:
        one, two = office.another("one"), office.another("two")
        one.step()
        office.pass_time(LEASE - 0.001)
        two.step()
        assert two.term is None
        office.pass_time(0.001)
        two.step()
        assert two.term == 2

    def test_one_that_steps_down_is_followed_at_once(self, office: Office) -> None:
        one, two = office.another("one"), office.another("two")
        one.step()
        one.stop()
        two.step()
        assert (one.term, two.term) == (None, 2)
        assert [e.details["term"] for e in office.scene.events(kind="leader.lost")] == [1]

    def test_one_that_comes_back_after_its_lease_leads_no_more(self, office: Office) -> None:
        one, two = office.another("one"), office.another("two")
        one.step()
        office.pass_by("one", LEASE)
        two.step()
        one.step()  # by its own watch no time has passed
        office.pass_time(LEASE * RENEWED + 3)
        one.step()
        assert (one.term, two.term) == (None, 2)
        assert [note.level for note in one.notes] == ["info", "warning"]

    # --- the fence ------------------------------------------------------------------------------------------------

    def test_a_leader_deposed_in_the_middle_of_a_duty_writes_nothing_more(self, office: Office) -> None:
        scene = office.scene

        def run(engine: Engine, project: str) -> None:
            noted(engine, "before")
            office.pass_by("one", LEASE)
            two.step()
            before.append(scene.tables())
            noted(engine, "after")

        before: list[Any] = []
        one, two = office.another("one", duties=noting(run)), office.another("two", duties={})
        one.step()
        assert two.term == 2
        assert notes(scene) == ["before"]
        assert scene.tables() == before[0]
        assert one.term is None
        assert "two leads with term 2" in one.notes[-1].message

    def test_a_leader_whose_lease_is_over_writes_nothing_though_nobody_else_leads(self, office: Office) -> None:
        def run(engine: Engine, project: str) -> None:
            office.pass_by("one", LEASE)
            noted(engine, "after")

        one = office.another("one", duties=noting(run))
        one.step()
        assert (one.term, notes(office.scene)) == (None, [])

    def test_a_deposed_leader_settles_nothing_on_its_way(self, office: Office) -> None:
        """More than a page of due rows is saved in transactions of their own, before what was asked."""
        scene = office.scene
        scene.plan(*(new(f"t{n}", not_before=scene.now + SECOND) for n in range(PAGE + 1)))
        assert stand(scene.engine, "one", LEASE, None, Cycles()).term == 1
        led = LeaderEngine(scene.engine, "one", 1, lambda: None)
        scene.pass_time(seconds=LEASE)
        before = scene.tables()
        for sweep in (settle, tidy):
            with pytest.raises(Refused) as refused:
                sweep(led, PROJECT)
            assert refused.value.outcome.outcome == "STALE_TERM"
        assert scene.tables() == before

    def test_a_namesake_of_an_earlier_term_is_refused(self, office: Office) -> None:
        scene = office.scene
        for term in (1, 2):
            assert stand(scene.engine, "one", LEASE, None, Cycles()).term == term
            scene.pass_time(seconds=LEASE)
        assert stand(scene.engine, "one", LEASE, None, Cycles()).term == 3
        with pytest.raises(Refused):
            noted(LeaderEngine(scene.engine, "one", 2, lambda: None), "late")
        noted(LeaderEngine(scene.engine, "one", 3, lambda: None), "in time")
        assert notes(scene) == ["in time"]

    def test_an_election_waits_for_the_write_that_a_leader_has_begun(self, office: Office) -> None:
        """Its term was checked when it ran; the lease is over before the commit."""
        scene = office.scene
        stand(scene.engine, "one", LEASE, None, Cycles())
        is_elected = threading.Event()

        def stand_too() -> None:
            stand(Engine(scene.store, Dice(9)), "two", LEASE, None, Cycles())
            is_elected.set()

        another = threading.Thread(target=stand_too)

        def decide(work: UnitOfWork) -> None:
            scene.pass_time(seconds=LEASE)
            another.start()
            assert not is_elected.wait(0.2)
            work.record("task.noted", project=PROJECT, details={"term": 1})

        LeaderEngine(scene.engine, "one", 1, lambda: None).transact((PROJECT,), decide)
        another.join()
        assert scene.events()[-1].kind == "leader.elected"
        assert held_to_their_terms(scene.events())

    def test_a_leader_that_cannot_renew_stops_by_itself_before_its_lease_is_over(self, office: Office) -> None:
        def run(engine: Engine, project: str) -> None:
            noted(engine, "before")
            office.pass_time(LEASE * GIVEN_UP)
            noted(engine, "after")

        one = office.another("one", duties=noting(run))
        one.step()
        assert notes(office.scene) == ["before"]
        assert one.term is None
        assert office.scene.row(Leader, COORDINATOR, "").until > office.scene.now  # in the store it still leads
        assert "could not renew" in one.notes[-1].message

    def test_a_long_duty_renews_on_its_way(self, office: Office) -> None:
        def run(engine: Engine, project: str) -> None:
            for n in range(20):
                noted(engine, str(n))
                office.pass_time(LEASE * 0.5)

        one = office.another("one", duties=noting(run))
        one.step()
        assert (one.term, len(notes(office.scene))) == (1, 20)

    # --- ticks ----------------------------------------------------------------------------------------------------

    def test_a_tick_is_begun_once_whoever_leads(self, office: Office) -> None:
        duties = noting(lambda engine, project: noted(engine, "x"))
        one, two = office.another("one", duties=duties), office.another("two", duties=duties)
        office.scene.clock.now -= office.scene.now % EVERY
        one.step()
        one.step()
        one.resign()
        two.step()  # leads now, in the same interval
        two.step()
        assert (two.term, notes(office.scene)) == (2, ["x"])
        office.pass_time(EVERY / SECOND)
        two.step()
        assert notes(office.scene) == ["x", "x"]

    def test_a_tick_that_was_cut_short_is_not_begun_again(self, office: Office) -> None:
        def run(engine: Engine, project: str) -> None:
            noted(engine, "x")
            raise RuntimeError("on purpose")

        one = office.another("one", duties=noting(run))
        one.step()
        one.step()
        assert (one.term, notes(office.scene)) == (1, ["x"])
        assert one.cycles.error == "noting of p: RuntimeError: on purpose"

    def test_without_anything_to_do_no_tick_is_written(self, office: Office) -> None:
        one = office.another("one", duties={name: DUTIES[name] for name in ("settle", "tidy")})
        one.step()
        before = office.scene.tables()
        for _ in range(5):
            office.pass_time(2)
            one.step()
        assert office.scene.tables() == before

    def test_a_clock_that_was_put_back_keeps_no_duty_waiting(self, office: Office) -> None:
        one = office.another("one", duties=noting(lambda engine, project: noted(engine, "x")))
        one.step()
        row = office.scene.row(Leader, COORDINATOR, "")
        office.scene.put(row, replace(row, duties_begun={"noting": office.scene.now + 3600 * SECOND}))
        office.pass_time(EVERY / SECOND)
        one.step()
        assert notes(office.scene) == ["x", "x"]

    def test_many_stand_at_once_and_no_tick_is_run_twice(self, office: Office) -> None:
        """In threads, through changes of leader: some step down, some sleep through their lease."""
        duties = noting(lambda engine, project: noted(engine, "x"))
        crowd = [office.another(f"c{n}", duties=duties) for n in range(THREADS)]
        for turn in range(15):
            threads = [threading.Thread(target=one.step) for one in crowd]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            # A sleeper that had nothing to write still believes that it leads; the highest term is the true one.
            leading = max((one for one in crowd if one.term is not None), key=lambda one: one.term or 0)
            if turn % 3 == 0:
                office.pass_time(EVERY / SECOND)
            elif turn % 3 == 1:
                leading.resign()
            else:
                office.pass_by(leading.instance, LEASE)
        events = office.scene.events()
        assert held_to_their_terms(events)
        assert len([event for event in events if event.kind == "leader.elected"]) == 10
        ran = Counter(event.time for event in events if event.kind == "task.noted")
        assert len(ran) == 10
        assert set(ran.values()) == {1}

    # --- the duties -----------------------------------------------------------------------------------------------

    def test_what_falls_due_is_told_though_nobody_asks(self, office: Office) -> None:
        scene = office.scene
        key = scene.add()
        scene.take(key, lease=60)
        one = office.another("one")
        for _ in range(14):
            one.step()
            office.pass_time(5)
        assert scene.log(key)[-1] == "task.lease_expired"
        assert one.cycles.count == 14

    def test_the_next_look_is_when_the_next_task_falls_due(self, office: Office) -> None:
        scene = office.scene
        one = office.another("one")
        assert one.step() == 2.0
        scene.add(not_before=scene.now + SECOND // 2)
        assert one.step() == 0.5
        office.pass_time(0.5)
        one.step()  # in the interval of the last tick, but for a later instant
        assert scene.events()[-1].kind == "task.ready"

    def test_agents_that_went_silent_are_told_of(self, office: Office) -> None:
        scene = office.scene
        scene.do(c.Register, agent="ann")
        one = office.another("one")
        for _ in range(20):
            one.step()
            office.pass_time(10)
        assert [event.agent for event in scene.events(kind="agent.stale")] == ["ann"]

    def test_rows_that_cannot_be_settled_are_told_of_and_do_not_make_it_spin(self, office: Office) -> None:
        scene = office.scene
        scene.broken = True
        key, fine = scene.add(), scene.add()
        for task in (key, fine):
            scene.take(task, lease=60)
        scene.put(scene.last_claim(key), None)
        one = office.another("one")
        office.pass_time(61)
        one.step()
        office.pass_time(2)
        assert one.step() == 2.0
        assert scene.task(fine).state == "ready"
        assert scene.stored(Task, scene.task(key).id).state == "claimed"
        assert "no Claim" in (one.cycles.error or "")

    # --- troubles -------------------------------------------------------------------------------------------------

    def test_a_store_that_is_away_is_tried_again_ever_more_slowly(
        self, office: Office, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def away(tenant: str, *, write: bool) -> AbstractContextManager[Transaction]:
            raise StoreUnavailable("gone")

        reported: list[Note] = []
        one = office.another("one", tell=reported.append)
        one.step()
        with monkeypatch.context() as patch:
            patch.setattr(office.scene.store, "begin", away)
            pauses = []
            for _ in range(8):
                pauses.append(one.step())
                office.pass_time(5)
            assert one.term is None  # it cannot know any more
        assert pauses == sorted(pauses)
        assert (pauses[0], pauses[-1]) == (1.0, 10.0)
        assert [note.message for note in reported[1:]] == ["gone"] * 8
        one.step()
        office.pass_time(LEASE)
        one.step()
        assert one.term == 2

    def test_a_thread_leads_until_it_is_stopped(self, office: Office) -> None:
        scene = office.scene
        begun = threading.Event()
        one = office.another("one", duties=noting(lambda engine, project: begun.set()))
        one.start()
        assert begun.wait(30)
        one.stop()
        assert one.term is None
        assert scene.events()[-1].kind == "leader.lost"

    # --- what is reported -----------------------------------------------------------------------------------------

    def test_who_does_not_lead_answers_the_same(self, office: Office) -> None:
        scene = office.scene
        scene.take(scene.add(), "ann", lease=600)
        scene.add()
        scene.do(c.Register, agent="bo")
        scene.next("mia", types=("none",), agent_type="human")  # a person's shell is neither healthy nor stale
        scene.pass_time(seconds=200)
        one, two = office.another("one"), office.another("two")
        for _ in range(3):
            one.step()
            two.step()
            office.pass_time(LEASE * RENEWED + 2)
        one.step()
        seen = status(two.engine, two)
        assert seen["here"] == {"instance": "two", "leads": False}
        expected = {
            "active": True, "instance": "one", "term": 1, "cycles": 3, "last_error": None, "projects": [PROJECT],
            "pending_tasks": 1, "running_tasks": 1, "healthy_agents": 1, "stale_agents": 1, "overdue_tasks": 0,
        }  # fmt: skip
        assert {name: seen[name] for name in expected} == expected
        assert seen["last_heartbeat_at"] == scene.now
        assert status(one.engine, one)["cycles"] == 4  # its own, up to now

    def test_with_no_leader_the_status_says_so(self, office: Office) -> None:
        seen = status(office.scene.engine)
        assert (seen["active"], seen["instance"], seen["term"], seen["here"]) == (False, None, 0, None)

    def test_one_projects_viewer_hears_of_no_other(self, office: Office) -> None:
        scene = office.scene
        scene.do(c.DefineProject, project="q")
        scene.add()
        seen = status(scene.engine, None, ("q",))
        assert (seen["projects"], seen["pending_tasks"]) == (["q"], 0)

    def test_the_log_has_what_time_brought_and_what_went_wrong(self, office: Office) -> None:
        scene = office.scene
        one = office.another("one", duties={"settle": DUTIES["settle"], **noting(_fail)})
        scene.take(scene.add(), lease=60)
        office.pass_time(61)
        one.step()
        lines = logs(scene.engine, one.notes)
        assert {"leader.elected", "task.lease_expired", "coordinator.note"} == {line["kind"] for line in lines}
        assert [line["level"] for line in logs(scene.engine, one.notes, level="error")] == ["error"]
        assert len(logs(scene.engine, one.notes, limit=1)) == 1
        assert logs(scene.engine, one.notes, since=scene.now + 1) == []
        with pytest.raises(InvalidInput, match="level"):
            logs(scene.engine, level="loud")

    def test_recover_settles_what_is_due_and_tells_it(self, office: Office) -> None:
        scene = office.scene
        scene.do(c.DefineProject, project="q")
        scene.take(scene.add(), lease=60)
        scene.pass_time(seconds=61)
        assert recover(scene.engine, "q") == {
            "settled": 0,
            "projects": [{"project": "q", "settled": 0, "events": {}, "failed": {}}],
        }
        (first, second) = recover(scene.engine)["projects"]
        assert first == {"project": PROJECT, "settled": 1, "events": {"task.lease_expired": 1}, "failed": {}}
        assert second["project"] == "q"
        with pytest.raises(NotFound):
            recover(scene.engine, "none")


def _fail(engine: Engine, project: str) -> None:
    raise RuntimeError("on purpose")

"""Schedules: one task a tick, at the tick, whoever leads and however often; none lost, none twice."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import NewTask, Template
from tenure.core.errors import InvalidInput, LimitReached, NotAllowed, NotFound, TooLarge
from tenure.core.records import Brief, Cycles, Dag, Schedule, Task, replace
from tenure.engine.duties.coordinator import LEASE
from tenure.engine.duties.election import DUTIES, LeaderEngine, stand
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.effects import Report
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import Refused
from tenure.engine.sources import schedules
from tenure.testing.engine.coordinators import Office
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, MEMBER, PROJECT, Dice, Scene

MINUTE = 60 * 1_000_000
TRIAGE = Template(tasks=(NewTask(title="Triage of {tick.date} {tick.time}"),))


def instant(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


def to(scene: Scene, text: str) -> None:
    """Move the clock to that time, UTC."""
    assert instant(text) >= scene.now
    scene.clock.now = instant(text)


def set_schedule(scene: Scene, name: str = "triage", cron: str = "* * * * *", **fields: Any) -> Any:
    outcome = scene.do(c.SetSchedule, **{"schedule": name, "cron": cron, "template": TRIAGE, **fields})
    assert outcome.ok, outcome
    return outcome.schedule


def row_of(scene: Scene, name: str = "triage") -> Schedule:
    found = scene.row(Schedule, name)
    assert isinstance(found, Schedule)
    return found


def fire(scene: Scene) -> None:
    schedules.fire(scene.engine, PROJECT)


def titles(scene: Scene) -> list[str]:
    tasks = scene.rows(Task, order="sequence")
    return [scene.row(Brief, task.id).title for task in tasks]


def ticks(scene: Scene) -> list[int]:
    """The ticks that made something, in the order of the log."""
    return [event.details["tick"] for event in scene.events(kind="schedule.fired")]


class Schedules(Stage):
    # --- ticks ----------------------------------------------------------------------------------------------------

    def test_a_tick_makes_its_task_and_the_next_one_is_known(self, scene: Scene) -> None:
        to(scene, "2026-03-02T05:59:30")
        made = set_schedule(scene, cron="30 6 * * mon-fri", zone="Europe/Berlin")  # 5:30 UTC is over for today
        assert made["next_at"] == instant("2026-03-03T05:30:00")
        fire(scene)
        assert titles(scene) == []
        to(scene, "2026-03-03T05:30:00")
        fire(scene)
        fire(scene)
        assert titles(scene) == ["Triage of 2026-03-03 06:30"]
        (task,) = scene.rows(Task)
        assert (task.created_by, task.idempotency_key) == ("cron:triage", f"cron:triage:{scene.now}")
        assert scene.row(Brief, task.id).metadata["schedule"]["tick"] == "2026-03-03T06:30:00+01:00"
        row = row_of(scene)
        assert (row.fired, row.last_at, row.last_made) == (1, scene.now, task.key)
        assert row.next_at == instant("2026-03-04T05:30:00")

    @pytest.mark.parametrize(
        ("zone", "cron", "start", "wanted"),
        [
            # skipped in spring: right after the gap
            ("Europe/Berlin", "30 2 * * *", "2026-03-28", ["03-28T01:30", "03-29T01:00", "03-30T00:30"]),
            ("America/New_York", "30 2 * * *", "2026-03-07", ["03-07T07:30", "03-08T07:00", "03-09T06:30"]),
            # there twice in autumn: the first time
            ("Europe/Berlin", "30 2 * * *", "2026-10-24", ["10-24T00:30", "10-25T00:30", "10-26T01:30"]),
            ("America/New_York", "30 1 * * *", "2026-10-31", ["10-31T05:30", "11-01T05:30", "11-02T06:30"]),
            # by real time: every hour that there is
            ("Europe/Berlin", "0 */12 * * *", "2026-03-28", ["03-28T11:00", "03-28T23:00", "03-29T10:00",
                                                             "03-29T22:00", "03-30T10:00", "03-30T22:00"]),
        ],
    )  # fmt: skip
    def test_clocks_that_change_lose_no_day_and_make_none_twice(
        self, scene: Scene, zone: str, cron: str, start: str, wanted: list[str]
    ) -> None:
        to(scene, f"{start}T00:00:00")
        set_schedule(scene, "daily", cron, zone=zone)
        set_schedule(scene, "hourly", "0 * * * *", zone=zone)
        office = Office(scene)
        leader = office.another("one", duties={"schedules": DUTIES["schedules"]})
        for _ in range(3 * 48):
            office.pass_time(1800)
            leader.step()  # its lease is over: it stands again
            leader.step()
        made: dict[str, list[int]] = {"daily": [], "hourly": []}
        for event in scene.events(kind="schedule.fired"):
            made[event.details["schedule"]].append(event.details["tick"])
        assert made["daily"] == [instant(f"2026-{time}:00") for time in wanted]
        assert made["hourly"] == [instant(f"{start}T00:00:00") + n * 60 * MINUTE for n in range(1, 73)]
        assert len(scene.rows(Task)) == len(wanted) + 72

    def test_it_fires_at_its_instant_and_not_with_the_next_round(self, scene: Scene) -> None:
        to(scene, "2026-03-02T05:59:58")
        set_schedule(scene, cron="0 * * * *")
        office = Office(scene)
        one = office.another("one")
        assert one.step() <= 2.0
        office.pass_time(1.5)
        assert one.step() == pytest.approx(0.5)
        office.pass_time(0.5)
        one.step()
        (event,) = scene.events(kind="schedule.fired")
        assert event.time == event.details["tick"] == instant("2026-03-02T06:00:00")

    @pytest.mark.parametrize(
        ("misfire", "made", "missed"), [("skip", ["09:00"], 1), ("once", ["09:00"], 1), ("all", None, 0)]
    )
    def test_what_nobody_was_there_for_goes_by_the_policy(
        self, scene: Scene, misfire: str, made: list[str] | None, missed: int
    ) -> None:
        to(scene, "2026-03-02T05:30:00")
        set_schedule(scene, cron="0 * * * *", misfire=misfire)
        to(scene, "2026-03-02T09:00:30")
        fire(scene)
        wanted = ["06:00", "07:00", "08:00", "09:00"] if made is None else made
        assert titles(scene) == [f"Triage of 2026-03-02 {time}" for time in wanted]
        assert (row_of(scene).missed, len(scene.events(kind="schedule.missed"))) == (missed, missed)

    def test_skipped_ticks_leave_nothing_but_the_word_of_it(self, scene: Scene) -> None:
        to(scene, "2026-03-02T05:30:00")
        set_schedule(scene, cron="0 * * * *", misfire="skip")
        to(scene, "2026-03-02T09:30:00")
        fire(scene)
        assert (titles(scene), row_of(scene).next_at) == ([], instant("2026-03-02T10:00:00"))
        assert [event.level for event in scene.events(kind="schedule.missed")] == ["warning"]

    def test_many_ticks_are_made_up_for_in_several_transactions(self, scene: Scene) -> None:
        to(scene, "2026-03-02T00:00:00")
        many = Template(title="Check", tasks=tuple(NewTask(title=f"part {n}") for n in range(50)))
        set_schedule(scene, cron="* * * * *", misfire="all", template=many)
        to(scene, "2026-03-02T00:10:00")
        fire(scene)
        assert ticks(scene) == [instant("2026-03-02T00:00:00") + n * MINUTE for n in range(1, 11)]
        assert Counter(task.dag for task in scene.rows(Task)) == {dag.id: 50 for dag in scene.rows(Dag)}
        assert {dag.created_by for dag in scene.rows(Dag)} == {"cron:triage"}

    # --- leaders --------------------------------------------------------------------------------------------------

    def test_a_leader_deposed_before_its_tick_makes_nothing(self, scene: Scene) -> None:
        set_schedule(scene)
        assert stand(scene.engine, "one", LEASE, None, Cycles()).term == 1
        led = LeaderEngine(scene.engine, "one", 1, lambda: None)
        scene.pass_time(seconds=LEASE + 60)
        assert stand(scene.engine, "two", LEASE, None, Cycles()).term == 2
        before = scene.tables()
        with pytest.raises(Refused, match="STALE_TERM"):
            schedules.fire(led, PROJECT)
        assert scene.tables() == before

    def test_leaders_that_die_in_the_middle_of_ticks_leave_one_task_for_each(self, scene: Scene) -> None:
        """Every third turn breaks off after the tick was begun, or sleeps through its own end."""
        office = Office(scene)
        set_schedule(scene, misfire="all")
        turn = 0

        def run(engine: Engine, project: str) -> Report:
            nonlocal turn
            turn += 1
            if turn % 3 == 0:
                raise RuntimeError("dies here")
            if turn % 5 == 0:
                office.pass_by(name, LEASE + 1)
                others[turn % 2].step()
            return schedules.fire(engine, project)

        duties = {"schedules": DUTIES["schedules"]._replace(run=run)}
        others = [office.another("three", duties=DUTIES), office.another("four", duties=DUTIES)]
        first = scene.now // MINUTE + 1
        for n in range(60):
            name = f"one-{n}"
            office.another(name, duties=duties).step()
            office.pass_time(LEASE)
            others[n % 2].step()
        made = [task.idempotency_key for task in scene.rows(Task)]
        assert len(made) == len(set(made)) == len(ticks(scene))
        last = row_of(scene).next_at
        assert last is not None
        assert sorted(ticks(scene)) == [n * MINUTE for n in range(first, last // MINUTE)]

    def test_two_engines_that_both_believe_to_lead_make_one_task_a_tick(self, scene: Scene) -> None:
        """Without a term: the key and the row alone."""
        set_schedule(scene)
        other = Engine(scene.store, Dice(7))
        for _ in range(20):
            scene.pass_time(seconds=60)
            fire(scene)
            schedules.fire(other, PROJECT)
        assert len(scene.rows(Task)) == len(ticks(scene)) == 20

    def test_a_row_that_was_not_moved_makes_no_second_task(self, scene: Scene) -> None:
        """As if all else had failed: the tick's key is the last guard."""
        set_schedule(scene)
        scene.pass_time(seconds=60)
        due = row_of(scene)
        fire(scene)
        scene.put(row_of(scene), due)
        scene.broken = True  # the log knows better
        fire(scene)
        assert len(scene.rows(Task)) == 1
        assert [event.details.get("again") for event in scene.events(kind="schedule.fired")] == [None, True]

    # --- troubles -------------------------------------------------------------------------------------------------

    def test_a_tick_that_cannot_make_its_task_is_told_and_the_next_one_comes(self, scene: Scene) -> None:
        scene.do(c.DefineTrack, code="Q", name="Quality")
        set_schedule(scene, template=Template(tasks=(NewTask(title="x", track="Q"),)))
        set_schedule(scene, "other")
        scene.pass_time(seconds=60)
        track = scene.stored(c_track(), "Q")
        scene.put(track, None)
        fire(scene)
        assert len(titles(scene)) == 1  # the other's
        row = row_of(scene)
        assert (row.failed, row.fired) == (1, 0)
        assert "track 'Q' is not defined" in (row.last_error or "")
        scene.put(None, track)
        scene.pass_time(seconds=60)
        fire(scene)
        assert (row_of(scene).fired, row_of(scene).last_error) == (1, None)

    def test_one_that_cannot_be_reckoned_is_paused_and_keeps_nobody_waiting(self, scene: Scene) -> None:
        set_schedule(scene)
        set_schedule(scene, "other")
        scene.put(scene.stored(Schedule, "triage"), replace(row_of(scene), zone="Mars/Olympus"))
        scene.broken = True
        scene.pass_time(seconds=60)
        fire(scene)
        assert len(titles(scene)) == 1
        row = row_of(scene)
        assert (row.enabled, row.next_at) == (False, None)
        assert "Mars/Olympus" in (row.reason or "")

    # --- verbs ----------------------------------------------------------------------------------------------------

    def test_paused_it_makes_nothing_and_resumed_it_makes_up_for_nothing(self, scene: Scene) -> None:
        set_schedule(scene, misfire="all")
        assert scene.do(c.PauseSchedule, schedule="triage", reason="holidays").outcome == "UPDATED"
        assert scene.do(c.PauseSchedule, schedule="triage").outcome == "UNCHANGED"
        scene.pass_time(hours=1)
        fire(scene)
        assert titles(scene) == []
        assert scene.do(c.ResumeSchedule, schedule="triage").outcome == "UPDATED"
        assert scene.do(c.ResumeSchedule, schedule="triage").outcome == "UNCHANGED"
        fire(scene)
        assert titles(scene) == []
        scene.pass_time(seconds=60)
        fire(scene)
        assert len(titles(scene)) == 1

    def test_set_again_it_changes_and_a_new_time_counts_from_now(self, scene: Scene) -> None:
        set_schedule(scene)
        before = row_of(scene)
        assert scene.do(c.SetSchedule, schedule="triage", cron="* * * * *", template=TRIAGE).outcome == "UNCHANGED"
        other = Template(tasks=(NewTask(title="other"),))
        scene.pass_time(seconds=10)
        assert scene.do(c.SetSchedule, schedule="triage", cron="* * * * *", template=other).outcome == "UPDATED"
        assert row_of(scene).next_at == before.next_at
        set_schedule(scene, cron="0 0 1 1 *")
        assert (row_of(scene).next_at or 0) > scene.now + 24 * 60 * MINUTE
        assert row_of(scene).created_at == before.created_at

    def test_run_now_makes_its_tasks_beside_the_ticks_and_can_be_undone(self, scene: Scene) -> None:
        set_schedule(scene)
        before = row_of(scene).next_at
        outcome = scene.do(c.RunSchedule, schedule="triage", request_id="r1")
        again = scene.do(c.RunSchedule, schedule="triage", request_id="r1")
        assert (outcome.outcome, again.again, len(scene.rows(Task))) == ("CREATED", True, 1)
        assert row_of(scene).next_at == before
        assert outcome.tasks is not None
        scene.do(c.Undo, command_id=outcome.command_id)
        assert scene.state(str(outcome.tasks[0]["key"])) == "cancelled"

    def test_removed_it_is_gone_and_what_it_made_stays(self, scene: Scene) -> None:
        set_schedule(scene)
        scene.pass_time(seconds=60)
        fire(scene)
        assert scene.do(c.RemoveSchedule, schedule="triage").outcome == "UPDATED"
        scene.pass_time(hours=1)
        fire(scene)
        assert len(titles(scene)) == 1
        with pytest.raises(NotFound):
            scene.do(c.ResumeSchedule, schedule="triage")

    def test_a_deadline_counts_from_the_tick(self, scene: Scene) -> None:
        set_schedule(scene, template=Template(tasks=(NewTask(title="x"),), deadline_in=3600))
        scene.pass_time(seconds=90)
        fire(scene)
        (task,) = scene.rows(Task)
        assert task.deadline == ticks(scene)[0] + 60 * MINUTE

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"cron": "* * * *"}, "must have five fields"),
            ({"cron": "61 * * * *"}, "61"),
            ({"cron": "0 0 30 2 *"}, "30 2"),
            ({"zone": "Europe/Nowhere"}, "unknown"),
            ({"zone": "../etc/passwd"}, "unknown"),
            ({"misfire": "never"}, "misfire"),
            ({"schedule": "a:b"}, "':'"),
            ({"schedule": "x" * 65}, "64"),
            ({"template": Template(tasks=())}, "no tasks"),
            ({"template": Template(tasks=(NewTask(title="x", key="A-001-x"),))}, "key"),
            ({"template": Template(tasks=(NewTask(title="x", idempotency_key="k"),))}, "idempotency_key"),
            ({"template": Template(tasks=(NewTask(title="x", deadline=1),))}, "deadline_in"),
            ({"template": Template(tasks=(NewTask(title="x", track="Q"),))}, "'Q'"),
            ({"template": Template(tasks=(NewTask(title="x", depends_on=("A-999",)),))}, "A-999"),
            ({"template": Template(tasks=(NewTask(title=" "),))}, "title"),
        ],
    )
    def test_what_is_no_schedule_is_refused_and_leaves_nothing(
        self, scene: Scene, fields: dict[str, Any], message: str
    ) -> None:
        before = scene.tables()
        with pytest.raises(InvalidInput) as refused:
            scene.do(c.SetSchedule, **{"schedule": "s", "cron": "* * * * *", "template": TRIAGE, **fields})
        assert message in f"{refused.value.message} {refused.value.hint}"
        assert scene.tables() == before

    def test_sizes_and_counts_are_bounded(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        for template in (
            Template(tasks=tuple(NewTask(title="x") for _ in range(101))),
            Template(tasks=tuple(NewTask(title="x", description="y" * 9000) for _ in range(9))),
        ):
            with pytest.raises(TooLarge):
                scene.do(c.SetSchedule, schedule="s", cron="* * * * *", template=template)
        monkeypatch.setattr(schedules, "MOST", 1)
        set_schedule(scene)
        with pytest.raises(LimitReached):
            set_schedule(scene, "other")

    def test_schedules_are_for_admins(self, scene: Scene) -> None:
        for by in (AGENT, MEMBER):
            with pytest.raises(NotAllowed):
                scene.do(c.SetSchedule, by=by, schedule="s", cron="* * * * *", template=TRIAGE)
        set_schedule(scene)
        for kind in (c.PauseSchedule, c.ResumeSchedule, c.RemoveSchedule, c.RunSchedule):
            with pytest.raises(NotAllowed):
                scene.do(kind, by=MEMBER, schedule="triage")

    # --- looks ----------------------------------------------------------------------------------------------------

    def test_a_look_shows_the_next_ticks_in_its_zone(self, scene: Scene) -> None:
        to(scene, "2026-03-28T12:00:00")
        set_schedule(scene, cron="30 2 * * *", zone="Europe/Berlin")
        seen = read_query(scene.engine, q.ShowSchedule(project=PROJECT, schedule="triage", ticks=2), AGENT)
        assert [tick["local"] for tick in seen["ticks"]] == ["2026-03-29 03:00 CEST", "2026-03-30 02:30 CEST"]
        assert seen["template"]["tasks"][0]["title"] == TRIAGE.tasks[0].title
        (line,) = read_query(scene.engine, q.Schedules(project=PROJECT))
        assert (line["name"], line["next_at"]) == ("triage", seen["ticks"][0]["at"])
        with pytest.raises(NotFound, match="did you mean triage"):
            read_query(scene.engine, q.ShowSchedule(project=PROJECT, schedule="triag"))

    def test_a_next_tick_that_the_rule_does_not_say_is_found(self, scene: Scene) -> None:
        set_schedule(scene)
        row = row_of(scene)
        scene.broken = True
        scene.put(row, replace(row, next_at=(row.next_at or 0) + 1))
        assert any("says" in finding for finding in scene.engine.verify(with_replay=False))


def c_track() -> Any:
    from tenure.core.records import Track

    return Track

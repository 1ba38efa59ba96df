"""The track router: who may work on a track, until when, and what others read about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands import Principal
from tenure.core.records import Track
from tenure.engine.reads.query_table import read_query
from tenure.testing.engine.fleets import Port
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import AGENT, PROJECT, Scene, code_of

MINUTE = 60_000_000


def routed(scene: Scene, **fields: Any) -> None:
    assert scene.do(c.DefineProject, router=True, **fields).outcome == "UPDATED"


def assigned(scene: Scene, code: str = "B") -> list[str]:
    (track,) = [one for one in read_query(scene.engine, q.Tracks(project=PROJECT)) if one["code"] == code]
    return [one["agent"] for one in track["assigned"]]


# How the last claim of an agent on a track may end.
ENDS: dict[str, Callable[[Scene, str, str], object]] = {
    "submit": lambda scene, key, receipt: scene.submit(receipt),
    "fail": lambda scene, key, receipt: scene.fail(receipt),
    "release": lambda scene, key, receipt: scene.do(c.Release, receipt=receipt),
    "recover": lambda scene, key, receipt: scene.do(c.Recover, task=key),
    "cancel": lambda scene, key, receipt: scene.do(c.Cancel, task=key),
    "pause": lambda scene, key, receipt: scene.do(c.Pause, task=key),
}


class Tracks(Stage):
    def test_without_the_router_any_agents_share_a_track(self, scene: Scene) -> None:
        for agent in ("ann", "ben"):
            scene.take(scene.add(track="B"), agent)
        assert assigned(scene) == []

    def test_a_track_belongs_to_the_first_agent_that_claims_there(self, scene: Scene) -> None:
        routed(scene)
        first, second, other = scene.add(track="B"), scene.add(track="B"), scene.add(track="C")
        scene.take(first, "ann")
        denied = scene.claim(second, "ben")
        assert (denied.outcome, denied.holder, denied.state) == ("DENIED_TRACK", "ann", "ready")
        assert "track B is assigned to ann" in denied.message
        assert scene.claim(second, "ann").outcome == "GRANTED"
        assert scene.claim(other, "ben").outcome == "GRANTED"
        assert (assigned(scene), assigned(scene, "C")) == (["ann"], ["ben"])
        (event,) = [e for e in scene.events(kind="track.assigned") if e.details["track"] == "B"]
        assert (event.agent, event.details["agent"]) == (None, "ann")

    @pytest.mark.parametrize("agents", [1, 2, 3])
    def test_a_track_takes_as_many_agents_as_it_allows(self, scene: Scene, agents: int) -> None:
        routed(scene)
        scene.do(c.DefineTrack, code="B", max_agents=agents)
        names = [f"agent{n}" for n in range(4)]
        answers = [scene.claim(scene.add(track="B"), name).outcome for name in names]
        assert answers == ["GRANTED"] * agents + ["DENIED_TRACK"] * (4 - agents)
        assert assigned(scene) == names[:agents]

    def test_the_next_task_is_one_of_a_track_that_is_free(self, scene: Scene) -> None:
        routed(scene)
        scene.take(scene.add(track="B"), "ann")
        closed, free = scene.add(track="B", priority="high"), scene.add(track="C", priority="low")
        assert scene.next_keys(2, "ben") == [free]
        nothing = scene.next("ben")
        assert (nothing.outcome, (nothing.counts or {})["assigned_to_others"]) == ("NO_TASK", 1)
        assert scene.next_keys(1, "ann") == [closed]

    def test_nothing_is_counted_that_the_claimant_did_not_ask_for(self, scene: Scene) -> None:
        routed(scene)
        scene.take(scene.add(track="B"), "ann")
        scene.add(track="B")
        assert "assigned_to_others" not in (scene.next("ben", tracks=("C",)).counts or {})

    @pytest.mark.parametrize("ending", ENDS)
    def test_it_stays_assigned_for_ten_minutes_after_the_last_claim(self, scene: Scene, ending: str) -> None:
        routed(scene)
        key, other = scene.add(track="B"), scene.add(track="B")
        receipt = scene.take(key, "ann")
        scene.pass_time(minutes=4)
        ENDS[ending](scene, key, receipt)
        scene.pass_time(minutes=10)
        scene.clock.advance(-1)
        denied = scene.claim(other, "ben")
        assert (denied.outcome, denied.retry_at) == ("DENIED_TRACK", scene.now + 1)
        assert scene.next("ben").retry_at == scene.now + 1
        scene.clock.advance(1)
        assert assigned(scene) == []
        assert scene.claim(other, "ben").outcome == "GRANTED"
        assert assigned(scene) == ["ben"]

    @pytest.mark.parametrize("swept", [False, True])
    def test_the_ten_minutes_count_from_the_end_of_a_lease_whoever_looked(self, scene: Scene, swept: bool) -> None:
        routed(scene)
        key, other = scene.add(track="B"), scene.add(track="B")
        scene.take(key, "ann", lease=60)
        scene.pass_time(minutes=5)
        if swept:
            scene.engine.sweep()
        scene.pass_time(minutes=6)
        scene.clock.advance(-1)
        assert scene.claim(other, "ben").outcome == "DENIED_TRACK"
        scene.clock.advance(1)
        assert scene.claim(other, "ben").outcome == "GRANTED"

    def test_another_claim_there_ends_the_idle_time(self, scene: Scene) -> None:
        routed(scene)
        one, two, three = (scene.add(track="B") for _ in range(3))
        scene.submit(scene.take(one, "ann"))
        scene.pass_time(minutes=9)
        receipt = scene.take(two, "ann", lease=7200)
        scene.pass_time(minutes=60)
        assert scene.claim(three, "ben").outcome == "DENIED_TRACK"
        scene.submit(receipt)
        scene.pass_time(minutes=9)
        assert scene.claim(three, "ben").outcome == "DENIED_TRACK"
        assert len(scene.events(kind="track.assigned")) == 1

    def test_an_agent_with_two_tasks_is_idle_after_both(self, scene: Scene) -> None:
        routed(scene)
        one, two, three = (scene.add(track="B") for _ in range(3))
        first, _ = scene.take(one, "ann"), scene.take(two, "ann", lease=7200)
        scene.submit(first)
        scene.pass_time(minutes=30)
        assert scene.claim(three, "ben").outcome == "DENIED_TRACK"

    def test_the_track_of_an_agent_that_leaves_is_free_at_once(self, scene: Scene) -> None:
        routed(scene)
        key = scene.add(track="B")
        scene.take(key, "ann")
        scene.do(c.Leave, session="s-ann")
        assert assigned(scene) == []
        assert scene.claim(key, "ben").outcome == "GRANTED"
        scene.do(c.Register, agent="ann", session="s-ann")  # back: it does not have the track again
        assert assigned(scene) == ["ben"]
        assert [e.details["agent"] for e in scene.events(kind="track.released")] == ["ann"]

    def test_the_track_of_a_terminated_agent_is_free(self, scene: Scene) -> None:
        routed(scene)
        key = scene.add(track="B")
        scene.take(key, "ann")
        scene.do(c.Terminate, agent="ann", graceful=False)
        assert scene.claim(key, "ben").outcome == "GRANTED"

    def test_the_track_of_an_agent_that_died_is_free(self, scene: Scene) -> None:
        routed(scene)
        process = c.Process(host="h", boot="b", pid=7, start=1)
        key = scene.add(track="B")
        scene.take(key, "ann", process=process)
        scene.do(c.Gone, processes=(process,))
        assert scene.claim(key, "ben").outcome == "GRANTED"

    def test_a_pool_starts_one_agent_for_a_track(self, scene: Scene) -> None:
        routed(scene)
        port = Port(scene)
        port.set(size=3)
        for track in ("B", "B", "C"):
            scene.add(track=track)
        port.step()
        assert sorted(spawn.task_key[0] for spawn in port.spawns()) == ["B", "C"]
        assert (len(assigned(scene, "B")), len(assigned(scene, "C"))) == (1, 1)

    # --- by people ------------------------------------------------------------------------------------------------

    def test_a_person_assigns_a_track_until_it_is_released(self, scene: Scene) -> None:
        routed(scene)
        key = scene.add(track="B")
        assert scene.do(c.AssignTrack, code="B", agent="ann").outcome == "UPDATED"
        scene.pass_time(hours=5)
        assert scene.claim(key, "ben").outcome == "DENIED_TRACK"
        assert scene.do(c.AssignTrack, code="B", agent="ann").outcome == "UNCHANGED"
        refused = scene.do(c.AssignTrack, code="B", agent="ben")
        assert (refused.outcome, refused.holder) == ("DENIED_TRACK", "ann")
        released = scene.do(c.ReleaseTrack, code="B")
        assert (released.outcome, released.changed) == ("UPDATED", ("ann",))
        assert scene.do(c.ReleaseTrack, code="B").outcome == "UNCHANGED"
        assert scene.claim(key, "ben").outcome == "GRANTED"

    def test_one_of_several_agents_is_released(self, scene: Scene) -> None:
        routed(scene)
        scene.do(c.DefineTrack, code="B", max_agents=2)
        for agent in ("ann", "ben"):
            scene.take(scene.add(track="B"), agent)
        assert scene.do(c.ReleaseTrack, code="B", agent="ann").changed == ("ann",)
        assert assigned(scene) == ["ben"]

    def test_an_offer_needs_the_track_and_takes_it(self, scene: Scene) -> None:
        routed(scene)
        scene.do(c.Register, agent="ben")
        scene.take(scene.add(track="B"), "ann")
        key, other = scene.add(track="B"), scene.add(track="C")
        refused = scene.do(c.Assign, task=key, agent="ben")
        assert (refused.outcome, refused.holder) == ("DENIED_TRACK", "ann")
        assert scene.task(key).offer_to is None
        assert scene.do(c.Assign, task=other, agent="ben").outcome == "UPDATED"
        assert scene.claim(scene.add(track="C"), "ann").outcome == "DENIED_TRACK"
        assert scene.claim(other, "ben").outcome == "GRANTED"

    def test_without_the_router_nothing_is_assigned(self, scene: Scene) -> None:
        for command in (c.AssignTrack, c.ReleaseTrack):
            answer = scene.try_to(command, code="B", agent="ann")
            assert code_of(answer) == "INVALID_INPUT"

    def test_an_unknown_track_and_a_wrong_number_are_refused(self, scene: Scene) -> None:
        routed(scene)
        assert code_of(scene.try_to(c.AssignTrack, code="Q", agent="ann")) == "NOT_FOUND"
        assert code_of(scene.try_to(c.DefineTrack, code="Q", max_agents=2)) == "INVALID_INPUT"
        for number in (0, 1001):
            assert code_of(scene.try_to(c.DefineTrack, code="B", max_agents=number)) == "INVALID_INPUT"

    def test_a_track_keeps_its_name_where_none_is_given(self, scene: Scene) -> None:
        scene.do(c.DefineTrack, code="B", name="Database", purpose="rows")
        scene.do(c.DefineTrack, code="B", max_agents=3)
        track: Track = scene.row(Track, "B")
        assert (track.name, track.purpose, track.max_agents) == ("Database", "rows", 3)

    def test_agents_do_not_assign_tracks(self, scene: Scene) -> None:
        routed(scene)
        for command in (c.AssignTrack, c.ReleaseTrack):
            assert code_of(scene.try_to(command, code="B", agent="ann", by=AGENT)) == "NOT_ALLOWED"

    # --- on and off -----------------------------------------------------------------------------------------------

    def test_turned_on_the_router_assigns_tracks_to_the_holders_of_now(self, scene: Scene) -> None:
        key, other = scene.add(track="B"), scene.add(track="B")
        receipt = scene.take(key, "ann")
        routed(scene)
        assert assigned(scene) == ["ann"]
        assert scene.claim(other, "ben").outcome == "DENIED_TRACK"
        scene.submit(receipt)
        scene.pass_time(minutes=10)
        assert scene.claim(other, "ben").outcome == "GRANTED"

    def test_turned_off_the_router_forgets_its_assignments(self, scene: Scene) -> None:
        routed(scene)
        key, other = scene.add(track="B"), scene.add(track="B")
        receipt = scene.take(key, "ann")
        scene.do(c.DefineProject, router=False)
        scene.submit(receipt)
        assert scene.claim(other, "ben").outcome == "GRANTED"
        routed(scene)
        assert assigned(scene) == ["ben"]

    # --- what people see ------------------------------------------------------------------------------------------

    def test_assignments_are_in_status_in_the_sessions_memory_and_in_why(self, scene: Scene) -> None:
        routed(scene)
        scene.take(scene.add(track="B"), "ann")
        waiting = scene.add(track="B")
        scene.do(c.Register, agent="ben", session="s-ben")
        status = read_query(scene.engine, q.Status(project=PROJECT))
        assert status["tracks"]["B"]["assigned"] == ["ann"]
        memory = read_query(scene.engine, q.ShowSession(project=PROJECT, session="s-ann"))
        assert list(memory["track_assignments"]) == ["B"]
        why = read_query(scene.engine, q.Why(project=PROJECT, task=waiting))
        assert "track B is assigned to ann" in why["reasons"]
        could = {one["agent"]: one["why_not"] for one in why["agents"]}
        assert could == {"ann": [], "ben": ["is not assigned to track B; ann is"]}

    def test_agents_that_race_for_a_track_leave_it_to_one(self, scene: Scene) -> None:
        routed(scene)
        keys = [scene.add(track="B") for _ in range(4)]
        batch = [
            c.ClaimTask(project=PROJECT, task=key, agent=f"agent{n}", session=f"s{n}") for n, key in enumerate(keys)
        ]
        answers = scene.run(*batch, by=Principal())
        assert sorted(code_of(answer) for answer in answers) == ["DENIED_TRACK"] * 3 + ["GRANTED"]

    def test_a_batch_of_next_claims_leaves_a_track_to_one(self, scene: Scene) -> None:
        routed(scene)
        for _ in range(4):
            scene.add(track="B")
        batch = [c.ClaimNext(project=PROJECT, agent=f"agent{n}", session=f"s{n}") for n in range(4)]
        answers = scene.run(*batch, by=Principal())
        assert [code_of(answer) for answer in answers] == ["GRANTED", "NO_TASK", "NO_TASK", "NO_TASK"]

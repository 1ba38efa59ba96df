"""Answers of spawners that no leader saved: the next one finds the process by its spawn, or that there is none."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future

import pytest

from tenure.core import commands as c
from tenure.core import limits
from tenure.core.records import Spawn
from tenure.engine.duties.coordinator import LEASE
from tenure.spawners.port import Spawned
from tenure.testing.engine.fleets import Port
from tenure.testing.engine.stage import Stage
from tenure.testing.factories import Scene

OFFER = limits.SPAWN_OFFER // 1_000_000
ABSENT = limits.SPAWN_ABSENT // 1_000_000


class UnsavedSpawns(Stage):
    @pytest.fixture
    def port(self, scene: Scene) -> Port:
        return Port(scene)

    def unsaved(self, scene: Scene, port: Port) -> Spawn:
        """The spawn of a leader that was killed before it saved the answer; the next one is in office."""
        port.set(size=1)
        scene.add()
        port.calls.hangs = True
        port.step()
        port.fleet = port.another_fleet(port.coordinator)
        (spawn,) = port.spawns()
        assert spawn.handle is None
        return spawn

    def taken_over(self, scene: Scene, port: Port) -> Spawn:
        """The spawn of an earlier leader, whose process holds a task; the next leader has another task to start."""
        port.set(size=2)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        port.receipt(spawn)
        scene.add()
        port.fleet = port.another_fleet(port.coordinator)
        port.calls.polling = Future()
        port.pass_time(3)
        return spawn

    def test_a_new_leader_hears_what_runs_before_it_starts_more(self, scene: Scene, port: Port) -> None:
        spawn = self.taken_over(scene, port)
        port.step()
        assert len(port.calls.asked) == 1  # by the earlier leader
        assert port.calls.polling is not None
        port.calls.polling.set_result({str(spawn.handle): "ended"})
        port.step(1)
        assert port.spawns("ended") == [port.spawns()[0]]
        assert len(port.calls.asked) == 3  # both tasks

    def test_a_new_leader_does_not_wait_long_for_a_spawner_that_hangs(self, scene: Scene, port: Port) -> None:
        self.taken_over(scene, port)
        port.step()
        port.pass_time(2)
        port.step()
        assert len(port.calls.asked) == 2

    def test_a_process_whose_handle_was_not_saved_is_found(self, scene: Scene, port: Port) -> None:
        spawn = self.unsaved(scene, port)
        port.calls.processes[spawn.id] = Spawned(handle="h", session="there")
        port.receipt(spawn)
        port.pass_time(2)
        port.step()
        assert port.calls.sought == []  # an answer may be about to be saved
        port.pass_time(1)
        port.step()
        assert port.calls.sought == [[spawn.id]]
        (found,) = port.spawns("running")
        assert (found.handle, found.remote_session) == ("h", "there")
        port.calls.states["h"] = "ended"
        port.pass_time(3)
        port.step()
        assert port.spawns()[0].why == "its process has ended"
        assert "task.process_gone" in scene.log(spawn.task_key)

    def test_a_found_process_of_a_spawn_that_is_over_is_ended(self, scene: Scene, port: Port) -> None:
        spawn = self.unsaved(scene, port)
        port.calls.searching = Future()
        port.pass_time(4)
        port.step()
        port.pass_time(OFFER)
        port.step()
        assert port.spawns()[0].state == "lost"
        port.calls.searching.set_result({spawn.id: Spawned(handle="late")})
        port.step()
        assert (port.calls.ended, port.spawns()[0].handle) == ([("late", False)], None)

    def test_a_spawn_without_a_process_ends_with_its_claims(self, scene: Scene, port: Port) -> None:
        spawn = self.unsaved(scene, port)
        receipt = port.receipt(spawn)
        scene.do(c.PausePool, pool="crew")
        port.calls.processes[spawn.id] = None
        port.pass_time(ABSENT - 1)
        port.step()
        assert port.calls.sought
        assert port.spawns()[0].state == "running"  # the call of another leader may still arrive
        port.pass_time(2)
        port.step()
        assert (port.spawns()[0].state, port.spawns()[0].why) == ("ended", "its spawner has no process for it")
        assert "task.process_gone" in scene.log(spawn.task_key)
        assert scene.submit(receipt).outcome == "ACCEPTED"

    def test_an_early_answer_does_not_prove_that_there_is_no_process(self, scene: Scene, port: Port) -> None:
        spawn = self.unsaved(scene, port)
        port.receipt(spawn)
        port.calls.searching = Future()
        port.pass_time(ABSENT - 1)
        port.step()
        port.pass_time(2)
        port.calls.searching.set_result({spawn.id: None})  # asked before, answered after
        port.calls.searching = None
        port.step()
        assert port.spawns()[0].state == "running"

    def test_a_spawner_that_does_not_know_leaves_the_claim_to_its_lease(self, scene: Scene, port: Port) -> None:
        spawn = self.unsaved(scene, port)
        port.receipt(spawn)
        port.pass_time(ABSENT + 5)
        port.step()
        assert port.calls.sought
        assert port.spawns()[0].state == "running"

    def test_a_call_that_is_under_way_is_not_searched_for(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.calls.hangs = True
        port.step()
        (spawn,) = port.spawns()
        port.calls.processes[spawn.id] = None
        port.pass_time(ABSENT + 5)
        port.step()
        assert (port.calls.sought, port.spawns()[0].state) == ([], "starting")

    @pytest.mark.parametrize("home", ["another machine", ""])
    def test_the_spawner_of_another_place_is_not_asked(self, scene: Scene, port: Port, home: str) -> None:
        spawn = self.unsaved(scene, port)
        port.receipt(spawn)
        port.calls.homes["local"] = home
        port.calls.processes[spawn.id] = None
        port.pass_time(ABSENT + 5)
        port.step()
        assert (port.calls.sought, port.spawns()[0].state) == ([], "running")

    def test_a_found_process_needs_the_term(self, scene: Scene, port: Port) -> None:
        spawn = self.unsaved(scene, port)
        searching: Future[Mapping[str, Spawned | None]] = Future()
        port.calls.searching = searching
        port.pass_time(4)
        port.step()
        assert port.calls.sought == [[spawn.id]]
        port.office.pass_by("one", LEASE + 1)
        port.office.another("two").step()
        searching.set_result({spawn.id: Spawned(handle="42")})
        before = scene.tables()
        port.fleet.step()
        assert scene.tables() == before

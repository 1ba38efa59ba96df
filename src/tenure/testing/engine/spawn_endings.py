"""How spawns end: answers of their spawners, ends of processes, money, keys; and what is read of them."""

from __future__ import annotations

import pytest

from tenure.core import commands as c
from tenure.core import limits
from tenure.core import queries as q
from tenure.core.commands import Principal
from tenure.core.errors import InvalidInput
from tenure.core.keys import opens, parse_key
from tenure.core.records import ApiKey, Leader, Task, replace
from tenure.engine.duties.coordinator import LEASE
from tenure.engine.reads.query_table import read_query
from tenure.engine.verbs.lead import COORDINATOR
from tenure.spawners.port import Spawned, SpawnFailed, SpawnRequest, SpawnUnknown
from tenure.testing.engine.fleets import Port
from tenure.testing.engine.stage import Stage
from tenure.testing.engine.team import kinds_of
from tenure.testing.factories import PROJECT, Scene

OFFER = limits.SPAWN_OFFER // 1_000_000


class SpawnEndings(Stage):
    @pytest.fixture
    def port(self, scene: Scene) -> Port:
        return Port(scene)

    # --- answers of the spawner -----------------------------------------------------------------------------------

    def test_a_definite_failure_frees_the_task_at_once_and_the_pool_backs_off(self, scene: Scene, port: Port) -> None:
        def answer(request: SpawnRequest) -> Spawned:
            raise SpawnFailed("no such program: claude")

        port.calls.answer = answer
        port.set(size=1)
        key = scene.add()
        waits = []
        for failures in range(1, 9):
            port.step()
            pool = port.pool()
            assert (pool.failures, len(port.calls.asked)) == (failures, failures)
            assert scene.task(key).offer_to is None
            waits.append((pool.wait_until or 0) - scene.now)
            port.step()
            assert len(port.calls.asked) == failures
            port.pass_time(waits[-1] / 1e6)
        assert waits == [second * 1_000_000 for second in (1, 2, 4, 8, 16, 32, 60, 60)]
        assert [spawn.state for spawn in port.spawns()] == ["ended"] * 8
        shown = read_query(scene.engine, q.ShowPool(project=PROJECT, pool="crew"))
        assert "no such program" in (shown["error"] or "")

    def test_a_claim_ends_the_back_off(self, scene: Scene, port: Port) -> None:
        port.set(size=2)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        port.calls.states[f"h-{spawn.id}"] = "ended"
        port.pass_time(3)
        port.step()
        assert (port.pool().failures, port.spawns()[0].why) == (1, "its process has ended")
        port.pass_time(2)
        port.step()
        port.receipt(port.spawns("starting")[0])
        assert (port.pool().failures, port.pool().wait_until, port.pool().error) == (0, None, None)

    def test_an_unknown_outcome_keeps_the_offer_until_it_runs_out(self, scene: Scene, port: Port) -> None:
        def answer(request: SpawnRequest) -> Spawned:
            raise SpawnUnknown("no answer within 10 s")

        port.calls.answer = answer
        port.set(size=1)
        key = scene.add()
        port.step()
        (spawn,) = port.spawns("starting")
        assert (scene.task(key).offer_to, port.pool().failures) == ("crew-1", 1)
        assert port.call(spawn).outcome == "GRANTED"  # it had been started after all
        assert port.pool().failures == 0

    def test_a_lost_spawn_counts_once(self, scene: Scene, port: Port) -> None:
        def answer(request: SpawnRequest) -> Spawned:
            raise SpawnUnknown("no answer within 10 s")

        port.calls.answer = answer
        port.set(size=1)
        scene.add()
        port.step()
        scene.do(c.PausePool, pool="crew")
        port.pass_time(OFFER + 1)
        port.step()
        assert ([spawn.state for spawn in port.spawns()], port.pool().failures) == (["lost"], 1)

    def test_a_late_answer_of_a_spawn_that_is_over_ends_its_process(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.calls.hangs = True
        port.step()
        (spawn,) = port.spawns()
        port.pass_time(OFFER + 1)
        port.step()
        assert port.spawns()[0].state == "lost"
        port.calls.waiting[spawn.id].set_result(Spawned(handle="late"))
        port.step()
        assert ("late", False) in port.calls.ended
        assert port.spawns()[0].handle is None

    def test_an_answer_needs_the_term(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.calls.hangs = True
        port.step()
        (spawn,) = port.spawns()
        sleeper, waiting = port.fleet, port.calls.waiting[spawn.id]
        port.office.pass_by("one", LEASE + 1)
        other = port.office.another("two")
        other.step()
        waiting.set_result(Spawned(handle="42"))
        before = scene.tables()
        sleeper.step()
        assert scene.tables() == before
        assert port.spawns()[0].handle is None

    def test_a_deposed_leader_starts_nothing(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        port.office.pass_by("one", LEASE + 1)
        other = port.office.another("two")
        other.step()
        assert scene.stored_rows(Leader)[0].holder == "two"
        assert scene.stored_rows(Leader)[0].id == COORDINATOR
        scene.add()
        port.fleet.step()
        assert (port.calls.asked, port.spawns()) == ([], [])

    # --- ends -----------------------------------------------------------------------------------------------------

    def test_the_claim_of_a_process_that_has_ended_ends_at_once(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        key = scene.add()
        port.step()
        (spawn,) = port.spawns()
        receipt = port.receipt(spawn)
        scene.do(c.SaveCheckpoint, receipt=receipt, data={"step": 3})
        port.calls.states[f"h-{spawn.id}"] = "ended"
        port.pass_time(3)
        port.step()
        assert "task.process_gone" in scene.log(key)
        (again,) = port.spawns("starting")
        taken = port.call(again)
        assert (taken.generation, (taken.checkpoint or {})["data"]) == (2, {"step": 3})
        assert port.calls.asked[-1].context.checkpoint == {"step": 3}
        assert scene.submit(receipt).outcome == "STALE_GENERATION"

    def test_a_process_without_a_task_is_ended_after_its_idle_time(self, scene: Scene, port: Port) -> None:
        port.set(size=1, idle=30)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        assert scene.submit(port.receipt(spawn)).outcome == "ACCEPTED"
        port.step()
        port.pass_time(29)
        port.step()
        assert port.spawns()[0].state == "running"
        port.pass_time(2)
        port.step()
        assert (port.spawns()[0].state, port.spawns()[0].why) == ("ended", "it held no task for too long")
        assert port.calls.ended == [(f"h-{spawn.id}", False)]
        assert port.call_next(spawn).outcome == "DENIED_SPAWN"

    def test_a_process_that_its_spawner_does_not_know_is_lost_once_it_holds_nothing(
        self, scene: Scene, port: Port
    ) -> None:
        port.set(size=1, idle=3600)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        receipt = port.receipt(spawn)
        port.calls.states[f"h-{spawn.id}"] = "unknown"
        port.pass_time(30)
        port.step()
        assert port.spawns()[0].state == "running"  # its lease lives
        scene.submit(receipt)
        port.step()
        port.pass_time(11)
        port.step()
        assert port.spawns()[0].state == "lost"

    def test_a_process_that_cannot_be_ended_is_tried_again(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.step()
        port.calls.end_fails = True
        scene.do(c.Terminate, agent="crew-1", graceful=False)
        port.step()
        tries = len(port.calls.ended)
        assert tries == 1
        port.pass_time(2)
        port.calls.end_fails = False
        port.step()
        assert len(port.calls.ended) == tries + 1
        port.pass_time(2)
        port.step()
        assert len(port.calls.ended) == tries + 1

    @pytest.mark.parametrize("graceful", [True, False])
    def test_a_terminated_agent_is_ended_through_its_spawner(self, scene: Scene, port: Port, graceful: bool) -> None:
        port.set(size=1)
        key = scene.add()
        port.step()
        (spawn,) = port.spawns()
        receipt = port.receipt(spawn)
        scene.do(c.Terminate, agent="crew-1", graceful=graceful, reason="runs wild")
        port.step()
        assert port.calls.ended == [(f"h-{spawn.id}", graceful)]
        if graceful:
            assert port.spawns()[0].state == "running"
            assert scene.submit(receipt).outcome == "ACCEPTED"
            port.step()
        else:
            assert scene.submit(receipt).outcome != "ACCEPTED"
        assert (port.spawns()[0].state, port.spawns()[0].why) == ("ended", "its agent was terminated by an operator")
        assert port.pool().failures == 0
        scene.add()
        port.step()
        assert len(port.spawns()) == 1  # its place stays empty
        scene.do(c.ResumeAgent, agent="crew-1")
        port.pass_time(2)
        port.step()
        assert len(port.spawns()) == 2
        assert kinds_of(scene, "crew-1").count("agent.terminated") == 1
        assert scene.state(key) in ("completed", "ready")

    def test_a_drained_agents_place_stays_empty_and_others_are_filled(self, scene: Scene, port: Port) -> None:
        port.set(size=2)
        scene.add()
        port.step()
        receipt = port.receipt(port.spawns()[0])
        scene.do(c.Drain, agent="crew-1")
        assert scene.submit(receipt).outcome == "ACCEPTED"
        port.leave(port.spawns()[0])
        for _ in range(3):
            scene.add()
        port.step()
        assert [spawn.agent for spawn in port.spawns("starting")] == ["crew-2"]

    def test_a_process_that_left_is_ended_if_it_does_not_end_by_itself(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        assert scene.submit(port.receipt(spawn)).outcome == "ACCEPTED"
        scene.do(c.Leave, session=f"s-{spawn.id}")
        port.step()
        assert port.spawns()[0].state == "running"  # it closes its other sessions with its key
        port.pass_time(1)
        port.step()
        assert (port.spawns()[0].state, port.calls.ended) == ("ended", [])
        port.pass_time(5)
        port.step()
        assert port.calls.ended == [(f"h-{spawn.id}", False)]

    def test_a_process_that_stops_starts_nothing_more(self, scene: Scene, port: Port) -> None:
        port.set()
        scene.add()
        port.fleet.stop()
        port.fleet.step()
        assert port.calls.asked == []

    def test_old_spawns_are_dropped(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        for number in range(limits.SPAWNS_KEPT + 5):
            old = replace(spawn, id=f"spawn_{number:05}", state="ended", ended_at=number, place=9)
            scene.put(None, old)
        port.finish(spawn)
        port.step()
        left = port.spawns("ended")
        assert len(left) == limits.SPAWNS_KEPT
        assert spawn.id in {one.id for one in left}

    # --- money ----------------------------------------------------------------------------------------------------

    def test_no_process_is_started_for_money_that_an_offer_will_reserve(self, scene: Scene, port: Port) -> None:
        scene.do(c.SetBudget, scope="project", usd="10", default_estimate="4")
        port.set(size=5)
        for _ in range(5):
            scene.add()
        port.step()
        assert len(port.spawns()) == 2  # 4 and 4 of 10
        first, second = port.spawns()
        receipt = port.receipt(first)
        port.receipt(second)
        port.pass_time(2)
        port.step()
        assert len(port.spawns()) == 2
        scene.submit(receipt)  # it returns what it did not use
        port.pass_time(2)
        port.step()
        assert len(port.spawns()) == 3

    def test_a_budget_that_is_used_up_starts_nothing(self, scene: Scene, port: Port) -> None:
        scene.do(c.SetBudget, scope="project", usd="1", default_estimate="4")
        port.set()
        key = scene.add()
        port.step()
        assert (port.calls.asked, scene.task(key).offer_to) == ([], None)
        scene.do(c.SetBudget, scope="project", usd="10", default_estimate="4")
        port.pass_time(2)
        port.step()
        assert len(port.calls.asked) == 1

    # --- keys -----------------------------------------------------------------------------------------------------

    def test_a_spawn_has_a_key_for_its_agent_alone_that_ends_with_it(self, scene: Scene) -> None:
        port = Port(scene, has_keys=True)
        port.set(size=1)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        (key,) = scene.stored_rows(ApiKey)
        given = parse_key(port.calls.asked[0].token or "")
        assert given is not None
        assert (given.id, opens(key, given.secret, scene.now)) == (key.id, True)
        assert (key.role, key.agent, key.projects, spawn.api_key) == ("agent", "crew-1", (PROJECT,), key.id)
        port.finish(spawn)
        port.step()
        assert scene.stored_rows(ApiKey) == []
        assert [event.kind for event in scene.events(project="") if event.kind.startswith("key.")] == [
            "key.created",
            "key.revoked",
        ]

    def test_the_id_of_a_spawn_is_of_no_use_without_its_key(self, scene: Scene) -> None:
        """Everybody in the project sees it. A key of another, or a sign-in without one, takes no place with it."""
        port = Port(scene, has_keys=True)
        port.set(size=1)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        for other in ("key_of_another", None):
            by = Principal(role="agent", key=other, address="10.0.0.9")
            for denied in (port.call(spawn, by=by, session="theirs"), port.call_next(spawn, by=by, session="theirs")):
                assert (denied.outcome, denied.directive) == ("DENIED_SPAWN", "terminated")
                assert "has its own key" in denied.message
        assert port.spawns() == [spawn]
        own = Principal(role="agent", key=spawn.api_key, agent=spawn.agent, is_proven=True, address="10.0.0.9")
        assert port.call(spawn, by=own).outcome == "GRANTED"

    def test_the_key_of_a_lost_spawn_ends_with_it(self, scene: Scene) -> None:
        port = Port(scene, has_keys=True)
        port.set(size=1)
        scene.add()
        port.step()
        scene.do(c.PausePool, pool="crew")
        port.pass_time(OFFER + 1)
        port.step()
        assert ([spawn.state for spawn in port.spawns()], scene.stored_rows(ApiKey)) == (["lost"], [])

    # --- reads ----------------------------------------------------------------------------------------------------

    def test_pools_and_spawns_are_read_with_their_processes(self, scene: Scene, port: Port) -> None:
        port.set(size=2)
        keys = [scene.add(), scene.add()]
        port.step()
        first, second = port.spawns()
        port.receipt(first)
        (pool,) = read_query(scene.engine, q.Pools(project=PROJECT))
        assert (pool["name"], pool["running"], pool["starting"], pool["spawned"]) == ("crew", 1, 1, 2)
        shown = read_query(scene.engine, q.ShowPool(project=PROJECT, pool="crew"))
        assert {spawn["agent"]: list(spawn["holds"]) for spawn in shown["spawns"]} == {
            "crew-1": [scene.task(keys[0]).key],
            "crew-2": [],
        }
        (gauges,) = read_query(scene.engine, q.Gauges())
        assert gauges["pools"] == {"crew": {"size": 2, "starting": 1, "running": 1}}
        port.pass_time(OFFER + 1)
        listed = read_query(scene.engine, q.Spawns(project=PROJECT, pool="crew"))
        assert {spawn["id"]: spawn["state"] for spawn in listed} == {first.id: "running", second.id: "lost"}
        running = read_query(scene.engine, q.Spawns(project=PROJECT, state=("running",)))
        assert [spawn["id"] for spawn in running] == [first.id]
        with pytest.raises(InvalidInput, match="state"):
            read_query(scene.engine, q.Spawns(project=PROJECT, state=("asleep",)))

    def test_a_task_assigned_to_an_agent_of_a_pool_is_taken_by_it(self, scene: Scene, port: Port) -> None:
        port.set(size=2)
        key = scene.add()
        scene.do(c.Assign, task=key, agent="crew-2", seconds=600)
        port.step()
        assert [(spawn.agent, spawn.task) for spawn in port.spawns()] == [("crew-2", scene.task(key).id)]
        assert scene.stored(Task, scene.task(key).id).offer_to == "crew-2"

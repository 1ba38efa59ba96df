"""Pools: the leader starts agents on ready tasks, and never more than `size` of them are able to claim."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import limits
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, LimitReached, NotFound
from tenure.core.keys import opens, parse_key
from tenure.core.records import Agent, ApiKey, Leader, Spawn, Task, replace
from tenure.engine.duties.coordinator import LEASE
from tenure.engine.reads.query_table import read_query
from tenure.engine.verbs.lead import COORDINATOR
from tenure.spawners.port import Spawned, SpawnFailed, SpawnRequest, SpawnUnknown
from tenure.testing.engine.fleets import URL, Port
from tenure.testing.engine.stage import Stage
from tenure.testing.engine.team import kinds_of
from tenure.testing.factories import AGENT, MEMBER, PROJECT, Scene, code_of

OFFER = limits.SPAWN_OFFER // 1_000_000


def keys_in(spawns: list[Spawn]) -> list[str]:
    return [spawn.task_key for spawn in spawns]


class Pools(Stage):
    @pytest.fixture
    def port(self, scene: Scene) -> Port:
        return Port(scene)

    # --- commands -------------------------------------------------------------------------------------------------

    def test_a_pool_is_set_changed_paused_resumed_and_removed(self, scene: Scene, port: Port) -> None:
        made = port.set(size=3, capabilities=("b", "a"), idle=30)
        assert (made.outcome, (made.pool or {})["state"]) == ("CREATED", "ok")
        assert (made.pool or {})["capabilities"] == ("a", "b")
        assert port.set(size=3, capabilities=("a", "b"), idle=30).outcome == "UNCHANGED"
        assert port.set(size=4).outcome == "UPDATED"
        smaller = scene.do(c.SetPool, pool="crew", size=2).pool or {}
        assert (smaller["size"], smaller["capabilities"], smaller["idle"]) == (2, ("a", "b"), 30.0)
        assert (smaller["program"], smaller["spawner"], smaller["types"]) == ("claude", "local", ())
        with pytest.raises(InvalidInput, match="which program"):
            scene.do(c.SetPool, pool="another", size=2)
        paused = scene.do(c.PausePool, pool="crew", reason="lunch")
        assert ((paused.pool or {})["state"], (paused.pool or {})["disabled_for"]) == ("paused", "lunch")
        assert scene.do(c.PausePool, pool="crew").outcome == "UNCHANGED"
        assert scene.do(c.ResumePool, pool="crew").outcome == "UPDATED"
        assert scene.do(c.ResumePool, pool="crew").outcome == "UNCHANGED"
        assert scene.do(c.RemovePool, pool="crew").outcome == "UPDATED"
        with pytest.raises(NotFound, match="no pool 'crew'"):
            scene.do(c.RemovePool, pool="crew")
        kinds = [event.kind for event in scene.events() if event.kind.startswith("pool.")]
        assert kinds == ["pool.set", "pool.set", "pool.set", "pool.paused", "pool.resumed", "pool.removed"]

    @pytest.mark.parametrize(
        ("fields", "text"),
        [
            ({"size": 0}, "size must be from 1 to 1000 .got 0."),
            ({"size": 1001}, "got 1001"),
            ({"idle": 0}, "idle"),
            ({"pool": "a:b"}, "no ':'"),
            ({"program": "x" * 61}, "at most 60 characters"),
            ({"spawner": "a b"}, "without spaces"),
        ],
    )
    def test_a_bad_value_is_refused_with_the_value(self, port: Port, fields: dict[str, Any], text: str) -> None:
        with pytest.raises(InvalidInput, match=text):
            port.set(**{"pool": "crew"} | fields)

    def test_pools_are_for_admins_and_their_number_is_limited(self, scene: Scene, port: Port) -> None:
        for who in (MEMBER, AGENT):
            answer = scene.try_to(c.SetPool, pool="crew", program="claude", by=who)
            assert code_of(answer) == "NOT_ALLOWED"
        for number in range(limits.POOLS):
            port.set(f"crew{number}")
        with pytest.raises(LimitReached, match="20 pools"):
            port.set("another")
        assert port.set("crew3", size=9).outcome == "UPDATED"

    # --- offer and spawn ------------------------------------------------------------------------------------------

    def test_a_ready_task_is_offered_and_its_agent_started(self, scene: Scene, port: Port) -> None:
        port.set(models=("opus",), capabilities=("gpu",), tracks=("A",))
        key = scene.add(
            "Write the parser, all of it, with tests", description="d", constraints={"required_capabilities": ["gpu"]}
        )
        port.step()
        (spawn,) = port.spawns("starting")
        task = scene.task(key)
        assert (spawn.agent, spawn.task, spawn.place) == ("crew-1", task.id, 1)
        assert (task.offer_to, task.offer_until) == ("crew-1", scene.now + limits.SPAWN_OFFER)
        assert (task.state, task.generation) == ("ready", 0)
        (request,) = port.calls.asked
        assert (request.spawn, request.agent, request.program) == (spawn.id, "crew-1", "claude")
        assert (request.key, request.label) == (task.ref, f"task:{task.ref}:Write the parser, all of it, w")
        assert (request.url, request.token, request.offer_seconds) == (URL, None, OFFER)
        assert (request.context.title, request.context.description) == ("Write the parser, all of it, with tests", "d")
        assert spawn.handle == f"h-{spawn.id}"
        agent = scene.row(Agent, "crew-1")
        assert agent.managed
        assert (agent.type, agent.capabilities, agent.models, agent.tracks) == ("claude", ("gpu",), ("opus",), ("A",))
        port.step()
        assert len(port.calls.asked) == 1

    def test_offer_and_spawn_are_one_transaction(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.step()
        of_spawn, of_offer = scene.events(kind="spawn.starting"), scene.events(kind="task.offered")
        assert [event.causation_id for event in of_spawn] == [event.causation_id for event in of_offer]

    def test_the_spawner_is_called_after_the_commit(self, scene: Scene, port: Port) -> None:
        seen: list[tuple[str, str | None]] = []

        def answer(request: SpawnRequest) -> Spawned:
            seen.append((scene.row(Spawn, request.spawn).state, scene.task(request.task).offer_to))
            return Spawned(handle="1")

        port.calls.answer = answer
        port.set()
        scene.add()
        port.step()
        assert seen == [("starting", "crew-1")]

    def test_places_are_filled_with_the_best_tasks_and_no_more(self, scene: Scene, port: Port) -> None:
        port.set(size=2)
        late, first, second = scene.add(), scene.add(priority=1), scene.add(priority=2)
        port.step()
        assert keys_in(port.spawns()) == [scene.task(first).key, scene.task(second).key]
        assert [spawn.agent for spawn in port.spawns()] == ["crew-1", "crew-2"]
        port.step()
        assert len(port.spawns()) == 2
        assert scene.task(late).offer_to is None

    def test_a_finished_agent_makes_room_for_the_next_task(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        keys = [scene.add() for _ in range(3)]
        for number in range(3):
            port.step()
            (spawn,) = port.spawns("starting")
            assert spawn.agent == "crew-1"
            port.finish(spawn)
            port.step(1)
            assert len(port.spawns("ended")) == number + 1
        assert scene.states(*keys) == ["completed"] * 3
        assert (port.pool().spawned, port.pool().failures) == (3, 0)

    def test_pools_take_what_they_may(self, scene: Scene, port: Port) -> None:
        scene.do(c.DefineTrack, code="B", name="b")
        port.set("docs", types=("docs",), size=3)
        port.set("gpu", capabilities=("gpu",), size=3, types=("train",))
        port.set("bees", tracks=("B",), size=3)
        docs = scene.add(type="docs")
        train = scene.add(type="train", constraints={"required_capabilities": ["gpu"]})
        bee = scene.add(track="B", type="other")
        scene.add(type="other")
        port.step()
        assert {spawn.pool: spawn.task_key for spawn in port.spawns()} == {
            "docs": scene.task(docs).key, "gpu": scene.task(train).key, "bees": scene.task(bee).key,
        }  # fmt: skip

    def test_a_cool_off_is_judged_for_the_agent_that_will_claim(self, scene: Scene, port: Port) -> None:
        port.set(size=2)
        key = scene.add()
        port.step()
        (spawn,) = port.spawns()
        scene.fail(port.receipt(spawn), retry_after=0)
        port.leave(spawn)
        cooling = scene.task(key).cool_offs
        port.step()
        again = port.spawns("starting")
        assert [one.agent for one in again] == (["crew-2"] if "crew-1" in cooling else ["crew-1"])

    def test_a_paused_pool_starts_nothing_and_lets_its_agents_finish(self, scene: Scene, port: Port) -> None:
        port.set(size=2)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        receipt = port.receipt(spawn)
        scene.do(c.PausePool, pool="crew")
        scene.add()
        port.step()
        assert len(port.calls.asked) == 1
        assert scene.submit(receipt).outcome == "ACCEPTED"
        scene.do(c.ResumePool, pool="crew")
        port.step()
        assert len(port.calls.asked) == 2

    def test_an_unknown_spawner_is_reported_and_takes_no_task(self, scene: Scene, port: Port) -> None:
        port.set(spawner="moon")
        key = scene.add()
        port.step()
        assert "no spawner moon" in (port.pool().error or "")
        assert (port.spawns(), scene.task(key).offer_to) == ([], None)
        port.set(spawner="local")
        port.pass_time(2)
        port.step()
        assert len(port.spawns()) == 1

    def test_the_projects_limit_counts_offers(self, scene: Scene, port: Port) -> None:
        scene.do(c.DefineProject, limits={"max_concurrent_claims": 2})
        scene.take(scene.add())
        port.set(size=5)
        for _ in range(4):
            scene.add()
        port.step()
        assert len(port.spawns()) == 1

    # --- the claim judges -----------------------------------------------------------------------------------------

    def test_the_first_claim_makes_it_run(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        port.receipt(spawn)
        (running,) = port.spawns("running")
        assert (running.session, running.claimed_at) == (f"s-{spawn.id}", scene.now)
        assert [event.kind for event in scene.events() if event.kind.startswith("spawn.")] == [
            "spawn.starting", "spawn.running",
        ]  # fmt: skip

    def test_a_running_agent_keeps_its_place(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.step()
        port.receipt(port.spawns()[0])
        scene.add()
        port.pass_time(2)
        port.step()
        assert [spawn.state for spawn in port.spawns()] == ["running"]

    def test_an_ended_spawn_claims_nothing_though_tasks_are_ready(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        scene.submit(port.receipt(spawn))
        scene.do(c.PausePool, pool="crew")
        port.calls.states[f"h-{spawn.id}"] = "ended"
        port.pass_time(3)
        port.step()
        for _ in range(3):
            scene.add()
        assert port.call_next(spawn).outcome == "DENIED_SPAWN"
        words: dict[str, Any] = {"project": PROJECT, "agent": spawn.agent, "session": f"s-{spawn.id}"}
        batch = [c.ClaimNext(**words, spawn=spawn.id), c.ClaimNext(**words, spawn=spawn.id)]
        assert [code_of(answer) for answer in scene.run(*batch)] == ["DENIED_SPAWN"] * 2

    def test_a_spawn_that_was_not_heard_of_in_time_is_lost_and_claims_nothing(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        key = scene.add()
        port.step()
        (spawn,) = port.spawns()
        port.pass_time(OFFER)
        # Before any leader has looked: no answer depends on that.
        for denied in (port.call(spawn), port.call_next(spawn)):
            assert (denied.outcome, denied.directive) == ("DENIED_SPAWN", "terminated")
            assert "did not claim within 120 s" in denied.message
        port.step(1)
        assert port.spawns()[0].state == "lost"
        assert port.call(spawn).outcome == "DENIED_SPAWN"
        assert (f"h-{spawn.id}", False) in port.calls.ended
        assert scene.task(key).generation == 0

    def test_a_crash_between_offer_and_spawn_costs_the_offer_and_nothing_else(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        key = scene.add()
        port.calls.hangs = True
        port.step(1)
        assert scene.task(key).offer_to == "crew-1"
        port.calls.hangs = False
        port.coordinator.resign()  # killed before any answer; another process leads
        port.coordinator = port.office.another("two")
        port.coordinator.step()
        port.fleet = port.another_fleet(port.coordinator)
        port.step()
        assert [spawn.state for spawn in port.spawns()] == ["starting"]
        port.pass_time(OFFER + 1)
        port.step()
        port.pass_time(2)  # one failure: the pool backs off for a second
        port.step()
        assert sorted(spawn.state for spawn in port.spawns()) == ["lost", "starting"]
        port.finish(port.spawns("starting")[0])
        assert scene.state(key) == "completed"

    def test_a_second_process_of_a_spawn_claims_nothing(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        assert port.call(spawn).outcome == "GRANTED"
        for denied in (port.call(spawn, session="other"), port.call_next(spawn, session="other")):
            assert denied.outcome == "DENIED_SPAWN"
            assert "started twice" in denied.message
        assert port.call_next(spawn).outcome == "GRANTED"

    def test_a_repeated_claim_of_a_lost_spawn_gets_its_first_answer(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        first = port.call(spawn, request_id="r")
        port.calls.states[f"h-{spawn.id}"] = "ended"
        port.pass_time(3)
        port.step()
        again = port.call(spawn, request_id="r")
        assert (again.again, again.receipt) == (True, first.receipt)
        assert port.call(spawn, request_id="other").outcome == "DENIED_SPAWN"

    def test_a_spawn_is_for_its_agent_and_known_here(self, scene: Scene, port: Port) -> None:
        port.set(size=1)
        scene.add()
        port.step()
        (spawn,) = port.spawns()
        assert "is for agent crew-1" in port.call(spawn, agent="ann").message
        assert "is not known" in port.call(spawn, spawn="spawn_x").message
        before = scene.tables()
        assert port.call(spawn, agent="ann").outcome == "DENIED_SPAWN"
        assert scene.tables() == before

    def test_a_smaller_or_removed_pool_refuses_those_who_have_not_called(self, scene: Scene, port: Port) -> None:
        port.set(size=3)
        for _ in range(3):
            scene.add()
        port.step()
        one, two, three = port.spawns()
        receipt = port.receipt(one)
        port.set(size=2)
        assert "2 places now" in port.call(three).message
        removed = scene.do(c.RemovePool, pool="crew")
        assert "crew-1 may finish" in removed.message
        assert "removed" in port.call(two).message
        port.step()
        assert [spawn.state for spawn in port.spawns()] == ["running", "ended", "ended"]
        assert {handle for handle, _ in port.calls.ended} == {f"h-{two.id}", f"h-{three.id}"}
        assert scene.submit(receipt).outcome == "ACCEPTED"
        assert {scene.task(spawn.task).offer_to for spawn in (two, three)} == {None}

    def test_the_pools_types_hold_for_a_next_claim_of_its_agents(self, scene: Scene, port: Port) -> None:
        port.set(size=1, types=("docs",))
        docs, other = scene.add(type="docs"), scene.add(type="code", priority=0)
        port.step()
        (spawn,) = port.spawns()
        scene.do(c.Cancel, task=docs)
        assert port.call_next(spawn).outcome == "NO_TASK"
        assert scene.state(other) == "ready"

    def test_no_more_than_its_size_are_able_to_claim_with_races(self, scene: Scene, port: Port) -> None:
        port.set(size=2)
        keys = [scene.add() for _ in range(12)]
        spawns: list[Spawn] = []
        granted: list[str] = []
        for _ in range(4):  # each round: the old children are declared lost and race with the new ones
            port.step()
            spawns = port.spawns()
            answers: list[Any] = [None] * len(spawns)
            barrier = threading.Barrier(len(spawns))

            def race(number: int, spawn: Spawn, answers: list[Any] = answers, barrier: Any = barrier) -> None:
                barrier.wait()
                words: dict[str, Any] = {"agent": spawn.agent, "session": f"s-{spawn.id}", "spawn": spawn.id}
                answers[number] = scene.engine.do(c.ClaimNext(project=PROJECT, **words))

            threads = [threading.Thread(target=race, args=pair) for pair in enumerate(spawns)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            able = [spawn for spawn, answer in zip(spawns, answers, strict=True) if answer.outcome == "GRANTED"]
            assert len(able) <= 2
            assert len({spawn.place for spawn in able}) == len(able)
            granted += [answer.task["key"] for answer in answers if answer.outcome == "GRANTED"]
            for spawn in able:  # their processes die
                port.calls.states[f"h-{spawn.id}"] = "ended"
            port.pass_time(3)
            port.step()
        assert len(granted) == 8
        assert set(granted) <= {scene.task(key).key for key in keys}

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
            "key.created", "key.revoked",
        ]  # fmt: skip

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
            "crew-1": [scene.task(keys[0]).key], "crew-2": [],
        }  # fmt: skip
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

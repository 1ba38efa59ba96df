"""Pools: the leader starts agents on ready tasks, and never more than `size` of them are able to claim."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import limits
from tenure.core.errors import InvalidInput, LimitReached, NotFound
from tenure.core.records import Agent, Budget, Spawn
from tenure.spawners.port import Spawned, SpawnRequest
from tenure.testing.engine.fleets import URL, Port
from tenure.testing.engine.stage import Stage
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
            ({"pool": "a:b"}, "ASCII letters"),
            ({"program": "x" * 61}, "at most 60 characters"),
            ({"program": "./agent.sh"}, "starts programs by name"),
            ({"spawner": "a b"}, "ASCII letters"),
            ({"program": "$(id)"}, "ASCII letters"),
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
            "docs": scene.task(docs).key,
            "gpu": scene.task(train).key,
            "bees": scene.task(bee).key,
        }

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

    def test_the_offers_of_a_throttled_budget_are_spaced_out_over_all_places(self, scene: Scene, port: Port) -> None:
        """The throttle begins with a claim: until then nothing in the budget's row keeps another place waiting."""
        scene.do(c.SetBudget, usd="20", default_estimate="1", throttle=True)
        scene.do(c.ReportUsage, receipt=scene.take(scene.add(), "ann", lease=500_000.0), model="opus", cost_usd="6")
        for _ in range(2):
            scene.add()
        port.set(size=2)
        port.step()
        (spawn,) = port.spawns()
        port.receipt(spawn)
        until = scene.row(Budget, "project").next_claim_at
        assert until > scene.now
        port.step()
        assert len(port.spawns()) == 1
        port.pass_time((until - scene.now) / 1e6)
        port.step()
        assert len(port.spawns()) == 2

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
            "spawn.starting",
            "spawn.running",
        ]

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

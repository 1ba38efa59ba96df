"""The part of the fixture about the fleet: pools, their processes, health, tracks with agents of their own.

As in `world.py`, only what the release offers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import commands as c
from tenure.core.commands import Process, Totals
from tenure.core.records import Cycles, Spawn
from tenure.engine.archive import mover
from tenure.engine.duties.election import LeaderEngine, stand
from tenure.engine.fleet.fleet import Fleet
from tenure.engine.fleet.offers import Address
from tenure.testing.engine.fleets import URL, RecordedCalls

if TYPE_CHECKING:
    from tests.upgrades.world import World

HOUR = 3600.0


def fleet(world: World) -> None:
    """Pools that work, rest and fail; a process in each state; minutes of health; a router; tasks ordered by length."""
    world.enter("crew", router=True, order="shortest", lead="off")
    world.do(c.DefineTrack, code="A", name="all", max_agents=9)
    world.do(c.DefineTrack, code="B", name="back end", max_agents=2)
    world.do(c.AssignTrack, code="B", agent="ann")
    for n in range(4):
        world.add(f"for a pool {n}", constraints={"estimated_duration": 60 * n} if n else {}, type="crew")
    for name, more in (("coders", {"size": 3, "types": ("crew",)}), ("resting", {}), ("failing", {"types": ("odd",)})):
        world.do(c.SetPool, pool=name, program="claude", **{"size": 1, **more})
    world.do(c.PausePool, pool="resting", reason="holidays")
    led = stand(world.engine, "host-1", HOUR, None, Cycles())
    leader = LeaderEngine(world.engine, "host-1", led.term, lambda: None)
    errors: list[str] = []
    keeper = Fleet(world.engine, RecordedCalls(), lambda: Address(URL, False), lambda: leader, failed=errors.append)

    def step() -> None:
        for _ in range(4):
            keeper.step()
            world.wait(3)
        assert errors == [], errors

    step()
    first, second, third = spawns(world)
    held = {}
    for spawn in (first, second):
        asked = {"task": spawn.task, "agent": spawn.agent, "session": f"s-{spawn.agent}", "spawn": spawn.id}
        held[spawn.id] = str(world.do(c.ClaimTask, lease=12 * HOUR, **asked).receipt)
    step()
    world.do(c.Submit, receipt=held[first.id], data="done")
    world.do(c.Leave, session=f"s-{first.agent}")
    step()
    world.keep("by a process of a pool", held[second.id], "ACCEPTED")
    by_id = {spawn.id: spawn.state for spawn in spawns(world)}
    assert (by_id[first.id], by_id[second.id], by_id[third.id]) == ("ended", "running", "starting"), by_id
    for minute in range(3):
        world.do(c.Heartbeat, agent="ann", memory_mb=500 + minute, cpu_percent=9, percent=10, metadata={"host": "h"})
        world.wait(60)
    used = world.take(world.add("used for a review"), "bo")
    world.do(c.ReportUsage, receipt=used, model="opus", fresh=90, cost_usd="0.30")
    world.do(c.ReportUsage, receipt=used, model="opus", fresh=40, cost_usd="0.10", operation="review")


def spawns(world: World) -> list[Spawn]:
    with world.store.begin(world.engine.tenant, write=False) as tx:
        return sorted(tx.find(Spawn, {"project": "crew"}), key=lambda spawn: spawn.place)


def short_way(world: World) -> None:
    """Claims and results of batches, in every state that they can be left in: where a store has its short way, by that.

    Claimed and not begun, asked for with a request, by a process, lost, lost and taken again, completed and archived.
    """
    world.enter("short", limits={"archive_after": 0})
    for n in range(40):
        world.add(f"short {n}", tags=("even" if n % 2 == 0 else "odd",))

    def claims(names: str, **fields: object) -> list[str]:
        asked = [c.ClaimNext(project="short", agent=a, session=f"s-{a}", **fields) for a in names]  # type: ignore[arg-type]
        return [str(answer.receipt) for answer in world.batch(asked)]

    world.batch([c.Submit(project="short", receipt=r, data="first") for r in claims("abcdef", lease=12 * HOUR)])
    finished = claims("abcdef", lease=12 * HOUR)
    world.batch([c.Submit(project="short", receipt=r, data={"n": n}) for n, r in enumerate(finished)])
    world.wait(61)
    moved = mover.move_all(world.engine, "short")
    assert (moved.tasks, moved.failed) == (12, {}), moved
    world.do(c.Note, task=finished[0].partition("@")[0], text="brought back by a note")
    world.keep("by the short way, archived", finished[1], "ACCEPTED", data={"n": 1})
    world.keep("by the short way, brought back", finished[0], "ACCEPTED", data={"n": 0})
    held = claims("abcdef", lease=12 * HOUR)
    world.batch([c.Renew(project="short", receipt=r, lease=12 * HOUR) for r in held[:3]])
    for n, receipt in enumerate(held):
        world.keep(f"by the short way {n}", receipt, "ACCEPTED")
    done = claims("gh", lease=12 * HOUR)
    world.batch([c.Submit(project="short", receipt=r, data="kept", request_id=f"end-{n}") for n, r in enumerate(done)])
    world.keep("by the short way, accepted", done[0], "ACCEPTED", data="kept")
    with_request = [
        c.ClaimNext(project="short", agent=a, session=f"s-{a}", lease=12 * HOUR, request_id=f"short-{a}") for a in "abc"
    ]
    world.batch(with_request)
    process = Process(host="h", boot="b", pid=9, start=90)
    (receipt,) = claims("p", lease=12 * HOUR, process=process)
    world.keep("by the short way, with a process", receipt, "ACCEPTED")
    totals = (Totals(model="haiku", fresh=7, cost_usd="0.01"),)
    (receipt,) = claims("q", lease=12 * HOUR)
    world.do(c.Submit, receipt=receipt, data="with usage", usage=totals)
    taken_again, *late = claims("xyz", lease=60)
    world.wait(61)
    world.engine.sweep("short")
    world.keep("by the short way, late", late[0], "ACCEPTED")
    world.keep("by the short way, stale", taken_again, "STALE_GENERATION")
    world.keep("held by the second, short", world.take(taken_again.partition("@")[0], "ann"), "ACCEPTED")

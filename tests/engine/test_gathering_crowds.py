"""Many callers at once: the answers are those of one by one, nothing is claimed twice, and each gets its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.core import commands as c
from tenure.core.commands import Command, Principal
from tenure.core.errors import NotFound, Overloaded, TenureError
from tenure.core.records import Claim, Result, Task, replace
from tenure.engine import Engine
from tenure.engine.runtime.batcher import SLOTS, Batcher
from tenure.stores.memory import Memory
from tenure.stores.sqlite import Sqlite
from tenure.testing import FakeClock
from tenure.testing.engine.histories import History, Player, standing
from tenure.testing.factories import AGENT, MEMBER, OWNER, PROJECT, Scene, code_of, comparable
from tests.engine.gathering_ground import OTHER, Crowd, Held, Room, add, memory, stored, titles, until

SPEAKERS = (OWNER, OWNER, MEMBER, AGENT)  # one for each caller


class Chance:
    token = staticmethod(os.urandom)
    fraction = staticmethod(Random(0).random)


# --- the same as one by one ---


class Rounds:
    """A history cut into rounds: commands made beforehand, sent by several callers, then the clock moves."""

    def __init__(self, seed: int, length: int) -> None:
        self.rounds: list[tuple[list[Any], float]] = []
        steps: list[Any] = []
        for step in History(seed, length):
            if callable(step):
                steps.append(step)
            elif len(steps) >= 8:
                self.rounds.append((steps, step))
                steps = []


def made(steps: list[Any], player: Player) -> list[Command]:
    """Every command with its number as its trace, by which it is found again."""
    return [replace(step(player), trace_id=str(n)) for n, step in enumerate(steps)]


def gathered(seed: int, in_flight: int) -> tuple[list[list[tuple[int, int]]], list[Any], Any]:
    """The order (number, caller) in which each round was run, its answers, and where every task stands in the end."""
    callers = Random(seed)
    clock = FakeClock()
    store = Memory(clock=clock)
    scene = Scene(store, clock)
    engine = Held(store)
    player = Player(scene)
    orders: list[list[tuple[int, int]]] = []
    answers: list[Any] = []
    with Batcher(engine, in_flight=in_flight) as batcher:
        for steps, seconds in Rounds(seed, 60).rounds:
            batch = made(steps, player)
            before = len(engine.batches)
            sender: list[int] = []
            promises = []
            for command in batch:
                caller = callers.randrange(len(SPEAKERS))
                sender.append(caller)
                promises.append(batcher.submit(command, SPEAKERS[caller], caller=caller))
                if callers.random() < 0.3:
                    engine.let()
            engine.let(len(batch))  # enough for all of them, were each to go alone
            got = [p.exception(30) or p.result() for p in promises]
            order = [int(command.trace_id or "") for done in engine.batches[before:] for command in done]
            for caller in set(sender):
                mine = [n for n in order if sender[n] == caller]
                assert mine == sorted(mine), "a caller's order was not kept"
            orders.append([(n, sender[n]) for n in order])
            for n in order:
                player.learn(batch[n], got[n])
                answers.append((type(batch[n]).__name__, comparable(got[n])))
            clock.advance(seconds=seconds)
            engine.hold()
    assert scene.engine.verify() == []
    assert any(len(done) > 1 for done in engine.batches)
    return orders, answers, standing(scene)


def one_by_one(seed: int, orders: list[Any]) -> tuple[list[Any], Any]:
    """The same commands in that order, each in a transaction of its own."""
    clock = FakeClock()
    scene = Scene(Memory(clock=clock), clock)
    player, answers = Player(scene), []
    for (steps, seconds), order in zip(Rounds(seed, 60).rounds, orders, strict=True):
        batch = made(steps, player)
        got = {n: scene.run(batch[n], by=SPEAKERS[caller])[0] for n, caller in order}
        for n, answer in got.items():
            player.learn(batch[n], answer)
            answers.append((type(batch[n]).__name__, comparable(answer)))
        clock.advance(seconds=seconds)
    return answers, standing(scene)


@pytest.mark.parametrize("in_flight", [1, 2])
@given(seed=st.integers(0, 10_000))
def test_the_answers_are_those_of_one_by_one_in_an_order_that_every_caller_recognises(
    in_flight: int, seed: int
) -> None:
    orders, answers, stands = gathered(seed, in_flight)
    assert len(answers) > 10
    expected, where = one_by_one(seed, orders)
    assert answers == expected
    assert stands == where


# --- threads ---


THREADS = 64
EACH = 12


def claim_next(agent: str) -> c.ClaimNext:
    return c.ClaimNext(project=PROJECT, agent=agent, session=f"s-{agent}")


def ready(engine: Engine, count: int) -> None:
    engine.do(c.DefineProject(project=PROJECT))
    for start in range(0, count, 500):
        engine.run([add(f"t{n}") for n in range(start, min(start + 500, count))])


def test_sixty_four_threads_claim_every_task_once_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    engine = Engine(Sqlite(str(tmp_path / "store.db")), Chance())
    ready(engine, THREADS * EACH)

    def work(number: int) -> list[tuple[str, str]]:
        """(task, receipt) of all that it got; with every third command one that fails."""
        me, held = f"agent-{number}", []
        by = Principal(role="agent", agent=me)
        for n in range(EACH):
            grant = batcher.do(claim_next(me), by)
            assert (grant.outcome, grant.task and grant.task["agent"]) == ("GRANTED", me), grant
            if n % 3 == 0:
                with pytest.raises(NotFound, match=f"nothing-{number}-{n}"):
                    batcher.do(c.ClaimTask(project=PROJECT, task=f"nothing-{number}-{n}", agent=me, session=me), by)
            done = batcher.do(c.Submit(project=PROJECT, receipt=grant.receipt or "", data=[number, n]), by)
            assert done.outcome == "ACCEPTED"
            held.append((str((grant.task or {})["id"]), str(grant.receipt)))
        return held

    with Batcher(engine) as batcher:
        got = Crowd(THREADS, work).ended()
    assert [error for error in got.values() if isinstance(error, BaseException)] == []
    tasks = Counter(task for held in got.values() for task, _ in held)
    assert set(tasks.values()) == {1}, "a task was given to two"
    with engine.store.begin("local", write=False) as tx:
        assert set(tasks) == {t.id for t in tx.find(Task, {"state": "completed"})}
        claims = {(claim.task, claim.agent) for claim in tx.find(Claim, {})}
        results = {r.task: r.data for r in tx.find(Result, {"accepted": True})}
    assert claims == {(task, f"agent-{n}") for n, held in got.items() for task, _ in held}
    assert results == {task: [n, k] for n, held in got.items() for k, (task, _) in enumerate(held)}
    assert engine.verify() == []
    engine.store.close()


# --- asyncio ---


def test_a_thousand_tasks_of_a_loop_claim_a_thousand_tasks(tmp_path: Path) -> None:
    engine = Engine(Sqlite(str(tmp_path / "store.db")), Chance())
    ready(engine, 1000)
    sizes: list[int] = []

    class Counting(Batcher):
        def _finish(self, batch: Any) -> None:
            sizes.append(len(batch))
            super()._finish(batch)

    async def claim(number: int) -> tuple[int, str, str]:
        grant = await batcher.ado(claim_next(f"agent-{number}"))
        assert grant.task is not None
        return number, grant.task["id"], grant.task["agent"]

    async def main() -> list[tuple[int, str, str]]:
        return await asyncio.gather(*(claim(n) for n in range(1000)))

    with Counting(engine) as batcher:
        got = asyncio.run(main())
    assert [agent for _, _, agent in got] == [f"agent-{n}" for n in range(1000)]
    with engine.store.begin("local", write=False) as tx:
        assert {task for _, task, _ in got} == {t.id for t in tx.find(Task, {})}
        assert {(t, a) for _, t, a in got} == {(claim.task, claim.agent) for claim in tx.find(Claim, {})}
    assert sum(sizes) == 1000
    assert len(sizes) < 100, "they were hardly gathered"
    engine.store.close()


def test_an_awaited_error_is_raised_to_its_own_caller() -> None:
    room = Room()
    room.engine.let_all()

    async def main() -> list[Any]:
        asked = [add("one"), c.Cancel(project=PROJECT, task="A-999"), add("two")]
        return await asyncio.gather(*(room.batcher.ado(a) for a in asked), return_exceptions=True)

    assert [code_of(answer) for answer in asyncio.run(main())] == ["CREATED", "NOT_FOUND", "CREATED"]
    room.end()


def test_a_cancelled_task_takes_its_command_back_unless_a_batch_has_it() -> None:
    room = Room()

    async def main() -> list[Any]:
        flying = asyncio.create_task(room.batcher.ado(add("flying")))
        await asyncio.to_thread(room.engine.next_batch)
        waiting = [asyncio.create_task(room.batcher.ado(add(f"t{n}"))) for n in range(3)]
        await asyncio.to_thread(until, lambda: room.batcher.waiting == 3)
        for task in (flying, waiting[1]):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            assert task.cancelled()
        assert room.batcher.waiting == 2
        room.engine.let_all()
        return list(await asyncio.gather(waiting[0], waiting[2]))

    assert [outcome.task["title"] for outcome in asyncio.run(main())] == ["t0", "t2"]
    room.end()
    assert titles(room.engine.batches[0]) == ["flying"], "what a batch has is done, whoever still listens"
    assert stored(room.store) == ["flying", "t0", "t2"]


def test_what_one_batch_cannot_take_of_a_turn_flies_beside_it() -> None:
    room = Room(in_flight=2)

    async def main() -> list[list[Command]]:
        asked = [c.ClaimNext(project=p, agent="ann", session="s", n=SLOTS) for p in (PROJECT, OTHER)]
        tasks = [asyncio.create_task(room.batcher.ado(a)) for a in asked]
        began = [await asyncio.to_thread(room.engine.next_batch) for _ in asked]
        room.engine.let_all()
        await asyncio.gather(*tasks, return_exceptions=True)
        return began

    assert [[command.project for command in batch] for batch in asyncio.run(main())] == [[PROJECT], [OTHER]]
    room.end()


def test_tasks_that_are_too_many_are_refused_and_the_others_served() -> None:
    room = Room(most_waiting=5)
    room.blocked()

    async def main() -> list[Any]:
        tasks = [asyncio.create_task(room.batcher.ado(add(f"t{n}"))) for n in range(20)]
        await asyncio.to_thread(until, lambda: sum(task.done() for task in tasks) == 15)
        room.engine.let_all()
        return await asyncio.gather(*tasks, return_exceptions=True)

    answers = asyncio.run(main())
    assert Counter(map(code_of, answers)) == {"CREATED": 5, "OVERLOADED": 15}
    assert all(isinstance(a, Overloaded) for a in answers if isinstance(a, TenureError))
    room.end()


def test_a_loop_that_was_closed_does_not_keep_others_from_their_answers() -> None:
    room = Room(memory())

    async def leave_behind() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(room.batcher.ado(add("left behind"), caller="gone"))
        left.append(task)
        await asyncio.to_thread(room.engine.next_batch)
        loop.stop()

    left: list[Any] = []
    loop = asyncio.new_event_loop()
    starter = loop.create_task(leave_behind())
    loop.run_forever()
    assert starter.done()
    crowd = Crowd(4, lambda n: room.batcher.do(add(f"t{n}")))
    until(lambda: room.batcher.waiting == 4)
    loop.close()
    room.engine.let_all()
    assert {o.outcome for o in crowd.ended().values()} == {"CREATED"}
    left[0]._log_destroy_pending = False  # its loop is gone on purpose
    left.clear()
    room.end()
    assert "left-behind" in stored(room.store)

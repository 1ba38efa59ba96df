"""AsyncClient on a store: gathered commands, waiters that are woken, nothing left behind."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time

import pytest

from tenure import AsyncClient, Client
from tenure.client.verbs import Verbs
from tests.client.conftest import Place

MANY = 50
PATIENCE = 20.0


def test_both_clients_have_the_same_methods_written_once() -> None:
    shared = {name for name, _ in inspect.getmembers(Verbs, inspect.isfunction) if not name.startswith("_")}
    for kind, own in ((Client, {"claim_or_wait"}), (AsyncClient, set())):
        assert {name for name in shared if getattr(kind, name) is not getattr(Verbs, name)} == own


def test_many_tasks_of_one_loop_claim_and_submit_at_once(place: Place) -> None:
    async def play() -> set[str]:
        async with AsyncClient(place.url, "shop", agent="ann") as ann:
            await asyncio.gather(*(ann.add(f"T{n}") for n in range(MANY)))

            async def work(number: int) -> str:
                got = await ann.claim()
                assert got.receipt is not None
                assert got.task is not None
                assert (await ann.submit(got.receipt, number)).ok
                return str(got.task["key"])

            return set(await asyncio.gather(*(work(n) for n in range(MANY))))

    assert len(asyncio.run(play())) == MANY
    with place.client() as mia:
        assert mia.status()["tasks"] == {"completed": MANY}


def test_a_waiting_claim_is_woken_by_the_task_that_comes(place: Place) -> None:
    async def play() -> float:
        async with AsyncClient(place.url, "shop", agent="ann") as ann, AsyncClient(place.url, "shop") as boss:
            waiting = [asyncio.create_task(_claimed(ann)) for _ in range(3)]
            mark = await boss.mark()
            began = time.monotonic()
            for _ in waiting:
                await boss.add("Work")
            assert await boss.wait_for_news(mark, PATIENCE)
            assert set(await asyncio.gather(*waiting)) == {"GRANTED"}
            return time.monotonic() - began

    assert asyncio.run(play()) < 4.0, "by the event, and not by the poll"


async def _claimed(client: AsyncClient) -> str:
    return (await client.claim(wait=PATIENCE)).outcome


def test_waiting_ends_with_its_time_or_its_task(place: Place) -> None:
    before = {thread for thread in threading.enumerate() if thread.name.startswith("tenure-")}

    async def play() -> None:
        async with AsyncClient(place.url, "shop") as ann:
            assert (await ann.claim(wait=0.05)).outcome == "NO_TASK"
            assert not await ann.wait_for_news(await ann.mark(), 0.05)
            assert await ann.wait_for_news(0, PATIENCE), "what came before is news too"
            waiting = asyncio.create_task(_claimed(ann))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(play())
    assert {thread for thread in threading.enumerate() if thread.name.startswith("tenure-")} <= before

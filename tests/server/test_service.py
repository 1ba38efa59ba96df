"""What a process does with commands whose callers go away, and with more than it can take."""

import asyncio
import threading

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import OWNER, NewTask
from tenure.core.errors import Overloaded
from tenure.core.queries import History, Status
from tenure.engine import Engine
from tenure.engine.reads.query_table import read_query
from tenure.server.service import Service
from tenure.stores.open_store import open_store


@pytest.fixture
def engine():
    engine = Engine(open_store("memory://"), SystemRandom())
    engine.do(c.DefineProject(project="p"))
    return engine


class Gate:
    """Holds the engine's batches up, so that a test can act while one is on its way."""

    def __init__(self, engine):
        self.inside, self.open = threading.Event(), threading.Event()
        self._run = engine.commit_checked
        engine.commit_checked = self

    def __call__(self, batch, callers):
        self.inside.set()
        assert self.open.wait(20)
        return self._run(batch, callers)


def claim(**more):
    return c.ClaimNext(project="p", agent="a", session="s", **more)


async def cancelled_inside(engine, command):
    """A waiting claim whose caller goes while a batch has it; the lineage of the task once all is done."""
    engine.do(c.Add(project="p", task=NewTask(title="t")))
    gate, service = Gate(engine), Service(engine)
    waiting = asyncio.ensure_future(service.claim_or_wait(command, OWNER, 30))
    await asyncio.to_thread(gate.inside.wait)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.open.set()
    for _ in range(2):  # behind the claim, and behind what follows from it
        await service.do(c.Note(project="p", task="A-001", text="n"), OWNER)
    await asyncio.to_thread(service.batcher.close)
    return read_query(engine, History(project="p", task="A-001"))


async def test_a_claim_that_nobody_waits_for_any_more_is_given_back(engine):
    (first,) = await cancelled_inside(engine, claim())
    assert (first["state"], first["release_reason"]) == ("released", "STOPPED")


async def test_a_claim_with_a_request_id_stays_for_who_asks_again(engine):
    (first,) = await cancelled_inside(engine, claim(request_id="r1"))
    assert first["state"] == "active"
    again = engine.do(claim(request_id="r1"))
    assert again.receipt is not None


async def test_a_claim_that_no_batch_has_is_taken_back_unseen(engine):
    engine.do(c.Add(project="p", task=NewTask(title="t")))
    gate, service = Gate(engine), Service(engine)
    ahead = asyncio.ensure_future(service.do(c.Note(project="p", task="A-001", text="n"), OWNER))
    await asyncio.to_thread(gate.inside.wait)
    waiting = asyncio.ensure_future(service.claim_or_wait(claim(), OWNER, 30))
    await asyncio.sleep(0)  # its task begins, and stands in line at once
    assert service.batcher.waiting == 1
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.open.set()
    await ahead
    await asyncio.to_thread(service.batcher.close)
    assert read_query(engine, History(project="p", task="A-001")) == []


async def test_looks_beyond_the_bound_are_refused(engine, monkeypatch):
    monkeypatch.setattr(limits, "READS_WAITING", 1)
    service = Service(engine)
    gate = threading.Event()
    first = asyncio.ensure_future(service.read_in_thread(gate.wait, 20))
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await service.look(Status(project="p"), OWNER)
    gate.set()
    await first
    assert (await service.look(Status(project="p"), OWNER))["project"] == "p"

"""What was taken for a call that nobody waits for any more is given back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from tenure.client import Client
from tenure.mcp.replies import Reply
from tenure.mcp.tools import TOOLS, Call
from tests.mcp.conftest import Agent, Connect

pytestmark = pytest.mark.anyio


async def cancelled(agent: Agent, owner: Client, tool: str, **arguments: object) -> None:
    """A call that is cancelled at work, while another's writing holds it up; it goes on when that is over."""
    begun = threading.Event()

    def run(call: Call, given: Any) -> Reply:
        begun.set()
        return whole.run(call, given)

    whole = TOOLS[tool]
    with pytest.MonkeyPatch.context() as patch, owner.store.begin("local", write=True):
        patch.setitem(TOOLS, tool, whole._replace(run=run))
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: agent(tool, **arguments))
            await until(begun.is_set)
            group.cancel_scope.cancel()
        await agent.client.list_prompts()  # answered after the cancellation was read


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not is_so():
            await anyio.lowlevel.checkpoint()


async def test_a_task_claimed_for_nobody_is_released(here: Connect, owner: Client) -> None:
    owner.add("x")
    async with here("s1", agent="ann") as agent:
        await agent("message", text="I am here")  # so that it is known, and the claim is all there is to write
        await cancelled(agent, owner, "claim")
        await until(lambda: any(claim["release_reason"] for claim in owner.history("A-001")))
        assert (await agent("show", what="held"))["tasks"] == []
    (generation,) = owner.history("A-001")
    assert (generation["agent"], generation["release_reason"]) == ("ann", "VOLUNTARY")
    assert owner.show("A-001")["state"] == "ready"


async def test_a_reservation_made_for_nobody_is_let_go(here: Connect, owner: Client) -> None:
    async with here("s1", agent="ann") as agent:
        await agent("message", text="I am here")
        await cancelled(agent, owner, "reserve", patterns=["port:8080"])
        await until(lambda: "reservation.released" in [event["kind"] for event in owner.log()])
    assert owner.reservations() == []


async def test_what_was_written_for_a_holder_stays(here: Connect, owner: Client) -> None:
    owner.add("x")
    async with here("s1", agent="ann") as agent:
        receipt = (await agent("claim"))["receipt"]
        await cancelled(agent, owner, "update", receipt=receipt, percent=70)
        await until(lambda: owner.show("A-001").get("percent") == 70)
        assert (await agent("finish", receipt=receipt, outcome="done")).outcome == "ACCEPTED"


async def test_claims_that_wait_are_called_off(here: Connect, owner: Client) -> None:
    async with here("s1", agent="ann") as ann, here("s2", agent="bo") as bo:
        waiting = ann.service.threads.waits
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(lambda: ann("claim", wait=300))
            await until(lambda: waiting.borrowed_tokens == 4)
            group.cancel_scope.cancel()
        await until(lambda: waiting.borrowed_tokens == 0)
        owner.add("x")
        assert (await bo("claim")).outcome == "GRANTED"
        assert (await ann("show", what="held"))["tasks"] == []

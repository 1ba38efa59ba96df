"""The way to a store for asyncio: commands are gathered, looks run in threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenure.client.contents import AsyncGot, in_threads
from tenure.client.ways.bell import Bell
from tenure.client.ways.local import Local
from tenure.core.commands import ClaimNext, Command, Principal
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.engine.runtime.work_wait import POLL_WITH_WAKE_UPS, POLL_WITHOUT, SHORTEST
from tenure.stores.port import WAKE_UPS

if TYPE_CHECKING:
    from tenure.client.contents import Putting, Wanted
    from tenure.core.queries import Query
    from tenure.engine import Random
    from tenure.stores.port import Clock


class LocalAsync:
    def __init__(
        self, url: str, *, chance: Random, create: bool, clock: Clock | None, artifacts: str | None = None
    ) -> None:
        self._local = Local(
            url, chance=chance, create=create, gather=True, clock=clock, monotonic=time.monotonic, pause=time.sleep,
            artifacts=artifacts,
        )  # fmt: skip
        self.url = self._local.url
        self._bell = Bell(self._local.store)
        self._poll = POLL_WITH_WAKE_UPS if WAKE_UPS in self._local.store.features else POLL_WITHOUT

    async def do(self, command: Command, principal: Principal) -> Outcome:
        assert self._local.gatherer is not None
        return await self._local.gatherer.ado(command, principal)

    async def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await asyncio.to_thread(self._local.run, batch, principal)

    async def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await asyncio.to_thread(self._local.preview, batch, principal)

    async def stay(self, command: ClaimNext, seconds: float, principal: Principal) -> Outcome:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + seconds
        while True:
            mark = await self.mark(command.project, principal)  # before the look: what is written after it will wake us
            outcome = await self.do(command, principal)
            left = give_up - loop.time()
            if outcome.outcome != "NO_TASK" or left <= 0:
                return outcome
            wait = min(left, self._poll)
            if outcome.retry_in is not None:
                wait = min(wait, max(SHORTEST, outcome.retry_in))
            await self._bell.wait(mark, wait)

    async def look(self, query: Query, principal: Principal) -> Any:
        return await asyncio.to_thread(self._local.look, query, principal)

    async def put(self, asked: Putting, principal: Principal) -> Outcome:
        return await asyncio.to_thread(self._local.put, asked, principal)

    async def get(self, asked: Wanted, principal: Principal) -> AsyncGot:
        got = await asyncio.to_thread(self._local.get, asked, principal)
        return AsyncGot(got.view, in_threads(iter(got)))

    async def mark(self, project: str, principal: Principal) -> int:
        return await asyncio.to_thread(self._local.store.mark)

    async def wait(self, mark: int, seconds: float, project: str, principal: Principal) -> bool:
        return await self._bell.wait(mark, seconds)

    async def now(self, project: str, principal: Principal) -> int:
        return await asyncio.to_thread(self._local.now, project, principal)

    async def close(self) -> None:
        await asyncio.to_thread(self._bell.close)
        await asyncio.to_thread(self._local.close)

"""All that one server process has, and the two things it does: run a command, answer a look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import ClaimNext, Command, Principal
from tenure.core.errors import Overloaded, StoreError, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query
from tenure.engine import Engine
from tenure.engine.reads.query_table import look
from tenure.engine.runtime.batcher import Batcher
from tenure.server.feed import Feed
from tenure.server.waiting_room import StillGood, WaitingRoom

T = TypeVar("T")
READERS = 4  # threads that look; reading holds no lock, but Python lets one think at a time
BATCHERS = 2  # that run batches which came as such
MOST_WAITING = limits.READS_WAITING


class Eyes(Protocol):
    """Who is told of what happens here."""

    def observe(self, command: Command, principal: Principal, answer: Outcome | TenureError, seconds: float) -> None:
        """A command, with its answer."""

    def holding(self, kind: str) -> AbstractContextManager[None]:
        """While a request waits for something to happen: `claims`, `events` or `news`."""

    def store_failed(self, error: TenureError) -> None:
        """The store could not do its part in a look."""


class _Closed:
    """Eyes that see nothing."""

    def observe(self, *_: object) -> None: ...

    def holding(self, kind: str) -> AbstractContextManager[None]:
        return nullcontext()

    def store_failed(self, error: TenureError) -> None: ...


async def _always(_: Principal) -> bool:
    return True


class Part(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


class Service:
    """Lives in one event loop, from `start` to `close`."""

    def __init__(self, engine: Engine, eyes: Eyes | None = None) -> None:
        self.engine = engine
        self.is_still_good: StillGood = _always  # whether who was let in would still be: the sign-in says
        self.eyes: Eyes = eyes or _Closed()
        self.gatherer = Batcher(engine)
        self.feed = Feed(engine)
        self.room = WaitingRoom(self._claim, self._may_go_on)
        self.feed.listeners.append(self.room.hear)
        self._readers = Pool(READERS, "look")
        self._batchers = Pool(BATCHERS, "batch")
        self.beside: list[Part] = []  # what lives and ends with it
        self.is_closing = False

    async def _may_go_on(self, principal: Principal) -> bool:
        return await self.is_still_good(principal)  # looked up each time: the sign-in is made after the service

    def start(self) -> None:
        self.feed.start(asyncio.get_running_loop())
        for part in self.beside:
            part.start()

    def begin_close(self) -> None:
        """Send home who only waits; what was taken in is still done. Safe from a signal handler of the loop."""
        self.is_closing = True
        self.room.close()
        self.feed.close()

    async def close(self) -> None:
        """Answer what was taken in, and let go of the store."""
        self.begin_close()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        for part in reversed(self.beside):
            part.stop()
        self.gatherer.close()
        self._readers.close()
        self._batchers.close()
        self.feed.join()
        self.engine.store.close()

    # --- commands ---

    async def do(self, command: Command, principal: Principal) -> Outcome:
        began = time.perf_counter()
        try:
            outcome = await self.gatherer.ado(command, principal)
        except TenureError as error:
            self.eyes.observe(command, principal, error, time.perf_counter() - began)
            raise
        self.eyes.observe(command, principal, outcome, time.perf_counter() - began)
        return outcome

    async def claim_or_wait(self, command: ClaimNext, principal: Principal, seconds: float) -> Outcome:
        """As the command, but stays so long for something to take. Cancelled, it keeps nothing that nobody gets."""
        with self.feed.awaited(), self.eyes.holding("claims"):
            return await self.room.claim(command, principal, seconds)

    async def _claim(self, command: ClaimNext, principal: Principal) -> Outcome:
        """One look of somebody who waits, and may be gone before the answer."""
        began = time.perf_counter()
        claiming = self.gatherer.submit(command, principal, caller=object())
        try:
            outcome = await asyncio.wrap_future(claiming)
        except asyncio.CancelledError:
            # Its own cancellation has taken it back, unless a batch had it already. Who gave a request id asks again.
            if command.request_id is None and not claiming.cancelled():
                claiming.add_done_callback(partial(self._give_back, command.project, principal))
            raise
        except TenureError as error:
            self.eyes.observe(command, principal, error, time.perf_counter() - began)
            raise
        self.eyes.observe(command, principal, outcome, time.perf_counter() - began)
        return outcome

    def _give_back(self, project: str, principal: Principal, claiming: Future[Outcome]) -> None:
        if claiming.exception() is not None:
            return
        outcome = claiming.result()
        for granted in outcome.claims or (outcome,):
            if granted.receipt is not None:
                release = c.Release(project=project, receipt=granted.receipt, reason="nobody waited for it any more")
                with suppress(TenureError):  # closing, or full: its lease ends it
                    self.gatherer.submit(release, principal, caller=object())

    async def batch(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        began = time.perf_counter()
        answers = await self._batchers.run(self.engine.run, batch, principal)
        each = (time.perf_counter() - began) / max(1, len(batch))
        for command, answer in zip(batch, answers, strict=True):
            self.eyes.observe(command, principal, answer, each)
        return answers

    async def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await self._readers.run(self.engine.preview, batch, principal)

    # --- looks ---

    async def look(self, query: Query, principal: Principal) -> Any:
        try:
            return await self._readers.run(look, self.engine, query, principal)
        except StoreError as error:
            self.eyes.store_failed(error)
            raise

    async def aside(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run something that reads in a thread."""
        return await self._readers.run(function, *arguments)

    async def write(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run something that writes in a thread."""
        return await self._batchers.run(function, *arguments)


class Pool:
    """Threads with a bounded line before them."""

    def __init__(self, threads: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(threads, f"tenure-{name}")
        self._inside = 0

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        if self._inside >= MOST_WAITING:
            raise Overloaded(f"{self._inside} requests wait already", "nothing was done: send it again in a moment")
        self._inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)
        finally:
            self._inside -= 1

    def close(self) -> None:
        self._threads.shutdown()

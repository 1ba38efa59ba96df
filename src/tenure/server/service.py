"""What a server process has for one tenant, and its two operations: run a command, run a query.

Threads are the store's, not the tenant's: a tenant that nobody uses has none, and nothing here polls for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import ClaimNext, Command, Principal
from tenure.core.errors import Overloaded, StoreError, TenureError, close_all
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query
from tenure.engine import Engine
from tenure.engine.reads.costly import gate
from tenure.engine.reads.query_table import read_query
from tenure.engine.runtime.batcher import Batcher, TenantBatcher
from tenure.server.feed import Feed, FeedReader
from tenure.server.metrics import Metrics
from tenure.server.waiting_claims import StillValid, WaitingClaims

T = TypeVar("T")
READERS = 4  # reader threads; reads take no lock, but only one thread runs Python code at a time
BATCH_THREADS = 2  # threads for batches that a client sent as such


Observe = Callable[[Command, Principal, Outcome | TenureError, float], None]  # a command, its answer, its seconds


async def _always(_: Principal) -> bool:
    return True


class Part(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


class StoreThreads:
    """The threads of one store, which serve all its tenants: writers, readers, the reader of the logs."""

    def __init__(self, engine: Engine) -> None:
        self.store = engine.store
        self.batcher = Batcher(engine)
        self.reader = FeedReader()
        self.readers = ThreadPool(READERS, "look")
        self.batch_threads = ThreadPool(BATCH_THREADS, "batch")
        self.costly = ThreadPool(limits.COSTLY, "costly", limits.COSTLY + limits.COSTLY_WAITING)

    def close(self) -> None:
        """Finish accepted commands and queries, then close the store."""
        close_all(
            self.batcher.close,
            self.readers.close,
            self.batch_threads.close,
            self.costly.close,
            self.reader.close,
            self.reader.join,
            self.store.close,
        )


class Service:
    """One tenant of a server. Runs in one event loop, from `start` to `close`.

    `threads`: those of its store; by default it has its own, and closes them.
    """

    def __init__(self, engine: Engine, metrics: Metrics | None = None, threads: StoreThreads | None = None) -> None:
        self.engine, self.tenant = engine, engine.tenant
        self.is_still_valid: StillValid = _always  # whether a principal would still be authenticated
        self.metrics = metrics or Metrics()
        self.observers: list[Observe] = [self.metrics.observe]  # called for each answered command
        self.threads = threads or StoreThreads(engine)
        self.batcher: Batcher | TenantBatcher = (
            self.threads.batcher if threads is None else self.threads.batcher.of(engine)
        )
        self.feed = Feed(engine, self.threads.reader)
        self.waiting_claims = WaitingClaims(self._claim, self._may_go_on, self.feed.listeners)
        self._readers, self._batch_threads = self.threads.readers, self.threads.batch_threads
        self.parts: list[Part] = []  # start and stop with the service
        self.is_closing = False
        self.has_news = False  # events came since somebody last looked

    async def _may_go_on(self, principal: Principal) -> bool:
        return await self.is_still_valid(principal)  # which is set after the service is made

    def start(self) -> None:
        self.feed.start(asyncio.get_running_loop())
        for part in self.parts:
            part.start()

    @property
    def is_used(self) -> bool:
        """Whether a request waits here or follows the log."""
        return self.feed.is_used or self.waiting_claims.waiting > 0

    def begin_close(self) -> None:
        """Answer requests that only wait; accepted commands still run. Safe in a signal handler of the loop."""
        self.is_closing = True
        close_all(self.waiting_claims.close, self.feed.close)

    def leave(self) -> None:
        """Answer requests that only wait, as `begin_close` does; other tenants of the store go on."""
        self.is_closing = True
        close_all(self.waiting_claims.close, self.feed.leave)

    async def close(self) -> None:
        """Finish accepted requests, then close the store."""
        try:
            self.begin_close()
        finally:
            await asyncio.to_thread(self.shut)

    def shut(self) -> None:
        """Stop the parts, finish accepted requests, close the store. Blocks."""
        close_all(*(part.stop for part in reversed(self.parts)), self.threads.close)

    # --- commands ---

    async def do(self, command: Command, principal: Principal) -> Outcome:
        return await self._observed(command, principal, self.batcher.ado(command, principal))

    async def _observed(self, command: Command, principal: Principal, answer: Awaitable[Outcome]) -> Outcome:
        began = time.perf_counter()
        try:
            outcome = await answer
        except TenureError as error:
            self.observe(command, principal, error, time.perf_counter() - began)
            raise
        self.observe(command, principal, outcome, time.perf_counter() - began)
        return outcome

    def observe(self, command: Command, principal: Principal, answer: Outcome | TenureError, seconds: float) -> None:
        """Pass an answered command to the observers."""
        for observe in self.observers:
            observe(command, principal, answer, seconds)

    async def claim_or_wait(self, command: ClaimNext, principal: Principal, seconds: float) -> Outcome:
        """Run the command, and wait up to `seconds` for a task. A task granted after a cancellation is released."""
        with self.feed.awaited(), self.metrics.waiting_request("claims"):
            return await self.waiting_claims.claim(command, principal, seconds)

    async def _claim(self, command: ClaimNext, principal: Principal) -> Outcome:
        """One try of a waiting claim, whose client may disconnect before the outcome."""
        claiming = self.batcher.submit(command, principal, caller=object())
        try:
            return await self._observed(command, principal, asyncio.wrap_future(claiming))
        except asyncio.CancelledError:
            # The cancellation removed it, unless a batch has already run it. A client with a request id sends it again.
            if command.request_id is None and not claiming.cancelled():
                claiming.add_done_callback(partial(self._give_back, command.project, principal))
            raise

    def _give_back(self, project: str, principal: Principal, claiming: Future[Outcome]) -> None:
        if claiming.exception() is not None:
            return
        outcome = claiming.result()
        for granted in outcome.claims or (outcome,):
            if granted.receipt is not None:
                release = c.Release(
                    project=project, receipt=granted.receipt, reason="the client disconnected while it waited",
                    stopped=True,
                )  # fmt: skip
                with suppress(TenureError):  # closing, or overloaded: the lease ends it
                    self.batcher.submit(release, principal, caller=object())

    async def batch(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        began = time.perf_counter()
        answers = await self._batch_threads.run(self.engine.run, batch, principal)
        each = (time.perf_counter() - began) / max(1, len(batch))
        for command, answer in zip(batch, answers, strict=True):
            self.observe(command, principal, answer, each)
        return answers

    async def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await self._readers.run(self.engine.preview, batch, principal)

    async def costly_preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await self.costly_in_thread(self.engine.preview, batch, principal)

    # --- queries ---

    async def look(self, query: Query, principal: Principal) -> Any:
        try:
            return await self._threads_for(query).run(read_query, self.engine, query, principal)
        except StoreError as error:
            self.metrics.store_failed(error)
            raise

    async def look_and_measure(self, query: Query, principal: Principal) -> tuple[Any, float]:
        """The view, and the seconds of processor time that reading it took."""

        def read() -> tuple[Any, float]:
            began = time.thread_time()
            return read_query(self.engine, query, principal), time.thread_time() - began

        try:
            return await self._threads_for(query).run(read)
        except StoreError as error:
            self.metrics.store_failed(error)
            raise

    def _threads_for(self, query: Query) -> ThreadPool:
        return self.threads.costly if query.is_costly else self._readers

    async def costly_in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function whose cost grows with the question: in one of few threads, behind the gate."""

        def behind() -> T:
            with gate():
                return function(*arguments)

        return await self.threads.costly.run(behind)

    async def read_in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that reads, in a thread."""
        return await self._readers.run(function, *arguments)

    async def write_in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run a function that writes, in a thread."""
        return await self._batch_threads.run(function, *arguments)


class ThreadPool:
    """Threads with a bounded queue."""

    def __init__(self, threads: int, name: str, most: int | None = None) -> None:
        """`most`: that run or wait."""
        self._threads = ThreadPoolExecutor(threads, f"tenure-{name}")
        self._inside, self._most = 0, limits.READS_WAITING if most is None else most

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        if self._inside >= self._most:
            raise Overloaded(
                f"{self._inside} requests already wait for a thread", "nothing was done; send it again in a moment"
            )
        self._inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)
        finally:
            self._inside -= 1

    def close(self) -> None:
        self._threads.shutdown()

"""The tenants that this process serves: what it keeps of each, from its first request until nobody uses it.

All threads belong to the store. A tenant's own part is its engine, its place in the log and its waiting requests: a few
kilobytes, without a thread, a timer or a poll.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial

from tenure.core import limits
from tenure.core.errors import StoreUnavailable, close_all, spelled
from tenure.core.events import Event
from tenure.core.records import Tenant
from tenure.core.tenant_records import HOME
from tenure.engine import Engine
from tenure.engine.runtime.batcher import Batcher, TenantBatcher
from tenure.engine.runtime.tenancy import TenantEngines, region_refused
from tenure.server.service import Part, Service, ThreadPool

IDLE = limits.TENANT_IDLE
APART = 4  # sign-ins of a tenant with its own store that read or write it at a time
LOOK_EVERY = 60.0  # seconds between two looks for tenants that nobody uses
Connect = Callable[[Service], None]  # connects a new service: its feed's listeners, its observers


class TenantServices:
    """In one event loop, but for `known`. `connect` is called for each new service."""

    def __init__(
        self,
        home: Service,
        engines: TenantEngines,
        connect: Connect,
        leader_of: Callable[[Engine], Part],
        most_stores: int = limits.MOST_STORES,
        monotonic: Callable[[], float] = time.monotonic,
        say: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`leader_of` makes what leads the store of a tenant that has its own, of which there are `most_stores`.

        `say` receives what a store that is left could not close.
        """
        self.home, self.engines = home, engines
        # Opens such stores, and reads and writes sign-ins in them. Threads begin when they are needed.
        self.apart = ThreadPool(APART * most_stores, "apart")
        self._leader_of = leader_of
        self._connect, self._monotonic, self._say = connect, monotonic, say
        self._services: dict[str, Service] = {}
        self._used: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __iter__(self) -> Iterator[Service]:
        return iter((self.home, *self._services.values()))

    def known(self) -> Sequence[str]:
        """The names of the tenants that are in use here. Safe in any thread."""
        return (HOME, *tuple(self._services))

    def of(self, row: Tenant | None, after: int | None = None) -> Service:
        """The service of an open tenant; `after`: where its feed begins, by default with what comes next."""
        if row is None:
            return self.home
        found = self._services.get(row.id)
        if found is not None and found.engine is not self._engine_of(row, found):
            self._drop(row.id)  # it has moved
            found = None
        if found is None:
            found = self._services[row.id] = self._made(row, after)
        self._used[row.id] = self._monotonic()
        return found

    def _engine_of(self, row: Tenant, service: Service) -> Engine:
        """The tenant's engine: that of the service, unless the tenant has another store or another home by now."""
        engine, had = self.engines.of(row), service.engine
        has_moved = engine.store is not had.store or region_refused(engine) != region_refused(had)
        return engine if has_moved else had

    def is_apart(self, tenant: str) -> bool:
        """Whether the tenant, which is in use here, has its own store."""
        found = self._services.get(tenant)
        return found is not None and found.threads is not self.home.threads

    def batcher_of(self, engine: Engine) -> Batcher | TenantBatcher:
        """The batcher of a tenant's commands, for threads; its own store has its own."""
        if engine.store is self.home.engine.store:
            return self.home.threads.batcher.of(engine)
        found = self._services.get(engine.tenant)
        if found is None:
            raise StoreUnavailable("the tenant's store was closed; send it again")
        return found.batcher

    def _made(self, row: Tenant, after: int | None) -> Service:
        home, engine = self.home, self.engines.of(row)
        is_far = engine.store is not home.engine.store
        made = Service(engine, home.metrics, None if is_far else home.threads)
        if is_far and engine.context.elsewhere is None:  # a store has a leader, in the tenant's home
            made.parts.append(self._leader_of(engine))
            for part in made.parts:
                part.start()
        made.is_still_valid, made.is_closing = home.is_still_valid, home.is_closing
        self._connect(made)
        if self._loop is not None:
            made.feed.start_later(self._loop, after)
        return made

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.home.start()
        for service in self._services.values():
            service.feed.start_later(self._loop)
        self._timer = self._loop.call_later(LOOK_EVERY, self._look)

    def _look(self) -> None:
        assert self._loop is not None
        self._timer = self._loop.call_later(LOOK_EVERY, self._look)
        self.drop_idle()

    def drop_idle(self) -> None:
        """Forget tenants that nobody has used for a while."""
        now = self._monotonic()
        for name, service in list(self._services.items()):
            if service.is_used or service.has_news:
                service.has_news = False
                self._used[name] = now
            elif now - self._used[name] >= IDLE:
                self._drop(name)

    def end(self, name: str) -> None:
        """Nobody goes on in the tenant as it was: it was closed, or has moved."""
        if name in self._services:
            self._drop(name)

    def _drop(self, name: str) -> None:
        """Forget a tenant's service, and answer requests that only wait: who sends them again gets another."""
        service = self._services.pop(name)
        self._used.pop(name, None)
        try:
            service.leave()
        finally:
            if service.threads is not self.home.threads:
                threading.Thread(target=self._shut, args=(service,), name="tenure-closing", daemon=True).start()

    def _shut(self, service: Service) -> None:
        """Close what belongs to a store of one tenant. Blocks."""
        forget = partial(self.engines.close_one, service.tenant, service.engine.store)
        try:
            close_all(service.feed.close, service.shut, forget)
        except Exception as error:  # noqa: BLE001 - the rest is closed; who asked for it does not wait
            self._say(f"tenant {service.tenant}: a part of its store could not be closed: {spelled(error)}")

    def begin_close(self) -> None:
        """Answer requests that only wait. Safe in a signal handler of the loop."""
        if self._timer is not None:
            self._timer.cancel()
        close_all(*(service.begin_close for service in self))

    async def close(self) -> None:
        far = [service for service in self._services.values() if service.threads is not self.home.threads]
        async with AsyncExitStack() as stack:  # from the last line to the first, whatever one of them raises
            stack.push_async_callback(self.home.close)
            stack.callback(self.apart.close)
            stack.push_async_callback(self._shut_all, far)
            stack.callback(self.begin_close)

    async def _shut_all(self, services: Sequence[Service]) -> None:
        await asyncio.gather(*(asyncio.to_thread(self._shut, service) for service in services))

    def hears(self, tenant: str, events: Sequence[Event]) -> None:
        """A listener of a tenant's feed: it is in use while something happens in it."""
        service = self._services.get(tenant)
        if service is not None:
            service.has_news = True

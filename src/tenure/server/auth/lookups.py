"""What sign-ins have to read from stores: each lookup runs once, however many wait for it, and outages are noted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from tenure.core import limits
from tenure.core.caller_errors import not_remembered
from tenure.core.errors import Overloaded, StoreError, TenureError
from tenure.core.tenant_records import HOME
from tenure.engine import Engine
from tenure.server.auth.outages import Outages
from tenure.server.auth.row_cache import NeedsLookup, Recall

TRIES = 8  # lookups of a request: a stranger to a tenant with its own store needs five
AWAY = (StoreError, Overloaded)  # a store cannot be read now

T = TypeVar("T")
InThread = Callable[[Callable[[], object]], Awaitable[Any]]


class Lookups:
    """For one event loop."""

    def __init__(
        self,
        home: Engine,
        recall: Recall,
        read_in_thread: InThread,
        apart: InThread,
        monotonic: Callable[[], float],
    ) -> None:
        """`home` is the home tenant's engine; `read_in_thread` is for its store, `apart` for all others."""
        self._home, self._recall = home, recall
        self._read_in_thread, self._apart, self._monotonic = read_in_thread, apart, monotonic
        self.outages = Outages(monotonic)
        self.running: dict[str, asyncio.Future[Any]] = {}
        self.home_read_at = -limits.KEY_CACHE  # when the home store last answered

    async def resolved(self, ask: Callable[[], T]) -> T:
        """The result of `ask`, after the lookups that it needs. A lookup that many wait for runs once."""
        for _ in range(TRIES):
            try:
                return ask()
            except NeedsLookup as lookup:
                try:
                    await asyncio.shield(self._begun(lookup))
                except AWAY:
                    if lookup.tenant is None or lookup.store is self._home.store:
                        raise
        # Each lookup was outdated on arrival.
        raise Overloaded("keys change faster than they can be read", "nothing was done; send it again in a moment")

    async def recalled(self, ask: Callable[[], T]) -> T:
        """The result of `ask` by rows that are remembered; only an issuer's keys are looked up."""
        for _ in range(TRIES):
            try:
                with self._recall.using():
                    return ask()
            except NeedsLookup as lookup:
                if lookup.needs_store:
                    raise not_remembered() from None
                await asyncio.shield(self._begun(lookup))
        raise not_remembered()

    def _begun(self, lookup: NeedsLookup) -> asyncio.Future[Any]:
        running = self.running.get(lookup.name)
        if running is None:
            is_home, at = lookup.store is self._home.store, self._monotonic()
            in_thread, tenant = (self._read_in_thread, HOME) if is_home else (self._apart, lookup.tenant)
            running = self.running[lookup.name] = asyncio.ensure_future(in_thread(lookup.run))

            def ended(done: asyncio.Future[Any]) -> None:
                self.running.pop(lookup.name, None)
                if done.cancelled():
                    return
                error = done.exception()
                if tenant is not None and isinstance(error, AWAY):
                    self.outages.begin(tenant, error)
                elif is_home and error is None:
                    self.home_read_at = at
                    self.outages.end(HOME)

            running.add_done_callback(ended)
        return running

    def check_home(self) -> None:
        """Raise NeedsLookup unless the home store has just answered."""
        if self.outages.of(HOME) is not None or self._monotonic() - self.home_read_at >= limits.KEY_CACHE:
            raise self._home_look()

    def look_at_home(self) -> None:
        """Find out in the background whether the home store is back."""
        self._begun(self._home_look())

    def _home_look(self) -> NeedsLookup:
        return NeedsLookup("home store", lambda: self._home.read(lambda tx: tx.now), self._home.store, HOME)

    def look_again(self, tenant: str, engine: Callable[[], Engine]) -> None:
        """Find out in the background whether the tenant's own store has come back."""
        if not self.outages.is_due(tenant):
            return

        async def look() -> None:
            with suppress(TenureError):
                await self._apart(lambda: engine().read(lambda tx: tx.now))
                self.outages.end(tenant)

        name = f"{tenant} again"
        if name not in self.running:
            looking = self.running[name] = asyncio.ensure_future(look())
            looking.add_done_callback(lambda _: self.running.pop(name, None))

"""Webhooks and relays of the store's other tenants, while this process leads: a few threads for all of them.

The coordinator reports which tenants have events. Each of those gets the parts that the home tenant has as threads;
here they are stepped one after another, and forgotten once they have nothing to do. Hooks, notices, watched files and
pools run programs of the deployment, on its machines: those are for the home tenant alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from tenure.core.errors import TenureError, close_all
from tenure.core.records import Sink
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.leader_thread import GATHERED, PAUSE, LeaderThread
from tenure.engine.runtime.engine import Engine

AT_ONCE = 4  # tenants that are stepped at the same time
Leading = Callable[[], LeaderEngine | None]
Make = Callable[[Engine, Leading], Sequence[LeaderThread]]


class TenantParts:
    """`make` gives the parts of one tenant. `is_for_all`: also of a tenant without a webhook, since there are sinks."""

    def __init__(self, coordinator: Coordinator, make: Make, *, is_for_all: bool) -> None:
        self._coordinator, self._make, self._is_for_all = coordinator, make, is_for_all
        self._due: dict[str, float] = {}  # tenant → when its parts are stepped, in monotonic time
        self._stepping: set[str] = set()
        self._parts: dict[str, Sequence[LeaderThread]] = {}
        self._changed = threading.Condition()
        self._is_ended = False
        self._thread: threading.Thread | None = None
        self._pool: ThreadPoolExecutor | None = None

    def start(self) -> None:
        if self._coordinator.tenants is None:
            return  # the store keeps one tenant
        self._pool = ThreadPoolExecutor(AT_ONCE, "tenure-tenants")
        self._coordinator.tenants.listeners.append(self.hear)
        self._thread = threading.Thread(target=self._run, name="tenure-tenants", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
        if self._thread is not None and self._pool is not None:
            self._thread.join()
            self._pool.shutdown()
        close_all(*(part.stop for parts in self._parts.values() for part in parts))

    def hear(self, tenant: str) -> None:
        """The tenant has events, or is looked at for the first time in this term. In the coordinator's thread."""
        with self._changed:
            at = time.monotonic() + GATHERED  # events that follow share a step
            self._due[tenant] = min(at, self._due.get(tenant, at))
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._is_ended:
                    return
                now = time.monotonic()
                ready = [name for name, at in self._due.items() if at <= now and name not in self._stepping]
                if not ready:
                    waiting = [at for name, at in self._due.items() if name not in self._stepping]
                    self._changed.wait(max(0.001, min(waiting) - now) if waiting else None)
                    continue
                for name in ready:
                    del self._due[name]
                    self._stepping.add(name)
            for name in ready:
                assert self._pool is not None
                self._pool.submit(self._step, name)

    def _step(self, tenant: str) -> None:
        again: float | None = PAUSE  # after an error: no event would bring the tenant back
        try:
            again = self._stepped(tenant)
        except TenureError:
            pass
        finally:
            with self._changed:
                self._stepping.discard(tenant)
                if again is not None:
                    at = time.monotonic() + again
                    self._due[tenant] = min(at, self._due.get(tenant, at))
                self._changed.notify_all()

    def _stepped(self, tenant: str) -> float | None:
        """Step the tenant's parts; the seconds until they must be stepped again without an event."""
        leading = partial(self._coordinator.led_of, tenant)
        led = leading()
        if led is None:
            self._forget(tenant)
            return None
        parts = self._parts.get(tenant)
        if parts is None:
            if not self._is_for_all and not _has_readers(led):
                return None
            parts = self._parts[tenant] = self._make(led, leading)
        pauses = [(part.step(), part) for part in parts]
        waits = [pause for pause, part in pauses if not pause or part.has_more_to_do()]
        if waits:
            return min(waits)
        self._forget(tenant)
        return None

    def _forget(self, tenant: str) -> None:
        close_all(*(part.close for part in self._parts.pop(tenant, ())))


def _has_readers(engine: Engine) -> bool:
    return bool(engine.read(lambda tx: tx.find(Sink, {"project": ""}, limit=1)))

"""The stores of tenants that have their own: opened with their first use, closed again once nobody uses them.

A store that cannot be opened concerns its own tenant alone; it is tried again a moment later, not with every request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from tenure.core import limits
from tenure.core.errors import Overloaded, StoreUnavailable, TenureError, close_all
from tenure.stores.port import Store

AGAIN = 1.0  # seconds until a store that could not be opened is tried again


class Router:
    """Safe to use from several threads. `open` opens a store by its URL."""

    def __init__(
        self, open: Callable[[str], Store], monotonic: Callable[[], float], *, most: int = limits.MOST_STORES
    ) -> None:
        self._open, self._monotonic, self._most = open, monotonic, most
        self._stores: dict[str, tuple[bytes, Store]] = {}
        self._failed: dict[str, tuple[float, TenureError]] = {}
        self._opening: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def find(self, name: str, place: bytes) -> Store | None:
        """The store of the tenant, where it is open. `place`: where that is, as the tenant's row has it."""
        found = self._stores.get(name)
        return found[1] if found is not None and found[0] == place else None

    def store(self, name: str, place: bytes, opened: Callable[[Callable[[str], Store]], Store]) -> Store:
        """The store of the tenant, opened if it is not; raises StoreUnavailable, or Overloaded where too many are.

        `opened` opens it; it gets the function that opens one by its URL. A tenant that has moved gets its new store;
        the former one is closed by those who use it.
        """
        with self._lock:
            opening = self._opening.setdefault(name, threading.Lock())
        with opening:  # of this tenant alone: another that hangs delays nobody else
            found = self.find(name, place)
            if found is not None:
                return found
            failed = self._failed.get(name)
            if failed is not None and self._monotonic() < failed[0]:
                raise failed[1]
            if name not in self._stores and len(self._stores) >= self._most:
                raise Overloaded(
                    f"{self._most} stores of tenants are open already",
                    "send it again later, or raise serve.most_stores",
                )
            try:
                made = opened(self._open)
            except TenureError as error:
                unavailable = StoreUnavailable("the tenant's store is not available", "its operator can check it")
                unavailable.__cause__ = error
                self._failed[name] = self._monotonic() + AGAIN, unavailable
                raise unavailable from error
            self._failed.pop(name, None)
            self._stores[name] = place, made
            return made

    def close_one(self, name: str, store: Store | None = None) -> None:
        """Nobody uses it any more: the next use opens it again. `store`: unless the tenant has another by now."""
        with self._lock:
            found = self._stores.get(name)
            if found is None or store not in (None, found[1]):
                return
            del self._stores[name]
        with suppress(TenureError):
            found[1].close()

    def close(self) -> None:
        close_all(*(partial(self.close_one, name) for name in list(self._stores)))

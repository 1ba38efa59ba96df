"""The pool: idle connections, the last used on top, and no more in all than the URL allows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from tenure.core.errors import StoreUnavailable, close_all, popped


class Pooled(Protocol):
    @property
    def is_open(self) -> bool: ...

    @property
    def in_transaction(self) -> bool: ...

    def close(self) -> None: ...


C = TypeVar("C", bound=Pooled)


class ConnectionPool(Generic[C]):
    """Safe to use from several threads. A connection is in use for each running transaction."""

    def __init__(self, connect: Callable[[], C], most: int | None, patience: float, shown: str) -> None:
        """`patience`: seconds to wait for a free one. Without `most` there is always one."""
        self._connect = connect
        self._patience = patience
        self._shown = shown
        self._most = most
        self._free = None if most is None else threading.Semaphore(most)
        self._idle: list[C] = []  # appending to and popping from a list are atomic
        self._closed = False

    def take(self) -> C:
        """Raises StoreUnavailable where the server cannot be reached, or all connections stay busy."""
        if self._closed:
            raise StoreUnavailable(f"{self._shown}: the store was closed")
        if self._free is not None and not self._free.acquire(timeout=self._patience):
            raise StoreUnavailable(
                f"{self._shown}: all {self._most} connections of this process were busy for {self._patience:g} s",
                "Allow more with pool=… in the store's URL.",
            )
        try:
            while self._idle:
                connection = self._idle.pop()
                if self.is_usable(connection):
                    return connection
                connection.close()
            return self._connect()
        except BaseException:
            self._release()
            raise

    def is_usable(self, connection: C) -> bool:
        """Whether an idle connection can be used again."""
        return connection.is_open

    def replaced(self, broken: C) -> C:
        """A new connection for a broken one; the other idle ones are as old, and are closed too."""
        close_all(broken.close, self._close_idle)
        return self._connect()

    def give(self, connection: C) -> None:
        """Return it to the pool; close it where it is broken or still in a transaction."""
        try:
            if self._closed or not connection.is_open or connection.in_transaction:
                connection.close()
            else:
                self._idle.append(connection)
            if self._closed:  # meanwhile
                self._close_idle()
        finally:
            self._release()

    def _release(self) -> None:
        if self._free is not None:
            self._free.release()

    def close(self) -> None:
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        close_all(*(connection.close for connection in popped(self._idle)))

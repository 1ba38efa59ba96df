"""The pool: idle connections, the last used on top, and no more in all than the URL allows."""

from __future__ import annotations

import threading

from tenure.core.errors import StoreUnavailable
from tenure.stores.postgres.connection import Connection, connect


class ConnectionPool:
    """Safe to use from several threads. A connection is in use for each running transaction."""

    def __init__(self, conninfo: str, most: int, patience: float, silence: float, shown: str) -> None:
        """`patience`: seconds to wait for a free one. `silence`: the longest that the server may take to answer."""
        self._conninfo = conninfo
        self._patience = patience
        self._silence = silence
        self._shown = shown
        self._most = most
        self._free = threading.Semaphore(most)
        self._idle: list[Connection] = []  # appending to and popping from a list are atomic
        self._closed = False
        self.prepares = True

    def take(self) -> Connection:
        """Raises StoreUnavailable where the server cannot be reached, or all connections stay busy."""
        if self._closed:
            raise StoreUnavailable(f"{self._shown}: the store was closed")
        if not self._free.acquire(timeout=self._patience):
            raise StoreUnavailable(
                f"{self._shown}: all {self._most} connections of this process were busy for {self._patience:g} s",
                "Allow more with pool=… in the store's URL.",
            )
        try:
            while self._idle:
                connection = self._idle.pop()
                if connection.is_open:
                    return connection
                connection.close()
            return connect(self._conninfo, self._silence, prepares=self.prepares)
        except BaseException:
            self._free.release()
            raise

    def replaced(self, broken: Connection) -> Connection:
        """A new connection for a broken one; the other idle ones are as old, and are closed too."""
        broken.close()
        while self._idle:
            self._idle.pop().close()
        return connect(self._conninfo, self._silence, prepares=self.prepares)

    def give(self, connection: Connection) -> None:
        """Return it to the pool; close it where it is broken or still in a transaction."""
        if self._closed or not connection.is_open or connection.in_transaction:
            connection.close()
        else:
            self._idle.append(connection)
        self._free.release()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._idle.pop().close()

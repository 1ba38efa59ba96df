"""What the stores on a database server share: how they use their connections, and our errors for the server's."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

from tenure.core.errors import InvalidInput, SchemaMismatch, TenureError
from tenure.stores.sql.connection_pool import ConnectionPool, Pooled
from tenure.stores.sql.server_errors import Failed, Lost, forked, lost

T = TypeVar("T")
C = TypeVar("C", bound=Pooled)


class ServerStore(Generic[C]):
    """`connections` and `schema` are set by the store of each kind."""

    connections: ConnectionPool[C]
    schema: int  # that of the store when it was opened

    def __init__(self, url: str) -> None:
        self.url = url
        self._process = os.getpid()

    def _breaking(self, error: Failed, connection: C) -> int | None:
        """The schema that the tables have, for a failure that another schema explains; None for others."""
        raise NotImplementedError

    def _translated(self, error: Failed) -> TenureError:
        raise NotImplementedError

    def use(self, ask: Callable[[C], T], *, again: bool = False) -> T:
        """The result of `ask` on a connection; on a second one where the first was lost and it may run `again`."""
        connection = self.connections.take()
        try:
            try:
                return ask(connection)
            except Lost:
                if not again:
                    raise
                connection = self.connections.replaced(connection)
                return ask(connection)
        except Failed as error:
            raise self.explained(error, connection) from error
        except Lost as error:
            raise lost(error, self.url) from error
        finally:
            self.connections.give(connection)

    def explained(self, error: Failed, connection: C | None) -> TenureError:
        """Our error for a failed statement. It may fail only because a newer program has changed the tables."""
        if connection is not None and connection.is_open:
            with suppress(Failed, Lost, ValueError):
                breaking = self._breaking(error, connection)
                if breaking is not None and breaking > self.schema:
                    return self.upgraded(breaking)
        return self._translated(error)

    def upgraded(self, breaking: int) -> SchemaMismatch:
        return SchemaMismatch(
            f"{self.url} was upgraded while this process ran: it needs schema {breaking} or later, "
            f"and this process has {self.schema}",
            "Start again with the newer version.",
        )

    def _check(self, tenant: str) -> None:
        """Before a transaction."""
        if not tenant:
            raise InvalidInput("a transaction needs the name of a tenant")
        self._refuse_fork()

    def _refuse_fork(self) -> None:
        if self._process != os.getpid():
            raise forked(self.url)

"""The pool of one database."""

from __future__ import annotations

from tenure.stores.postgres.connection import Connection, connect
from tenure.stores.sql import connection_pool


class ConnectionPool(connection_pool.ConnectionPool[Connection]):
    def __init__(self, conninfo: str, most: int, patience: float, silence: float, shown: str) -> None:
        """`patience`: seconds to wait for a free one. `silence`: the longest that the server may take to answer."""
        super().__init__(lambda: connect(conninfo, silence, prepares=self.prepares), most, patience, shown)
        self.prepares = True

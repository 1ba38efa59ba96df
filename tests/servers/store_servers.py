"""The stores that live on a server, one line each: what the suites, the model and every proof need of one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tenure.stores.port import Clock, Store
from tests.servers import mariadb, postgres, valkey
from tests.servers.processes import StoreHost

_SWEPT = {"autovacuum": "on"}  # in proofs rows die young, whole tables at a time


class StoreServer(NamedTuple):
    where: str  # the variable with a server's URL, for the processes that a test starts
    new: Callable[[], StoreHost]  # a durable server for proofs, not yet running
    url_of: Callable[[Path], str]  # the folder's own place on the server of the environment, empty at first
    open_store: Callable[[Path, Clock | None], Store]  # the store of that place
    placed: Callable[[str], AbstractContextManager[str]]  # the URL of a place of that name, dropped at the end


SERVERS = {
    "postgres": StoreServer(
        postgres.WHERE, partial(postgres.PostgresServer, settings=_SWEPT), postgres.url_of, postgres.open_store,
        postgres.placed,
    ),
    "mariadb": StoreServer(
        mariadb.WHERE, mariadb.MariadbServer, mariadb.url_of, mariadb.open_store, mariadb.placed
    ),
    "valkey": StoreServer(valkey.WHERE, valkey.durable, valkey.url_of, valkey.open_store, valkey.placed),
    "redis": StoreServer(
        valkey.REDIS, valkey.durable_redis, partial(valkey.url_of, where=valkey.REDIS),
        partial(valkey.open_store, where=valkey.REDIS), partial(valkey.placed, where=valkey.REDIS),
    ),
}  # fmt: skip


@contextmanager
def told(kind: str, server: StoreHost) -> Iterator[None]:
    """While this lasts the environment names the server."""
    where = SERVERS[kind].where
    os.environ[where] = server.root
    try:
        yield
    finally:
        os.environ.pop(where, None)

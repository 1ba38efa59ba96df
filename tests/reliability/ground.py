"""What proofs share: where they find a PostgreSQL server, and how they end when they are told to."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from tests.servers.fixtures import told
from tests.servers.postgres import WHERE, PostgresServer
from tests.servers.processes import fast_folder
from tests.servers.valkey import ROOM, ValkeyServer
from tests.servers.valkey import WHERE as VALKEY

_SWEPT = {"autovacuum": "on"}  # rows die young here, whole tables at a time


@contextmanager
def server_if(wanted: bool) -> Iterator[None]:
    """While this lasts the environment names a server, if one is wanted; forked children find it there.

    It is the one that was named before, or one of our own.
    """
    if not wanted or WHERE in os.environ:
        yield
        return
    end_when_told()
    with PostgresServer(settings=_SWEPT) as server, told(WHERE, server.url):
        yield


@contextmanager
def valkey_if(wanted: bool) -> Iterator[None]:
    """As `server_if`, for a durable Valkey server."""
    if not wanted or VALKEY in os.environ:
        yield
        return
    end_when_told()
    with ValkeyServer(is_durable=True, place=fast_folder(ROOM)) as server, told(VALKEY, server.url()):
        yield


def end_when_told() -> None:
    """SIGTERM unwinds, so that no server, folder or stopped worker is left behind."""
    signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)

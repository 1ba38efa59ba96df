"""What proofs share: where they find a server, and how they end when they are told to."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from tests.servers.store_servers import SERVERS, told


@contextmanager
def server_of(store: str) -> Iterator[None]:
    """While this lasts the environment names a server, if the store needs one; forked children find it there.

    It is the one that was named before, or one of our own.
    """
    if store not in SERVERS or SERVERS[store].where in os.environ:
        yield
        return
    end_when_told()
    with SERVERS[store].new() as server, told(store, server):
        yield


def end_when_told() -> None:
    """SIGTERM unwinds, so that no server, folder or stopped worker is left behind."""
    signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)

"""A place on loopback that answers nothing, not even a refusal: a listener whose queue is full."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Self


class BlackHole:
    """Linux drops the SYN of a connection that no longer fits into the queue: the client hears nothing at all."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self._family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = socket.socket(self._family, socket.SOCK_STREAM)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listening.bind((address, port))
        self._listening.listen(0)
        self.port = int(self._listening.getsockname()[1])
        self._filling: list[socket.socket] = []
        for _ in range(8):
            self._filling.append(self._sent(address))
        with suppress(OSError), socket.socket(self._family, socket.SOCK_STREAM) as probe:
            probe.settimeout(0.2)
            probe.connect((address, self.port))
            raise AssertionError("the queue of the listener is not full")

    def _sent(self, address: str) -> socket.socket:
        one = socket.socket(self._family, socket.SOCK_STREAM)
        one.setblocking(False)
        with suppress(BlockingIOError):
            one.connect((address, self.port))
        return one

    def close(self) -> None:
        for one in (*self._filling, self._listening):
            one.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

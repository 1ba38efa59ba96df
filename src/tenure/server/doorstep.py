"""What a visitor may cost before it has signed in: so many bytes of headers, so long to send them, so many connections.

Once there are too many connections of strangers the oldest is closed, not the newest refused: who holds connections
open keeps nobody else out, also from the same address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tenure.core import limits

LARGEST_HEAD = limits.HEADER_BYTES
TO_SEND = 15.0  # seconds for them
MOST_OF_AN_ADDRESS = limits.CONNECTIONS_PER_ADDRESS
MOST = limits.CONNECTIONS


class Doorstep:
    """The connections on which nobody has signed in yet; of one server process, in its event loop."""

    def __init__(
        self,
        is_shared: Callable[[str], bool] = lambda _: False,
        *,
        most_of_an_address: int = MOST_OF_AN_ADDRESS,
        most: int = MOST,
    ) -> None:
        """`is_shared`: whether many visitors come from this address, as from a proxy's."""
        self._is_shared = is_shared
        self._most_of_an_address, self._most = most_of_an_address, most
        self._all: dict[Visitor, None] = {}  # in the order of their coming
        self._of: dict[str, dict[Visitor, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, visitor: Visitor) -> None:
        mine = self._of.setdefault(visitor.address, {})
        mine[visitor] = self._all[visitor] = None
        if len(mine) > self._most_of_an_address and not self._is_shared(visitor.address):
            next(iter(mine)).send_away()
        if len(self._all) > self._most:
            next(iter(self._all)).send_away()

    def remove(self, visitor: Visitor) -> None:
        if self._all.pop(visitor, visitor) is visitor:
            return
        mine = self._of[visitor.address]
        del mine[visitor]
        if not mine:
            del self._of[visitor.address]


class Visitor(HttpToolsProtocol):
    """One connection. What is read of it is bounded; `scope["state"]["signed_in"]` is called when somebody is known."""

    doorstep: Doorstep  # of the server: see `at`

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._unseen = 0  # bytes since the parser last told of something
        self._head = 0  # bytes of this request's head, as far as it was told of
        self._is_too_large = False
        self._clock: asyncio.TimerHandle | None = None
        self.address = ""

    @classmethod
    def at(cls, doorstep: Doorstep) -> type[Visitor]:
        """The class of a server's connections."""
        return type("Visitor", (cls,), {"doorstep": doorstep})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._begin_clock()
        self.doorstep.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_clock()
        self.doorstep.remove(self)
        super().connection_lost(exc)

    def send_away(self) -> None:
        self.doorstep.remove(self)
        self.transport.abort()

    def signed_in(self) -> None:
        self.doorstep.remove(self)

    # --- what is read ---

    def data_received(self, data: bytes) -> None:
        self._unseen += len(data)
        super().data_received(data)
        if self._unseen > LARGEST_HEAD and not self.transport.is_closing():
            self._is_too_large = True
            self.send_400_response("The headers are too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self.scope["state"]["signed_in"] = self.signed_in
        if self._clock is None:
            self._begin_clock()

    def on_url(self, url: bytes) -> None:
        self._tell(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._tell(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_clock()
        self._unseen = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unseen = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unseen = 0
        super().on_message_complete()

    def _tell(self, size: int) -> None:
        self._unseen = 0
        self._head += size
        if self._head > LARGEST_HEAD:
            self._is_too_large = True
            raise ValueError("the headers are too large")  # the parser makes a refused request of it

    def send_400_response(self, msg: str) -> None:
        if not self._is_too_large:
            super().send_400_response(msg)
            return
        text = b"The headers are larger than %d bytes." % LARGEST_HEAD
        self.transport.write(
            STATUS_LINE[431]
            + b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(text)
            + text
        )
        self.transport.close()

    # --- how long it may take ---

    def _begin_clock(self) -> None:
        self._clock = self.loop.call_later(TO_SEND, self.transport.abort)

    def _end_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

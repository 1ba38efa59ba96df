"""Limits of connections: bytes of headers, seconds to send them and a body, to read an answer, number of connections.

Beyond the number of unauthenticated connections the oldest is closed and the newest accepted: a client that holds
connections open does not lock out others, even from the same address. Those with a sign-in are shared by key: see
`signed_in_connections`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from tenure.core import limits
from tenure.core.errors import Overloaded
from tenure.server.signed_in_connections import SignedInConnections, Who

HEAD_TIMEOUT = limits.HEADER_SECONDS
MOST_PER_ADDRESS = limits.CONNECTIONS_PER_ADDRESS
MOST = limits.CONNECTIONS


class UnauthenticatedConnections:
    """The connections without a successful sign-in, of one server process, in its event loop."""

    def __init__(
        self,
        is_shared: Callable[[str], bool] = lambda _: False,
        *,
        most_per_address: int = MOST_PER_ADDRESS,
        most: Callable[[], int] = lambda: MOST,
    ) -> None:
        """`is_shared`: whether an address has many clients, as a proxy's has."""
        self._is_shared = is_shared
        self._most_per_address, self._most = most_per_address, most
        self._all: dict[LimitedConnection, None] = {}  # oldest first
        self._of: dict[str, dict[LimitedConnection, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(self, connection: LimitedConnection) -> None:
        mine = self._of.setdefault(connection.address, {})
        mine[connection] = self._all[connection] = None
        if len(mine) > self._most_per_address and not self._is_shared(connection.address):
            next(iter(mine)).close_now()
        if len(self._all) > self._most():
            next(iter(self._all)).close_now()

    def remove(self, connection: LimitedConnection) -> None:
        if self._all.pop(connection, connection) is connection:
            return
        mine = self._of[connection.address]
        del mine[connection]
        if not mine:
            del self._of[connection.address]


class LimitedConnection(HttpToolsProtocol):
    """One connection, with bounded reads. The app calls `scope["state"]["signed_in"]` after a successful sign-in."""

    unauthenticated: UnauthenticatedConnections  # of the server: see `at`
    known: SignedInConnections

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._unseen = 0  # bytes since the parser last called back
        self._head = 0  # bytes of this request's head so far
        self._is_too_large = False
        self._timeout: asyncio.TimerHandle | None = None
        self._is_receiving = False  # a body that is not complete
        self._received = self._received_before = 0  # bytes of it, now and when it was judged last
        self._body_timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None  # the client does not read what we wrote
        self.address = ""

    @classmethod
    def at(
        cls, unauthenticated: UnauthenticatedConnections, known: SignedInConnections | None = None
    ) -> type[LimitedConnection]:
        """The class of a server's connections."""
        if known is None:  # an empty one is false
            known = SignedInConnections(lambda: MOST)
        return type("LimitedConnection", (cls,), {"unauthenticated": unauthenticated, "known": known})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        self._start_timeout()
        self.unauthenticated.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timeout()
        self._stop_body_timer()
        self._stop_unread()
        self.unauthenticated.remove(self)
        self.known.remove(self)
        super().connection_lost(exc)

    def close_now(self) -> None:
        self.unauthenticated.remove(self)
        self.transport.abort()

    def signed_in(self, who: Who) -> None:
        """Somebody has signed in on it. Raises Overloaded where they have their share: it ends with this answer."""
        try:
            self.known.admit(self, who)
        except Overloaded:
            self.cycle.keep_alive = False
            raise
        self.unauthenticated.remove(self)

    @property
    def is_idle(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is None or cycle.response_complete

    # --- reads ---

    def data_received(self, data: bytes) -> None:
        self._unseen += len(data)
        super().data_received(data)
        if self._is_receiving and self._body_timer is None:
            self._start_body_timer()
        elif self.is_idle and self._timeout is None and self.timeout_keep_alive_task is None:
            # Blank lines between two requests: nothing has begun, and the wait for it has an end.
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )
        if self._unseen > limits.HEADER_BYTES and not self.transport.is_closing():
            self._is_too_large = True
            self.send_400_response("The headers are too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self.scope["state"]["signed_in"] = self.signed_in
        if self._timeout is None:
            self._start_timeout()

    def on_url(self, url: bytes) -> None:
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._stop_timeout()
        self._unseen = self._received = 0
        self._is_receiving = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unseen = 0
        self._received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unseen = 0
        self._is_receiving = False
        self._stop_body_timer()
        super().on_message_complete()

    def _count_head(self, size: int) -> None:
        self._unseen = 0
        self._head += size
        if self._head > limits.HEADER_BYTES:
            self._is_too_large = True
            raise ValueError("the headers are too large")  # the parser responds with 400

    def send_400_response(self, msg: str) -> None:
        if not self._is_too_large:
            super().send_400_response(msg)
            return
        text = b"The headers are larger than %d bytes." % limits.HEADER_BYTES
        self.transport.write(
            STATUS_LINE[431]
            + b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(text)
            + text
        )
        self.transport.close()

    # --- the timeout ---

    def _start_timeout(self) -> None:
        self._timeout = self.loop.call_later(HEAD_TIMEOUT, self.transport.abort)

    def _stop_timeout(self) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
            self._timeout = None

    # --- bodies that trickle, and answers that nobody reads ---

    def _start_body_timer(self) -> None:
        self._received_before = self._received
        self._body_timer = self.loop.call_later(limits.BODY_SECONDS, self._judge_body)

    def _stop_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _judge_body(self) -> None:
        """End a connection whose body comes too slowly, where we are ready to read it."""
        is_ours = self.flow.read_paused or self.cycle.waiting_for_100_continue
        if not is_ours and self._received - self._received_before < limits.BODY_LEAST:
            self.transport.abort()
        else:
            self._start_body_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._start_unread()

    def resume_writing(self) -> None:
        self._stop_unread()
        super().resume_writing()

    def _start_unread(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._unread = self.loop.call_later(limits.UNREAD_SECONDS, self._judge_unread, left)

    def _stop_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _judge_unread(self, before: int) -> None:
        if self.transport.get_write_buffer_size() >= before:
            self.transport.abort()
        else:
            self._start_unread()

"""One request, as its handler sees it: the raw scope with the few things that are asked of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, MutableMapping
from typing import Any, TypeVar
from urllib.parse import parse_qs

from tenure.core.commands import OWNER, Principal
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.inputs import LARGEST_BATCH
from tenure.server.bodies import Said
from tenure.server.tracing import HEADER as TRACEPARENT
from tenure.server.tracing import Trace

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T")


class Disconnected(Exception):
    """Nobody is there any more to be answered."""


class Request:
    """`fields` are those of the path; `principal` is who asks, and `trace` what it belongs to, once they are known."""

    __slots__ = ("_receive", "crash", "fields", "headers", "is_known", "principal", "route", "scope", "status", "trace")
    trace: Trace

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.fields: Mapping[str, str] = {}
        self.principal: Principal = OWNER
        self.is_known = False  # whether `principal` is who asks
        self.status = 200  # of an answer that another application gave, or that goes on
        self.route = ""  # as the table has it
        self.crash: Exception | None = None  # what was wrong with us
        self._receive = receive

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def parameter(self, name: str) -> str | None:
        """One value of the query string."""
        given = parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True).get(name)
        return given[-1] if given else None

    def number(self, name: str, default: float, most: float) -> float:
        text = self.parameter(name)
        try:
            value = default if text is None else float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= most:
            raise InvalidInput(f"{name} {text!r}: a number from 0 to {most:g}")
        return value

    async def body(self, largest: int = LARGEST_BATCH) -> bytes:
        """All of it; refused as soon as it is known to be too large."""
        parts = [part async for part in self.parts(largest)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def parts(self, largest: int) -> AsyncIterator[bytes]:
        """The body as it comes; refused as soon as it is known to be too large."""
        told = self.headers.get(b"content-length", b"0")
        if int(told) > largest if told.isdigit() else True:
            raise TooLarge(f"a body of {told.decode('latin-1')[:20]} bytes; at most {largest}")
        size, is_more = 0, True
        while is_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part = message.get("body", b"")
            size += len(part)
            if size > largest:
                raise TooLarge(f"a body of more than {largest} bytes")
            yield part
            is_more = message.get("more_body", False)

    def said(self) -> Said:
        """What path and headers say of a command."""
        request_id = self.header(b"idempotency-key")
        if request_id == "":  # else everybody whose key is missing would repeat one another
            raise InvalidInput("Idempotency-Key: is empty", "leave it out, or send a name that you use once")
        return Said(self.fields, request_id, self.trace.id, self._version())

    def _version(self) -> int | None:
        text = self.header(b"if-match")
        if text is None or text == "*":
            return None
        if not text.strip('"').isdecimal():
            raise InvalidInput(f"If-Match {text[:40]!r}: the ETag that the task was read with")
        return int(text.strip('"'))

    def sent_by(self, send: Send) -> Send:
        """`send` for another application: its status is noted, and the trace goes along."""

        async def noted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (TRACEPARENT, self.trace.header)]
            await send(message)

        return noted

    async def while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is cancelled when whoever asked has gone."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._gone())
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Disconnected
            return task.result()
        finally:
            task.cancel()
            gone.cancel()

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

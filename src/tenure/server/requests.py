"""One request as its handler gets it: the ASGI scope, with accessors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, MutableMapping
from typing import Any, TypeVar
from urllib.parse import parse_qs

from tenure.core.commands import OWNER, Principal
from tenure.core.errors import InvalidInput, TooLarge
from tenure.core.inputs import LARGEST_BATCH
from tenure.server.bodies import RequestContext
from tenure.server.trace_context import HEADER as TRACEPARENT
from tenure.server.trace_context import Trace

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T")


class Disconnected(Exception):
    """The client has closed the connection."""


class Request:
    """`fields` are those of the path; `principal` and `trace` are set once they are known."""

    __slots__ = ("_receive", "crash", "fields", "headers", "is_known", "principal", "route", "scope", "status", "trace")
    trace: Trace

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.fields: Mapping[str, str] = {}
        self.principal: Principal = OWNER
        self.is_known = False  # whether `principal` is authenticated
        self.status = 200  # of a streamed response, or a mounted application's response
        self.route = ""  # the path with placeholders
        self.crash: Exception | None = None  # an unexpected error
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
            raise InvalidInput(f"{name} must be a number from 0 to {most:g} (got {text!r})")
        return value

    async def body(self, largest: int = LARGEST_BATCH) -> bytes:
        """The whole body; TooLarge as soon as it exceeds `largest`."""
        parts = [part async for part in self.parts(largest)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def parts(self, largest: int) -> AsyncIterator[bytes]:
        """The body in pieces; TooLarge as soon as it exceeds `largest`."""
        length = self.headers.get(b"content-length", b"0")
        if int(length) > largest if length.isdigit() else True:
            raise TooLarge(f"the body may have at most {largest} bytes (got {length.decode('latin-1')[:20]})")
        size, is_more = 0, True
        while is_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part = message.get("body", b"")
            size += len(part)
            if size > largest:
                raise TooLarge(f"the body may have at most {largest} bytes")
            yield part
            is_more = message.get("more_body", False)

    def context(self) -> RequestContext:
        """The parts of the request beside its body."""
        request_id = self.header(b"idempotency-key")
        if request_id == "":  # otherwise all callers without a key would share one
            raise InvalidInput("the header Idempotency-Key is empty", "omit it, or send a unique value")
        return RequestContext(self.fields, request_id, self.trace.id, self._version())

    def _version(self) -> int | None:
        text = self.header(b"if-match")
        if text is None or text == "*":
            return None
        if not text.strip('"').isdecimal():
            raise InvalidInput(f"If-Match must be the ETag of the task (got {text[:40]!r})")
        return int(text.strip('"'))

    def sent_by(self, send: Send) -> Send:
        """`send` for a mounted application: records the status and adds the trace header."""

        async def noted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (TRACEPARENT, self.trace.header)]
            await send(message)

        return noted

    async def while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is cancelled when the client disconnects."""
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

"""Standard input and output as the server's wire: lines in, lines out, and a clean end.

The `mcp` package has a transport for this; two things are added. Input is read by a thread of its own, since a read
that waits cannot be called off and would hold up every signal. And the end of the input is passed on only when what
was asked before it is answered: a script that pipes its requests in gets its replies.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import anyio
import msgspec
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from tenure.core import limits
from tenure.core.decoders import check_json
from tenure.core.errors import InvalidInput

STDIN = 0
PATIENCE = limits.MCP_CLOSE
CHUNK = 1 << 16


class Lines:
    """Standard input, line by line. `refuse` is told of a line that others may read differently than we."""

    refuse: Callable[[bytes, str], Awaitable[None]]

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._wire = os.dup(STDIN)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, STDIN)  # a child, as git, must not read what is meant for us
        os.close(nothing)
        # A daemon, and no lock of a buffered reader held: it may still be reading when the process ends.
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while chunk := self._chunk():
            *lines, rest = (rest + chunk).split(b"\n")
            if not all(self._put(line) for line in lines):
                return
        if rest:
            self._put(rest)
        self._put(None)

    def _chunk(self) -> bytes:
        try:
            return os.read(self._wire, CHUNK)
        except OSError:  # the terminal is gone
            return b""

    def _put(self, line: bytes | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:  # the loop has ended, and with it the interest
            return False
        return True

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> str:
        while True:
            line = await self._lines.get()
            if line is None:
                raise StopAsyncIteration
            try:
                check_json(line, "the message")
                break
            except InvalidInput as error:
                await self.refuse(line, f"{error.message}; {error.hint}")
        return line.decode("utf-8", errors="replace")


class Open:
    """The requests that wait for their answer."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._none = anyio.Event()

    def asked(self, item: SessionMessage | Exception) -> None:
        if isinstance(item, Exception):
            return
        if isinstance(item.message, JSONRPCRequest):
            self._ids.add(str(item.message.id))
        elif isinstance(item.message, JSONRPCNotification) and item.message.method == "notifications/cancelled":
            self._over((item.message.params or {}).get("requestId"))  # which is never answered

    def answered(self, item: SessionMessage) -> None:
        if isinstance(item.message, (JSONRPCResponse, JSONRPCError)):
            self._over(item.message.id)

    def _over(self, id: Any) -> None:
        self._ids.discard(str(id))
        if not self._ids:
            self._none.set()
            self._none = anyio.Event()

    async def wait(self) -> None:
        with anyio.move_on_after(PATIENCE):
            while self._ids:
                await self._none.wait()


class _Stream:
    """A stream of the package that is watched; both directions close alike."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Inbox(_Stream):
    def __init__(self, inner: Any, open: Open, at_end: Callable[[], None]) -> None:
        super().__init__(inner)
        self.open = open
        self.at_end = at_end

    async def receive(self) -> SessionMessage | Exception:
        try:
            item: SessionMessage | Exception = await self.inner.receive()
        except anyio.EndOfStream:
            self.at_end()
            await self.open.wait()
            raise
        self.open.asked(item)
        return item

    def __aiter__(self) -> Inbox:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Inbox:
        return self


class Outbox(_Stream):
    def __init__(self, inner: Any, open: Open) -> None:
        super().__init__(inner)
        self.open = open

    async def send(self, item: SessionMessage, /) -> None:
        await self.inner.send(item)
        self.open.answered(item)

    async def __aenter__(self) -> Outbox:
        return self


@asynccontextmanager
async def standard_streams(at_end: Callable[[], None]) -> AsyncIterator[tuple[Inbox, Outbox]]:
    """Messages from standard input and to standard output; nothing else reaches the latter while it is open.

    `at_end` is called when the input has ended, before the last answers are waited for.
    """
    open = Open()
    # The package wants an open file; it takes lines from it, and does nothing else with it.
    lines = Lines()
    async with stdio_server(stdin=lines) as (read, write):  # type: ignore[arg-type]

        async def refuse(line: bytes, why: str) -> None:
            error = ErrorData(code=PARSE_ERROR, message=why)
            await write.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=_id_in(line), error=error)))

        lines.refuse = refuse
        yield Inbox(read, open, at_end), Outbox(write, open)


def _id_in(line: bytes) -> str | int | None:
    """The id of a message, however odd the rest of it."""
    try:
        id = msgspec.json.decode(line).get("id")
    except (ValueError, AttributeError, RecursionError):
        return None
    return id if isinstance(id, (str, int)) else None

"""`tenure mcp`: serves standard input and output, with the store of the folder, else of the client's roots.

The `mcp` package has a transport for this; two things are added. A thread reads the input (`early_replies.py`), since a
blocking read cannot be cancelled and would delay every signal. And the end of the input is passed on only after earlier
requests are answered: a script that pipes its requests in gets all replies.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
import msgspec
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from pydantic import ValidationError

from tenure.core import limits
from tenure.core.decoders import check_json
from tenure.core.errors import InvalidInput, NoStore
from tenure.mcp.callers import Caller, ClientInfo, LocalCallers, StartOptions, client_info_of
from tenure.mcp.early_replies import EarlyInput
from tenure.mcp.server import Context, Crashed, McpService

ROOTS = "roots"  # the name of the request for roots, if it is part of a result


class StdioCallers:
    def __init__(self, options: StartOptions, crashed: Crashed) -> None:
        self.callers = LocalCallers(options)
        self.roots: tuple[str, ...] = ()
        self._crashed = crashed

    async def caller(
        self, context: Context, responses: Mapping[str, Any] | None, calls: anyio.CapacityLimiter
    ) -> Caller | types.InputRequiredResult:
        """The caller, or a request to the client for its folders."""
        params = context.session.client_params
        client_info = client_info_of(params.client_info.name if params else None, context.meta)
        try:
            return await self._find(client_info, self.roots, calls)
        except NoStore:
            roots = await self._ask_for_roots(context, responses)
            if isinstance(roots, types.InputRequiredResult):
                return roots
            if not roots:
                raise
            caller = await self._find(client_info, roots, calls)
            self.roots = roots
            return caller

    def threads(self, context: Context) -> None:
        return None  # one store

    def gone(self, context: Context) -> anyio.Event | None:
        return None  # the end of the input closes the service

    async def _find(self, client_info: ClientInfo, roots: tuple[str, ...], calls: anyio.CapacityLimiter) -> Caller:
        try:
            return await anyio.to_thread.run_sync(self.callers.find, client_info, roots, limiter=calls)
        except (OSError, ValueError) as error:  # the store's files cannot be read
            raise self._crashed(error, ("mcp",)) from error

    async def _ask_for_roots(
        self, context: Context, responses: Mapping[str, Any] | None
    ) -> tuple[str, ...] | types.InputRequiredResult:
        capabilities = context.session.client_capabilities
        if self.callers.options.is_fixed or capabilities is None or capabilities.roots is None:
            return ()
        if not context.session.can_send_request:  # since the protocol of 2026-07-28 a server asks by its result
            if responses is None:
                return types.InputRequiredResult(input_requests={ROOTS: types.ListRootsRequest()})
            options = responses.get(ROOTS)
        else:
            try:
                options = await context.session.send_request(
                    types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=limits.MCP_ROOTS_WAIT
                )
            except (MCPError, ValidationError):
                return ()
        return _folders(options.roots) if isinstance(options, types.ListRootsResult) else ()


def _folders(roots: list[types.Root]) -> tuple[str, ...]:
    parts = (urlsplit(str(root.uri)) for root in roots)
    paths = (unquote(part.path) for part in parts if part.scheme == "file")
    return tuple(path for path in paths if Path(path).is_dir())


def serve(options: StartOptions, crashed: Crashed, early: EarlyInput) -> int:
    """Serve standard input and output until the input ends or a signal arrives."""
    try:
        anyio.run(_serve, options, crashed, early)
    except* BrokenPipeError:
        pass  # the client is gone
    return 0


async def _serve(options: StartOptions, crashed: Crashed, early: EarlyInput) -> None:
    callers = StdioCallers(options, crashed)
    service = McpService(callers, crashed)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_until_signal, service, group.cancel_scope)
            async with standard_streams(early, service.close) as (read, write):
                await service.server.run(read, write, service.server.create_initialization_options())
            group.cancel_scope.cancel()
    finally:
        callers.callers.close()


async def _until_signal(service: McpService, scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            service.close()
            scope.cancel()
            return


PATIENCE = limits.MCP_CLOSE


class InputLines:
    """Standard input, line by line. `refuse` is called for a line that parsers may read differently."""

    refuse: Callable[[bytes, str], Awaitable[None]]

    def __init__(self, early: EarlyInput) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        early.hand_over(self._put)

    def _put(self, line: bytes | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:  # the loop has ended
            return False
        return True

    def __aiter__(self) -> InputLines:
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


class PendingRequests:
    """The requests without a response so far."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._none = anyio.Event()

    def asked(self, item: SessionMessage | Exception) -> None:
        if isinstance(item, Exception):
            return
        if isinstance(item.message, JSONRPCRequest):
            self._ids.add(str(item.message.id))
        elif isinstance(item.message, JSONRPCNotification) and item.message.method == "notifications/cancelled":
            self._over((item.message.params or {}).get("requestId"))  # a cancelled request gets no response

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
    """A stream of the package, wrapped; both directions close the same way."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Inbox(_Stream):
    def __init__(self, inner: Any, pending: PendingRequests, at_end: Callable[[], None]) -> None:
        super().__init__(inner)
        self.pending = pending
        self.at_end = at_end

    async def receive(self) -> SessionMessage | Exception:
        try:
            item: SessionMessage | Exception = await self.inner.receive()
        except anyio.EndOfStream:
            self.at_end()
            await self.pending.wait()
            raise
        self.pending.asked(item)
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
    def __init__(self, inner: Any, pending: PendingRequests, greeted: str | int | None) -> None:
        """`greeted`: the id of a request that has its reply already."""
        super().__init__(inner)
        self.pending = pending
        self.greeted = greeted

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        is_reply = isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id == self.greeted
        if is_reply and self.greeted is not None:
            self.greeted = None
        else:
            await self.inner.send(item)
        self.pending.answered(item)

    async def __aenter__(self) -> Outbox:
        return self


@asynccontextmanager
async def standard_streams(early: EarlyInput, at_end: Callable[[], None]) -> AsyncIterator[tuple[Inbox, Outbox]]:
    """Messages from standard input and to standard output; nothing else is written to the latter meanwhile.

    `at_end` is called when the input has ended, before the wait for the last responses.
    """
    pending = PendingRequests()
    # The package expects an open file, but only reads lines from it.
    lines = InputLines(early)
    async with stdio_server(stdin=lines) as (read, write):  # type: ignore[arg-type]

        async def refuse(line: bytes, why: str) -> None:
            error = ErrorData(code=PARSE_ERROR, message=why)
            await write.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=_id_in(line), error=error)))

        lines.refuse = refuse
        yield Inbox(read, pending, at_end), Outbox(write, pending, early.greeted)


def _id_in(line: bytes) -> str | int | None:
    """The id of a message, even if the rest is invalid."""
    try:
        id = msgspec.json.decode(line).get("id")
    except (ValueError, AttributeError, RecursionError):
        return None
    return id if isinstance(id, (str, int)) else None

"""`tenure mcp`: serves standard input and output, with the store of the folder, else of the client's roots."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
import anyio.to_thread
from mcp import types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from tenure.config import NoStore
from tenure.core import limits
from tenure.mcp.callers import Caller, LocalCallers, StartOptions
from tenure.mcp.client_identity import ClientInfo, client_info_of
from tenure.mcp.server import Context, Crashed, McpService
from tenure.mcp.stdio_streams import standard_streams

ROOTS = "roots"  # the name of the request for roots, if it is part of a result
PATIENCE = limits.MCP_ROOTS_WAIT


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
                    types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=PATIENCE
                )
            except (MCPError, ValidationError):
                return ()
        return _folders(options.roots) if isinstance(options, types.ListRootsResult) else ()


def _folders(roots: list[types.Root]) -> tuple[str, ...]:
    parts = (urlsplit(str(root.uri)) for root in roots)
    paths = (unquote(part.path) for part in parts if part.scheme == "file")
    return tuple(path for path in paths if Path(path).is_dir())


def serve(options: StartOptions, crashed: Crashed) -> int:
    """Serve standard input and output until the input ends or a signal arrives."""
    try:
        anyio.run(_serve, options, crashed)
    except* BrokenPipeError:
        pass  # the client is gone
    return 0


async def _serve(options: StartOptions, crashed: Crashed) -> None:
    callers = StdioCallers(options, crashed)
    service = McpService(callers, crashed)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_until_signal, service, group.cancel_scope)
            async with standard_streams(service.close) as (read, write):
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

"""`tenure mcp`: standard input and output, with seats at the store of the folder, else of the client's roots."""

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
from tenure.mcp.seats import Seat, Seats, Told
from tenure.mcp.server import Context, Crashed, Service
from tenure.mcp.speaking import Caller, caller_of
from tenure.mcp.stdio import standard_streams

ROOTS = "roots"  # the name of our question for them, where it goes with a result
PATIENCE = limits.MCP_ROOTS_WAIT


class Rooted:
    def __init__(self, told: Told, crashed: Crashed) -> None:
        self.seats = Seats(told)
        self.roots: tuple[str, ...] = ()
        self._crashed = crashed

    async def seat(
        self, context: Context, responses: Mapping[str, Any] | None, calls: anyio.CapacityLimiter
    ) -> Seat | types.InputRequiredResult:
        """The caller's seat, or a question for the client: which folders it works in."""
        params = context.session.client_params
        caller = caller_of(params.client_info.name if params else None, context.meta)
        try:
            return await self._find(caller, self.roots, calls)
        except NoStore:
            roots = await self._ask_for_roots(context, responses)
            if isinstance(roots, types.InputRequiredResult):
                return roots
            if not roots:
                raise
            seat = await self._find(caller, roots, calls)
            self.roots = roots
            return seat

    def gone(self, context: Context) -> anyio.Event | None:
        return None  # the service is told of the end of its input

    async def _find(self, caller: Caller, roots: tuple[str, ...], calls: anyio.CapacityLimiter) -> Seat:
        try:
            return await anyio.to_thread.run_sync(self.seats.find, caller, roots, limiter=calls)
        except (OSError, ValueError) as error:  # what lies about the store cannot be read
            raise self._crashed(error, ("mcp",)) from error

    async def _ask_for_roots(
        self, context: Context, responses: Mapping[str, Any] | None
    ) -> tuple[str, ...] | types.InputRequiredResult:
        capabilities = context.session.client_capabilities
        if self.seats.told.is_fixed or capabilities is None or capabilities.roots is None:
            return ()
        if not context.session.can_send_request:  # since 2026-07-28 a server asks by its result
            if responses is None:
                return types.InputRequiredResult(input_requests={ROOTS: types.ListRootsRequest()})
            told = responses.get(ROOTS)
        else:
            try:
                told = await context.session.send_request(
                    types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=PATIENCE
                )
            except (MCPError, ValidationError):
                return ()
        return _folders(told.roots) if isinstance(told, types.ListRootsResult) else ()


def _folders(roots: list[types.Root]) -> tuple[str, ...]:
    parts = (urlsplit(str(root.uri)) for root in roots)
    paths = (unquote(part.path) for part in parts if part.scheme == "file")
    return tuple(path for path in paths if Path(path).is_dir())


def serve(told: Told, crashed: Crashed) -> int:
    """Serve standard input and output until the input ends or a signal asks to stop."""
    try:
        anyio.run(_serve, told, crashed)
    except* BrokenPipeError:
        pass  # the client is gone, and nobody is left to tell
    return 0


async def _serve(told: Told, crashed: Crashed) -> None:
    seating = Rooted(told, crashed)
    service = Service(seating, crashed)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_until_signal, service, group.cancel_scope)
            async with standard_streams(service.close) as (read, write):
                await service.server.run(read, write, service.server.create_initialization_options())
            group.cancel_scope.cancel()
    finally:
        seating.seats.close()


async def _until_signal(service: Service, scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            service.close()
            scope.cancel()
            return

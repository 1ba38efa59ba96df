"""The server: what the `mcp` package asks of us, answered by the tools."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from tenure import __version__
from tenure.config import NoStore
from tenure.core.errors import TenureError
from tenure.mcp import guide
from tenure.mcp.arguments import schema
from tenure.mcp.replies import Reply, refused
from tenure.mcp.seats import Seat, Seats, Told
from tenure.mcp.speaking import Caller, caller_of
from tenure.mcp.stdio import standard_streams
from tenure.mcp.tools import TOOLS, Call, answer

Context = ServerRequestContext[Any]
Crashed = Callable[[Exception, tuple[str, ...]], TenureError]

JSON = "application/json"
STATUS = "tenure://status"
TASK = "tenure://task/"
ROOTS = "roots"  # the name of our question for them, where it goes with a result
PATIENCE = 5.0  # seconds that a client may take to name its roots
AT_ONCE = 8  # calls that work at a time; the store lets one write anyway
WAITING = 64  # calls that wait for a task at a time, in threads of their own


class Wish:
    """Whether anybody still waits for a call's answer."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.is_cancelled = False

    def is_wanted(self) -> bool:
        return not (self.is_cancelled or self.service.is_closing)

    async def watch(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.is_cancelled = True


class Service:
    def __init__(self, told: Told, crashed: Crashed) -> None:
        """`crashed` keeps what nobody foresaw for a report, and gives the error to show."""
        self.seats = Seats(told)
        self.crashed = crashed
        self.roots: tuple[str, ...] = ()
        self.is_closing = False
        self.calls = anyio.CapacityLimiter(AT_ONCE)
        self.waits = anyio.CapacityLimiter(WAITING)
        self.server: Server[Any] = Server(
            "tenure", version=__version__, title="Tenure", instructions=guide.INSTRUCTIONS,
            on_list_tools=self.list_tools, on_call_tool=self.call_tool,
            on_list_resources=self.list_resources, on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource, on_list_prompts=self.list_prompts, on_get_prompt=self.get_prompt,
        )  # fmt: skip

    def close(self) -> None:
        """Take no more claims for those who wait: they are leaving, or gone."""
        self.is_closing = True

    # --- tools ---

    async def list_tools(self, context: Context, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name, description=tool.text, input_schema=schema(tool.takes),
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.is_look, destructive_hint=False, open_world_hint=False
                    ),
                )
                for name, tool in TOOLS.items()
            ]
        )  # fmt: skip

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.name not in TOOLS:
            raise MCPError(
                types.INVALID_PARAMS, f"there is no tool {params.name[:60]!r}; there are: {', '.join(TOOLS)}"
            )
        try:
            seat = await self._seat(context, params.input_responses)
            if isinstance(seat, types.InputRequiredResult):
                return seat
            reply = await self._call(params.name, seat, params.arguments)
        except TenureError as error:
            reply = refused(error)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=reply.text)],
            structured_content=reply.value,
            is_error=reply.is_error,
        )

    async def _call(self, name: str, seat: Seat, given: Mapping[str, Any] | None) -> Reply:
        """Run a tool in a thread. Once cancelled it stops waiting, and what it has got for nobody is given back."""
        wish = Wish(self)
        call = Call(seat, wish.is_wanted)
        limit = self.waits if (given or {}).get("wait") else self.calls
        async with anyio.create_task_group() as group:
            group.start_soon(wish.watch)
            reply = await anyio.to_thread.run_sync(self._attempt, name, call, given, limiter=limit)
            group.cancel_scope.cancel()
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()  # the thread was not: it went on to its end
        except anyio.get_cancelled_exc_class():
            take_back, receipt = TOOLS[name].take_back, reply.value.get("receipt")
            if take_back is not None and receipt is not None:
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(_quietly, take_back, call, receipt)
            raise
        return reply

    def _attempt(self, name: str, call: Call, given: Mapping[str, Any] | None) -> Reply:
        """The reply, also where it is an error: what a thread raises would be lost with a call that was cancelled."""
        try:
            return answer(name, call, given)
        except TenureError as error:
            return refused(error)
        except Exception as error:  # noqa: BLE001 an agent never sees a traceback; it is kept for the report
            return refused(self.crashed(error, (f"mcp: {name}",)))

    # --- where the store is ---

    async def _seat(self, context: Context, responses: Mapping[str, Any] | None) -> Seat | types.InputRequiredResult:
        """The caller's seat, or a question for the client: which folders it works in."""
        caller = _caller(context)
        try:
            return await self._find(caller, self.roots)
        except NoStore:
            roots = await self._ask_for_roots(context, responses)
            if isinstance(roots, types.InputRequiredResult):
                return roots
            if not roots:
                raise
            seat = await self._find(caller, roots)
            self.roots = roots
            return seat

    async def _find(self, caller: Caller, roots: tuple[str, ...]) -> Seat:
        try:
            return await anyio.to_thread.run_sync(self.seats.find, caller, roots, limiter=self.calls)
        except (OSError, ValueError) as error:  # what lies about the store cannot be read
            raise self.crashed(error, ("mcp",)) from error

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

    # --- resources and prompts ---

    async def list_resources(self, context: Context, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[types.Resource(name="status", uri=STATUS, description="the project", mime_type=JSON)]
        )

    async def list_templates(self, context: Context, params: Any) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            name="task", uri_template=TASK + "{key}", description="one task", mime_type=JSON
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        uri = str(params.uri)
        if uri == STATUS:
            asked = {"what": "status"}
        elif uri.startswith(TASK) and len(uri) > len(TASK):
            asked = {"what": "task", "task": unquote(uri.removeprefix(TASK))}
        else:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri[:80]!r}; there are {STATUS} and {TASK}KEY")
        try:
            seat = await self._seat(context, params.input_responses)
            if isinstance(seat, types.InputRequiredResult):
                return seat
        except TenureError as error:
            raise MCPError(types.INVALID_PARAMS, refused(error).text) from None
        reply = await self._call("show", seat, asked)
        if reply.is_error:
            raise MCPError(types.INVALID_PARAMS, reply.text)
        text = types.TextResourceContents(uri=uri, mime_type=JSON, text=msgspec.json.encode(reply.value).decode())
        return types.ReadResourceResult(contents=[text])

    async def list_prompts(self, context: Context, params: Any) -> types.ListPromptsResult:
        task = types.PromptArgument(name="task", description="begin with this one", required=False)
        return types.ListPromptsResult(
            prompts=[types.Prompt(name="work", description="Work through the tasks", arguments=[task])]
        )

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != "work":
            raise MCPError(types.INVALID_PARAMS, f"there is no prompt {params.name[:60]!r}; there is: work")
        text = types.TextContent(type="text", text=guide.work((params.arguments or {}).get("task")))
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


def _quietly(take_back: Callable[[Call, str], object], call: Call, receipt: str) -> None:
    with contextlib.suppress(TenureError):  # its lease will end it
        take_back(call, receipt)


def _caller(context: Context) -> Caller:
    params = context.session.client_params
    return caller_of(params.client_info.name if params else None, context.meta)


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
    service = Service(told, crashed)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_until_signal, service, group.cancel_scope)
            async with standard_streams(service.close) as (read, write):
                await service.server.run(read, write, service.server.create_initialization_options())
            group.cancel_scope.cancel()
    finally:
        service.seats.close()


async def _until_signal(service: Service, scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            service.close()
            scope.cancel()
            return

"""The server: what the `mcp` package asks of us, answered by the tools.

The same for both wires. What differs is where a caller's seat comes from: `rooted.py` for standard input and output,
`http.py` for `tenure serve`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import unquote

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from tenure import __version__
from tenure.core.commands import ClaimNext, Principal
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.mcp import guide
from tenure.mcp.arguments import Claim, schema, taken
from tenure.mcp.replies import Reply, refused
from tenure.mcp.seats import Seat
from tenure.mcp.tools import TOOLS, Call, Wanted, answer, claim_reply, next_best

Context = ServerRequestContext[Any]
Crashed = Callable[[Exception, tuple[str, ...]], TenureError]
Claimer = Callable[[ClaimNext, Principal, float], Awaitable[Outcome]]

JSON = "application/json"
STATUS = "tenure://status"
TASK = "tenure://task/"
AT_ONCE = 8  # calls that work at a time; the store lets one write anyway
WAITING = 64  # calls that wait for a task at a time, in threads of their own
NOBODY = Reply({}, "")  # for a caller that has hung up


class Seating(Protocol):
    """Where seats come from."""

    async def seat(
        self, context: Context, responses: Mapping[str, Any] | None, calls: anyio.CapacityLimiter
    ) -> Seat | types.InputRequiredResult:
        """The caller's seat, or a question for its client; threads are taken from `calls`."""

    def gone(self, context: Context) -> anyio.Event | None:
        """Set once the caller has hung up, where that shows."""


class Wish:
    """Whether anybody still waits for a call's answer."""

    def __init__(self, service: Service, gone: anyio.Event | None) -> None:
        self.service, self.gone = service, gone
        self.is_cancelled = False

    def is_wanted(self) -> bool:
        return not (self.is_cancelled or self.service.is_closing or self.is_left)

    @property
    def is_left(self) -> bool:
        return self.gone is not None and self.gone.is_set()

    async def watch(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.is_cancelled = True


class Service:
    def __init__(self, seating: Seating, crashed: Crashed, claimer: Claimer | None = None) -> None:
        """`crashed` keeps what nobody foresaw for a report, and gives the error to show.

        `claimer` waits for a task without a thread, and keeps nothing of a wait that is cancelled.
        """
        self.seating = seating
        self.crashed = crashed
        self.claimer = claimer
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
            seat = await self.seating.seat(context, params.input_responses, self.calls)
            if isinstance(seat, types.InputRequiredResult):
                return seat
            reply = await self._call(context, params.name, seat, params.arguments)
        except TenureError as error:
            reply = refused(error)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=reply.text)],
            structured_content=reply.value,
            is_error=reply.is_error,
        )

    async def _call(self, context: Context, name: str, seat: Seat, given: Mapping[str, Any] | None) -> Reply:
        """Run a tool. Once cancelled it stops waiting, and what it has got for nobody is given back."""
        wish = Wish(self, self.seating.gone(context))
        call = Call(seat, wish.is_wanted)
        if name == "claim" and self.claimer is not None and (given or {}).get("wait"):
            reply = await self._claim_in_time(self.claimer, call, given, wish)
        else:
            limit = self.waits if (given or {}).get("wait") else self.calls
            async with anyio.create_task_group() as group:
                group.start_soon(wish.watch)
                reply = await anyio.to_thread.run_sync(self._attempt, name, call, given, limiter=limit)
                group.cancel_scope.cancel()
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()  # the thread was not: it went on to its end
        except anyio.get_cancelled_exc_class():
            await self._take_back(name, call, reply)
            raise
        if wish.is_left:
            await self._take_back(name, call, reply)
        return reply

    async def _claim_in_time(self, claimer: Claimer, call: Call, given: Mapping[str, Any] | None, wish: Wish) -> Reply:
        """Wait for a task without a thread; the claimer itself gives back what it gets after nobody waits."""
        wanted = await anyio.to_thread.run_sync(self._wanted, call, given, limiter=self.calls)
        if isinstance(wanted, Reply):
            return wanted
        reply = NOBODY

        async def claim() -> None:
            nonlocal reply
            try:
                reply = claim_reply(call, await claimer(wanted.command, call.seat.client.principal, wanted.wait))
            except TenureError as error:
                reply = refused(error)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(claim)
            if wish.gone is not None:
                await wish.gone.wait()
                group.cancel_scope.cancel()
        return reply

    def _wanted(self, call: Call, given: Mapping[str, Any] | None) -> Wanted | Reply:
        try:
            asked = taken(Claim, dict(given or {}), "claim")
            return next_best(call, asked) if asked.task is None else TOOLS["claim"].run(call, asked)
        except TenureError as error:
            return refused(error)
        except Exception as error:  # noqa: BLE001 as in `_attempt`
            return refused(self.crashed(error, ("mcp: claim",)))

    async def _take_back(self, name: str, call: Call, reply: Reply) -> None:
        take_back, receipt = TOOLS[name].take_back, reply.value.get("receipt")
        if take_back is not None and receipt is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_quietly, take_back, call, receipt)

    def _attempt(self, name: str, call: Call, given: Mapping[str, Any] | None) -> Reply:
        """The reply, also where it is an error: what a thread raises would be lost with a call that was cancelled."""
        try:
            return answer(name, call, given)
        except TenureError as error:
            return refused(error)
        except Exception as error:  # noqa: BLE001 an agent never sees a traceback; it is kept for the report
            return refused(self.crashed(error, (f"mcp: {name}",)))

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
            seat = await self.seating.seat(context, params.input_responses, self.calls)
            if isinstance(seat, types.InputRequiredResult):
                return seat
        except TenureError as error:
            raise MCPError(types.INVALID_PARAMS, refused(error).text) from None
        reply = await self._call(context, "show", seat, asked)
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

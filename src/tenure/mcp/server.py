"""Connects the tools to the `mcp` package.

The same for both transports. They differ in where a caller comes from: `stdio_server.py` for standard input and output,
`http.py` for `tenure serve`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol
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
from tenure.core.caller_errors import for_caller
from tenure.core.commands import ClaimNext, Principal
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.mcp.arguments import Claim, schema, taken
from tenure.mcp.callers import Caller
from tenure.mcp.replies import Reply, error_reply
from tenure.mcp.tools import TOOLS, Call, NextClaim, answer, claim_reply, next_best

Context = ServerRequestContext[Any]
Crashed = Callable[[Exception, tuple[str, ...]], TenureError]
Claimer = Callable[[ClaimNext, Principal, float], Awaitable[Outcome]]

JSON = "application/json"
STATUS = "tenure://status"
TASK = "tenure://task/"
AT_ONCE = 8  # calls that run at a time; the store allows one writer anyway
WAITING = 64  # calls that wait for a task at a time, each in a thread
NO_REPLY = Reply({}, "")  # for a caller that has disconnected


INSTRUCTIONS = (
    "Tenure decides who works on what. Work only on a task that you have claimed; its receipt proves that you hold it. "
    "If a reply says stop, stop: another agent has the task now. If `tenure run` "
    "started you, it has claimed your task and submits your last message, or what you finish: no claim."
)

WORK = """\
Work through the tasks of this project, one at a time:
1. `claim`{named}. Keep the receipt.
2. Do the task, with its inputs and its last checkpoint. Do not change what other tasks are about.
3. Every few minutes `update` with the receipt; that renews the lease. Report step and percent, and save a checkpoint
   (next, files, tests, blockers) whenever another agent should be able to continue from there.
4. `finish` with the receipt: done with a summary and the result that later tasks need; fail with the class if it
   cannot be done; ask if a person must decide; release if you cannot do it.
5. Repeat from 1 until there is nothing to claim.
If a reply says stop, stop and go back to 1. If you find more work, `add` it. Never do unclaimed work.
"""


def work(task: str | None) -> str:
    return WORK.format(named=f" with task={task}" if task else "")


class Threads(NamedTuple):
    """How many threads calls may use at a time, and calls that wait for a task."""

    calls: anyio.CapacityLimiter
    waits: anyio.CapacityLimiter


def some_threads() -> Threads:
    return Threads(anyio.CapacityLimiter(AT_ONCE), anyio.CapacityLimiter(WAITING))


class CallerSource(Protocol):
    """Where callers come from."""

    def threads(self, context: Context) -> Threads | None:
        """Those of the caller's store, where it has its own; None: of all."""

    async def caller(
        self, context: Context, responses: Mapping[str, Any] | None, calls: anyio.CapacityLimiter
    ) -> Caller | types.InputRequiredResult:
        """The caller, or a request to its client; uses threads of `calls`."""

    def gone(self, context: Context) -> anyio.Event | None:
        """Set when the caller disconnects, if the transport shows that."""


class CallState:
    """Whether the client still waits for a call's reply."""

    def __init__(self, service: McpService, gone: anyio.Event | None) -> None:
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


class McpService:
    def __init__(self, callers: CallerSource, crashed: Crashed, claimer: Claimer | None = None) -> None:
        """`crashed` saves an unexpected exception for a report, and returns the error to show.

        `claimer` waits for a task without a thread, and releases a task that is granted after a cancellation.
        """
        self.callers = callers
        self.crashed = crashed
        self.claimer = claimer
        self.is_closing = False
        self.threads = some_threads()
        self.server: Server[Any] = Server(
            "tenure",
            version=__version__,
            title="Tenure",
            instructions=INSTRUCTIONS,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_list_prompts=self.list_prompts,
            on_get_prompt=self.get_prompt,
        )

    def close(self) -> None:
        """Grant no more tasks to waiting calls: their clients are leaving or gone."""
        self.is_closing = True

    # --- tools ---

    async def list_tools(self, context: Context, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.text,
                    input_schema=schema(tool.takes),
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.is_read_only, destructive_hint=False, open_world_hint=False
                    ),
                )
                for name, tool in TOOLS.items()
            ]
        )

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.name not in TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"unknown tool {params.name[:60]!r}; valid: {', '.join(TOOLS)}")
        try:
            caller = await self._caller(context, params.input_responses)
            if isinstance(caller, types.InputRequiredResult):
                return caller
            reply = await self._call(context, params.name, caller, params.arguments)
        except TenureError as error:
            reply = error_reply(error)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=reply.text)],
            structured_content=reply.value,
            is_error=reply.is_error,
        )

    def _threads(self, context: Context) -> Threads:
        return self.callers.threads(context) or self.threads

    async def _caller(
        self, context: Context, responses: Mapping[str, Any] | None
    ) -> Caller | types.InputRequiredResult:
        return await self.callers.caller(context, responses, self._threads(context).calls)

    async def _call(self, context: Context, name: str, caller: Caller, given: Mapping[str, Any] | None) -> Reply:
        """Run a tool. A cancelled call stops waiting, and a task granted to it is released."""
        state = CallState(self, self.callers.gone(context))
        call, threads = Call(caller, state.is_wanted), self._threads(context)
        if name == "claim" and self.claimer is not None and (given or {}).get("wait"):
            reply = await self._claim_in_time(self.claimer, call, given, state, threads)
        else:
            limit = threads.waits if (given or {}).get("wait") else threads.calls
            async with anyio.create_task_group() as group:
                group.start_soon(state.watch)
                reply = await anyio.to_thread.run_sync(self._attempt, name, call, given, limiter=limit)
                group.cancel_scope.cancel()
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()  # the thread was not cancelled: it ran to its end
        except anyio.get_cancelled_exc_class():
            await self._take_back(name, call, reply, threads)
            raise
        if state.is_left:
            await self._take_back(name, call, reply, threads)
        return reply

    async def _claim_in_time(
        self, claimer: Claimer, call: Call, given: Mapping[str, Any] | None, state: CallState, threads: Threads
    ) -> Reply:
        """Wait for a task without a thread; the claimer releases a task that is granted after a cancellation."""
        wanted = await anyio.to_thread.run_sync(self._wanted, call, given, limiter=threads.calls)
        if isinstance(wanted, Reply):
            return wanted
        reply = NO_REPLY

        async def claim() -> None:
            nonlocal reply
            try:
                reply = claim_reply(call, await claimer(wanted.command, call.caller.client.principal, wanted.wait))
            except TenureError as error:
                reply = _refused(call, error)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(claim)
            if state.gone is not None:
                await state.gone.wait()
                group.cancel_scope.cancel()
        return reply

    def _wanted(self, call: Call, given: Mapping[str, Any] | None) -> NextClaim | Reply:
        try:
            asked = taken(Claim, dict(given or {}), "claim")
            return next_best(call, asked) if asked.task is None else TOOLS["claim"].run(call, asked)
        except TenureError as error:
            return _refused(call, error)
        except Exception as error:  # noqa: BLE001 as in `_attempt`
            return _refused(call, self.crashed(error, ("mcp: claim",)))

    async def _take_back(self, name: str, call: Call, reply: Reply, threads: Threads) -> None:
        take_back = TOOLS[name].take_back
        granted = [reply.value, *reply.value.get("claims", ())]
        receipts = [claim["receipt"] for claim in granted if claim.get("receipt") is not None]
        if take_back is not None and receipts:
            with anyio.CancelScope(shield=True):
                for receipt in receipts:
                    await anyio.to_thread.run_sync(_quietly, take_back, call, receipt, limiter=threads.calls)

    def _attempt(self, name: str, call: Call, given: Mapping[str, Any] | None) -> Reply:
        """The reply, also for an error: an exception of a thread would be lost with a cancelled call."""
        try:
            return answer(name, call, given)
        except TenureError as error:
            return _refused(call, error)
        except Exception as error:  # noqa: BLE001 an agent never sees a traceback; it is saved for a report
            return _refused(call, self.crashed(error, (f"mcp: {name}",)))

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
            raise MCPError(types.INVALID_PARAMS, f"unknown resource {uri[:80]!r}; valid: {STATUS} and {TASK}KEY")
        try:
            caller = await self._caller(context, params.input_responses)
            if isinstance(caller, types.InputRequiredResult):
                return caller
        except TenureError as error:
            raise MCPError(types.INVALID_PARAMS, error_reply(error).text) from None
        reply = await self._call(context, "show", caller, asked)
        if reply.is_error:
            raise MCPError(types.INVALID_PARAMS, reply.text)
        text = types.TextResourceContents(uri=uri, mime_type=JSON, text=msgspec.json.encode(reply.value).decode())
        return types.ReadResourceResult(contents=[text])

    async def list_prompts(self, context: Context, params: Any) -> types.ListPromptsResult:
        task = types.PromptArgument(name="task", description="start with this one", required=False)
        return types.ListPromptsResult(
            prompts=[types.Prompt(name="work", description="Work through the tasks", arguments=[task])]
        )

    async def get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != "work":
            raise MCPError(types.INVALID_PARAMS, f"unknown prompt {params.name[:60]!r}; valid: work")
        text = types.TextContent(type="text", text=work((params.arguments or {}).get("task")))
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text)])


def _refused(call: Call, error: TenureError) -> Reply:
    return error_reply(for_caller(error, call.caller.client.principal))


def _quietly(take_back: Callable[[Call, str], object], call: Call, receipt: str) -> None:
    with contextlib.suppress(TenureError):  # the lease ends it
        take_back(call, receipt)

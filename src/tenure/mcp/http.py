"""MCP over streamable HTTP: an ASGI application that a server mounts at `/mcp`, behind its own authentication.

The `mcp` package implements the protocol in both of its forms: with a handshake and a session, which stays on the
process that began it, or with everything in each request. This module adds: the caller is the server's principal, a
session belongs to the caller that opened it, a caller that disconnects while it waits gets no task, and of several
workers any can be asked.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import anyio
import anyio.to_thread
import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import PARSE_ERROR
from starlette.requests import Request

from tenure.core import limits
from tenure.core.caller_errors import for_caller
from tenure.core.commands import Principal
from tenure.core.decoders import check_json
from tenure.core.errors import TenureError, TooLarge
from tenure.core.inputs import LARGEST_BATCH
from tenure.mcp.callers import Caller, client_info_of
from tenure.mcp.remote_callers import RemoteCallers, RemoteRequest
from tenure.mcp.server import Claimer, Context, Crashed, McpService, Threads, some_threads

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

IDLE = limits.MCP_IDLE
GONE = "tenure.gone"  # in the scope: an event that is set when the client disconnects
WHO = "tenure.principal"
SESSION = "mcp-session-id"
METHODS = ("POST", "DELETE")  # no GET: the server has nothing to send outside of responses


class McpApp:
    """`running` must be open while it is called. `principal_of` returns the server's principal of a request."""

    def __init__(
        self,
        callers: RemoteCallers,
        principal_of: Callable[[Scope], Principal],
        crashed: Crashed,
        claimer: Claimer | None = None,
        workers: Workers | None = None,
    ) -> None:
        """`workers`: the other processes of this server, where it has several. A session stays with the one that began
        it, and its id names that one; the others pass its requests on.
        """
        self._principal_of, self._workers = principal_of, workers
        self.service = McpService(_HttpCallers(callers), crashed, claimer)
        self._manager = StreamableHTTPSessionManager(self.service.server, session_idle_timeout=IDLE)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._manager.run():
            try:
                yield
            finally:
                self.close()

    def around(self, app: App) -> App:
        """The server's application, with `running` open during its lifespan."""

        async def whole(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                async with self.running():
                    await app(scope, receive, send)
            else:
                await app(scope, receive, send)

        return whole

    def close(self) -> None:
        """Answer calls that wait; accepted calls still finish."""
        self.service.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in METHODS:
            headers = [(b"allow", ", ".join(METHODS).encode()), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 405, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        principal = self._principal_of(scope)
        body = await _body(receive) if scope["method"] == "POST" else None
        if body is not None and (refusal := _refusal(body)) is not None:
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(refusal))]
            await send({"type": "http.response.start", "status": 400, "headers": headers})
            await send({"type": "http.response.body", "body": refusal})
            return
        if self._workers is not None:
            scope = {**scope, "headers": list(scope["headers"])}  # our own: the id of the session is changed
            number = _taken_number(scope["headers"])
            if number not in (None, self._workers.number):
                asked = PassedOn(
                    principal, scope["method"], scope["path"], scope["query_string"], scope["headers"], body or b""
                )
                if await self._workers.pass_on(
                    number, msgspec.to_builtins(asked, builtin_types=(bytes,)), receive, send
                ):
                    return  # else it has ended, and its sessions with it: this one answers that there is none
            send = _numbered(send, self._workers.number)
        await self._handle(scope, principal, body, receive, send)

    async def take_over(self, value: Any, receive: Receive, send: Send) -> None:
        """A request that another worker has passed on, in its form of a value."""
        assert self._workers is not None
        asked = msgspec.convert(value, PassedOn)
        scope: Scope = {
            "type": "http", "method": asked.method, "path": asked.path, "query_string": asked.query,
            "headers": asked.headers, "state": {}, "scheme": "http", "server": None, "client": None, "root_path": "",
        }  # fmt: skip
        await self._handle(scope, asked.principal, asked.body, receive, _numbered(send, self._workers.number))

    async def _handle(
        self, scope: Scope, principal: Principal, body: bytes | None, receive: Receive, send: Send
    ) -> None:
        gone = anyio.Event()

        async def heard() -> MutableMapping[str, Any]:
            nonlocal body
            if body is not None:
                read, body = body, None
                return {"type": "http.request", "body": read, "more_body": False}
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        # The package allows only the user who opened a session to use it.
        whose = AuthenticatedUser(AccessToken(token="", client_id=_identity(principal), scopes=[]))
        await self._manager.handle_request({**scope, "user": whose, WHO: principal, GONE: gone}, heard, send)


class Workers(Protocol):
    """The processes of a server."""

    number: int  # of this one

    async def pass_on(self, number: int, value: Any, receive: Receive, send: Send) -> bool:
        """Have another worker answer; False where it has ended and nothing was sent."""
        ...


class PassedOn(msgspec.Struct, frozen=True):
    """A request as one worker gives it to another; who sends it is known already."""

    principal: Principal
    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


_NUMBERED = re.compile(rb"([0-9a-f]+)-w([0-9]{1,3})")


def _taken_number(headers: list[tuple[bytes, bytes]]) -> int | None:
    """The worker that the session's id names; it is taken out of the id."""
    for at, (name, value) in enumerate(headers):
        found = _NUMBERED.fullmatch(value) if name == SESSION.encode() else None
        if found is not None:
            headers[at] = (name, found[1])
            return int(found[2])
    return None


def _numbered(send: Send, number: int) -> Send:
    """`send`, with this worker's number in the id of a session."""

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                (name, value + b"-w%d" % number if name.lower() == SESSION.encode() else value)
                for name, value in message.get("headers", ())
            ]
        await send(message)

    return sent


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None if the client disconnects. A body that is too large is cut, and then refused."""
    body, is_more = b"", True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        is_more = message.get("more_body", False) and len(body) <= LARGEST_BATCH
    return body[: LARGEST_BATCH + 1]


def _refusal(body: bytes) -> bytes | None:
    """The error for a message that is too large, or that parsers may read differently."""
    try:
        if len(body) > LARGEST_BATCH:
            raise TooLarge(f"the message may have at most {LARGEST_BATCH} bytes", "send it in several parts")
        check_json(body, "the message")
    except TenureError as error:
        why = {"code": PARSE_ERROR, "message": f"{error.message}; {error.hint}"}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": why})
    return None


class _HttpCallers:
    """The callers of HTTP requests."""

    def __init__(self, callers: RemoteCallers) -> None:
        self._callers = callers
        self._apart: dict[str, Threads] = {}  # of tenants whose stores are their own: one that hangs delays no other

    def threads(self, context: Context) -> Threads | None:
        request: Request = context.request  # type: ignore[assignment]  # over HTTP there is always one
        tenant = request.scope[WHO].tenant
        if tenant is None or not self._callers.is_apart(tenant):
            return None
        if tenant not in self._apart:
            self._apart[tenant] = some_threads()
        return self._apart[tenant]

    async def caller(
        self, context: Context, responses: Mapping[str, Any] | None, calls: anyio.CapacityLimiter
    ) -> Caller:
        request: Request = context.request  # type: ignore[assignment]  # over HTTP there is always one
        params = context.session.client_params
        client_info = client_info_of(params.client_info.name if params else None, context.meta)
        project = request.query_params.get("project") or request.headers.get("tenure-project")
        asked = RemoteRequest(
            request.scope[WHO], client_info.client, request.headers.get(SESSION), client_info.session, project
        )
        try:
            return await anyio.to_thread.run_sync(self._callers.find, asked, limiter=calls)  # it reads the store
        except TenureError as error:
            raise for_caller(error, asked.principal) from error

    def gone(self, context: Context) -> anyio.Event | None:
        request: Request = context.request  # type: ignore[assignment]
        event: anyio.Event = request.scope[GONE]
        return event


def _identity(principal: Principal) -> str:
    return repr((principal.tenant, principal.key, principal.user, principal.agent if principal.is_proven else None))

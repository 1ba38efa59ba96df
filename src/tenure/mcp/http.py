"""MCP over streamable HTTP: an ASGI application for a server to put at `/mcp`, behind its own sign-in.

The `mcp` package speaks the protocol, in both of its eras: with a handshake and a session, which stays on the process
that began it, or with all of it in every request. What is added: who calls is what the server's sign-in says, a session
belongs to whoever opened it, and a caller that hangs up while it waits for a task is given none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import PARSE_ERROR
from starlette.requests import Request

from tenure.core import limits
from tenure.core.commands import Principal
from tenure.core.decoders import check_json
from tenure.core.errors import TenureError, TooLarge
from tenure.core.inputs import LARGEST_BATCH
from tenure.mcp.hosted import Hosted, Visitor
from tenure.mcp.seats import Seat
from tenure.mcp.server import Claimer, Context, Crashed, Service
from tenure.mcp.speaking import caller_of

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

IDLE = limits.MCP_IDLE
GONE = "tenure.gone"  # in the scope: set once the client has hung up
WHO = "tenure.principal"
SESSION = "mcp-session-id"
METHODS = ("POST", "DELETE")  # no stream beside the answers: there is nothing that we would send on it


class McpApp:
    """`running` must be open while it is called. `principal_of` says who the server's sign-in found."""

    def __init__(
        self,
        hosted: Hosted,
        principal_of: Callable[[Scope], Principal],
        crashed: Crashed,
        claimer: Claimer | None = None,
    ) -> None:
        self._principal_of = principal_of
        self.service = Service(_Visitors(hosted), crashed, claimer)
        self._manager = StreamableHTTPSessionManager(self.service.server, session_idle_timeout=IDLE)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._manager.run():
            try:
                yield
            finally:
                self.close()

    def around(self, app: App) -> App:
        """The server's application, with `running` open for as long as it lives."""

        async def whole(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                async with self.running():
                    await app(scope, receive, send)
            else:
                await app(scope, receive, send)

        return whole

    def close(self) -> None:
        """Send home who waits; what was taken in is still answered."""
        self.service.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in METHODS:
            headers = [(b"allow", ", ".join(METHODS).encode()), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 405, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        principal = self._principal_of(scope)
        gone = anyio.Event()
        body = await _body(receive) if scope["method"] == "POST" else None
        if body is not None and (refusal := _refusal(body)) is not None:
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(refusal))]
            await send({"type": "http.response.start", "status": 400, "headers": headers})
            await send({"type": "http.response.body", "body": refusal})
            return

        async def heard() -> MutableMapping[str, Any]:
            nonlocal body
            if body is not None:
                read, body = body, None
                return {"type": "http.request", "body": read, "more_body": False}
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        # The package lets nobody else use a session than the user who opened it.
        whose = AuthenticatedUser(AccessToken(token="", client_id=_identity(principal), scopes=[]))
        await self._manager.handle_request({**scope, "user": whose, WHO: principal, GONE: gone}, heard, send)


async def _body(receive: Receive) -> bytes | None:
    """All of it; None where the client has hung up. What is too large is cut, and so refused."""
    body, is_more = b"", True
    while is_more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        is_more = message.get("more_body", False) and len(body) <= LARGEST_BATCH
    return body[: LARGEST_BATCH + 1]


def _refusal(body: bytes) -> bytes | None:
    """The answer to a message that others may read differently than we, or that is too large."""
    try:
        if len(body) > LARGEST_BATCH:
            raise TooLarge(f"a message of more than {LARGEST_BATCH} bytes", "send it in several parts")
        check_json(body, "the message")
    except TenureError as error:
        why = {"code": PARSE_ERROR, "message": f"{error.message}; {error.hint}"}
        return msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": why})
    return None


class _Visitors:
    """Seats for whoever made a request."""

    def __init__(self, hosted: Hosted) -> None:
        self._hosted = hosted

    async def seat(self, context: Context, responses: Mapping[str, Any] | None, calls: anyio.CapacityLimiter) -> Seat:
        request: Request = context.request  # type: ignore[assignment]  # over HTTP there always is one
        params = context.session.client_params
        caller = caller_of(params.client_info.name if params else None, context.meta)
        project = request.query_params.get("project") or request.headers.get("tenure-project")
        visitor = Visitor(request.scope[WHO], caller.client, request.headers.get(SESSION), caller.session, project)
        return self._hosted.find(visitor)

    def gone(self, context: Context) -> anyio.Event | None:
        request: Request = context.request  # type: ignore[assignment]
        event: anyio.Event = request.scope[GONE]
        return event


def _identity(principal: Principal) -> str:
    return repr((principal.key, principal.user, principal.agent if principal.is_proven else None))

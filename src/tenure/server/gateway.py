"""The application of `tenure gateway`: starts agents on this machine for a server on another one.

It has no store and no key: a spawn brings both for its agent. It decides nothing either. A request must be signed with
the shared secret, and its program must be named in this machine's own configuration. It remembers nothing but the files
of `spawners/children.py`, so it may be killed at any time; its children live on, and it knows them again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import anyio.to_thread
import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from tenure.core import limits, signatures
from tenure.core.errors import InvalidInput, LimitReached, NotSignedIn, TenureError, TooLarge
from tenure.processes import detached
from tenure.server.auth.request_source import check_one_host
from tenure.spawners import gateway_wire as wire
from tenure.spawners.children import Child, Children
from tenure.spawners.port import SpawnRequest, SpawnUnknown
from tenure.spawners.programs import Programs

SECONDS = limits.SPAWN_SECONDS
STATUSES = {
    "INVALID_INPUT": 400, "TOO_LARGE": 413, "NOT_SIGNED_IN": 401, "LIMIT_REACHED": 429, "SPAWN_FAILED": 422,
    "SPAWN_UNKNOWN": 503, "NOT_FOUND": 404,
}  # fmt: skip
T = TypeVar("T", wire.FindRequest, wire.StatusRequest, wire.DeleteRequest)
Answer = tuple[int, dict[str, Any]]
Log = Callable[..., object]


class Gateway:
    """Spawn, find, status and delete, without HTTP. Used by several threads at once."""

    def __init__(self, programs: Programs, children: Children, *, size: int, log: Log = lambda *_, **__: None) -> None:
        self._programs, self._children, self._size, self._log = programs, children, size, log
        self._mutex = threading.Lock()
        lost = children.lost()
        self._lost = {child.spawn for child in lost}  # they ended while no gateway ran
        for child in lost:
            log("lost", spawn=child.spawn, pid=child.pid)

    @property
    def lost(self) -> frozenset[str]:
        return frozenset(self._lost)

    def spawn(self, request: SpawnRequest, idempotency_key: str | None) -> Answer:
        """201 where the agent was started now, 200 where it was before. Raises SpawnFailed and others."""
        if idempotency_key is not None and idempotency_key != request.spawn:
            raise InvalidInput("Idempotency-Key must be the id of the spawn", f"it is {request.spawn!r} in the body")
        program = self._programs.find(request.program)
        with self._mutex:  # the count and the start belong together
            known = self._children.find(request.spawn)
            if known is None:
                self._check_size()
                self._children.start(
                    request.spawn, self._programs.command(request), cwd=program.folder,
                    env=self._programs.environment(request), seconds=SECONDS,
                )  # fmt: skip
        child = self._children.find(request.spawn)
        if child is None:
            raise SpawnUnknown(f"the file of spawn {request.spawn} is gone")
        if known is None:
            self._log("spawned", spawn=child.spawn, pid=child.pid, agent=request.agent, task=request.key)
        return (201 if known is None else 200), self._shown(child)

    def find(self, spawns: list[str]) -> Answer:
        found = self._children.found(spawns)
        return 200, {"spawns": {spawn: None if child is None else child.spawn for spawn, child in found.items()}}

    def status(self, sessions: list[str]) -> Answer:
        return 200, {"sessions": {session: self._state(session) for session in sessions}}

    def delete(self, session: str, graceful: bool) -> Answer:
        child = self._children.find(session)
        if child is None:
            return 404, {"state": "lost"}
        detached.end(child.process, graceful=graceful)
        self._log("ending", spawn=child.spawn, pid=child.pid, graceful=graceful)
        return 200, {"state": self._state(session)}

    def running(self) -> int:
        return sum(detached.state_of(child.process) == "running" for child in self._children.all())

    def _check_size(self) -> None:
        running = self.running()
        if running >= self._size:
            raise LimitReached(f"{running} agents run here, and gateway.size is {self._size}", "raise gateway.size")

    def _state(self, session: str) -> str:
        """`lost`: the gateway does not have it, or it ended while no gateway ran."""
        child = self._children.find(session)
        if child is None:
            return "lost"
        state = detached.state_of(child.process)
        return "lost" if state == "ended" and session in self._lost else state

    def _shown(self, child: Child) -> dict[str, Any]:
        return {"session": child.spawn, "pid": child.pid, "started": child.start, "state": self._state(child.spawn)}


class GatewayApp:
    """The same over HTTP, for requests that are signed."""

    def __init__(self, gateway: Gateway, key: bytes, now: Callable[[], float], log: Log) -> None:
        self._gateway, self._key, self._now, self._log = gateway, key, now, log
        self.app = Starlette(
            routes=[
                Route("/health", self._health, methods=["GET"]),
                Route(wire.SPAWN, self._answered(self._spawn), methods=["POST"]),
                Route(wire.FIND, self._answered(self._find), methods=["POST"]),
                Route(wire.STATUS, self._answered(self._status), methods=["POST"]),
                Route(wire.AGENTS + "{session:path}", self._answered(self._delete), methods=["DELETE"]),
            ]
        )

    async def _health(self, _: Request) -> Response:
        return _json(200, {"status": "ok"})

    def _answered(
        self, handle: Callable[[Request, bytes], Awaitable[Answer]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                check_one_host(request.scope["headers"], request.scope.get("http_version"))
                return _json(*await handle(request, await self._signed_body(request)))
            except TenureError as error:
                self._log("refused", code=error.code, message=error.message, path=request.url.path)
                details = {"code": error.code, "message": error.message, "hint": error.hint}
                return _json(STATUSES.get(error.code, 500), {"error": details})

        return answer

    async def _signed_body(self, request: Request) -> bytes:
        """The body, of a request that the shared secret signed. Without a signature no body is read."""
        headers = {name: request.headers[name] for name in signatures.HEADERS if name in request.headers}
        if "webhook-signature" not in headers:
            raise _not_signed()
        try:
            async with asyncio.timeout(SECONDS):
                body = await _read(request)
        except TimeoutError:
            raise InvalidInput(f"the body did not arrive within {SECONDS:g} s") from None
        now = round(self._now() * 1e6)
        if signatures.verified(signatures.STANDARD, (self._key,), headers, body, now) is None:
            raise _not_signed()
        return body

    async def _spawn(self, request: Request, body: bytes) -> Answer:
        wanted = wire.spawn_request(body)
        key = request.headers.get("idempotency-key")
        return await anyio.to_thread.run_sync(self._gateway.spawn, wanted, key)

    async def _find(self, _: Request, body: bytes) -> Answer:
        wanted = _decoded(body, wire.FindRequest, "find")
        return await anyio.to_thread.run_sync(self._gateway.find, wanted.spawns)

    async def _status(self, _: Request, body: bytes) -> Answer:
        wanted = _decoded(body, wire.StatusRequest, "status")
        return await anyio.to_thread.run_sync(self._gateway.status, wanted.sessions)

    async def _delete(self, request: Request, body: bytes) -> Answer:
        wanted = _decoded(body, wire.DeleteRequest, "delete")
        if wanted.session != request.path_params["session"]:
            raise InvalidInput("the session of the body is not the one of the path", "send the same in both")
        return await anyio.to_thread.run_sync(self._gateway.delete, wanted.session, wanted.graceful)


async def _read(request: Request) -> bytes:
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > wire.LARGEST_BODY:
                raise TooLarge(f"the body has more than {wire.LARGEST_BODY} bytes")
    except ClientDisconnect:
        raise InvalidInput("the connection was closed before the end of the body") from None
    return bytes(body)


def _decoded(body: bytes, type: type[T], action: str) -> T:
    try:
        wanted = msgspec.json.decode(body, type=type)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not a valid {action} request: {error}") from None
    if wanted.action != action:
        raise InvalidInput(f"action must be {action!r} here (got {wanted.action[:40]!r})")
    return wanted


def _not_signed() -> TenureError:
    return NotSignedIn(
        "the request is not signed with the secret of this gateway, or its time is more than 5 minutes off",
        "the server's [spawners.NAME] needs the same secret; compare the clocks too",
    )


def _json(status: int, body: Mapping[str, Any]) -> Response:
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(msgspec.json.encode(body), status, headers, "application/json")

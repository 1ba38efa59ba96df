"""Answers at the start of a server while its store cannot be opened yet: the probes, and the metrics.

So a server that is started again during an outage is seen to be there, and its metrics say that the store is
unavailable. Of credentials it can check the metrics token alone; all other requests get 503.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import uvicorn
from prometheus_client import generate_latest

from tenure import __version__
from tenure.core.caller_errors import for_caller, not_remembered
from tenure.core.errors import NotSignedIn, StoreUnavailable, TenureError
from tenure.server import responses
from tenure.server.app import AsgiApp
from tenure.server.auth.authenticator import HOW_TO_SIGN_IN
from tenure.server.auth.metrics_token import reader_of
from tenure.server.auth.policy import Policy
from tenure.server.auth.request_source import is_loopback_name, name_in, source_of
from tenure.server.coordinator_routes import alive, without_store
from tenure.server.metrics import Metrics
from tenure.server.metrics_page import CONTENT_TYPE
from tenure.server.requests import Receive, Scope, Send
from tenure.server.responses import Response

_AWAY = StoreUnavailable("the store cannot be reached")
Configured = Callable[[AsgiApp], uvicorn.Config]


class WaitingServer:
    """Between `start` and the end of the `with` statement, in a thread. `listen` opens the socket, which it closes."""

    def __init__(self, policy: Policy, listen: Callable[[], socket.socket], configured: Configured) -> None:
        self._policy, self._listen, self._configured = policy, listen, configured
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to answer; nothing where it has begun."""
        if self._server is None:
            listening = self._listen()
            self._server = uvicorn.Server(self._configured(waiting_app(self._policy)))
            self._thread = threading.Thread(
                target=self._server.run, args=([listening],), name="tenure-waiting", daemon=True
            )
            self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()


def waiting_app(policy: Policy) -> AsgiApp:
    metrics = Metrics(version=__version__)
    metrics.store_read(is_up=False)

    async def answer(scope: Scope) -> Response:
        path = scope["path"]
        if path == "/health":
            return alive()
        if path == "/health/coordinator":
            return without_store(_AWAY)
        if path == "/metrics":
            _check_reader(policy, scope)
            return Response(200, await asyncio.to_thread(generate_latest, metrics.registry), CONTENT_TYPE.encode())
        raise for_caller(_AWAY, None)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await _live(receive, send)
            return
        try:
            answered = await answer(scope)
        except TenureError as error:
            answered = responses.of_error(error)
        await send({"type": "http.response.start", "status": answered.status, "headers": answered.all_headers()})
        body = b"" if scope["method"] == "HEAD" else answered.body
        await send({"type": "http.response.body", "body": body})

    return app


def _check_reader(policy: Policy, scope: Scope) -> None:
    """Raise unless the request may read the metrics."""
    source = source_of(scope, policy.proxies)
    if reader_of(policy, source) is not None:
        return
    is_here = policy.is_open and source.is_local and is_loopback_name(name_in(source.host))
    if is_here and not policy.needs_token:
        return
    if source.header(b"authorization") is None:
        raise NotSignedIn("not signed in", HOW_TO_SIGN_IN)
    raise not_remembered()


async def _live(receive: Receive, send: Send) -> None:
    while (await receive())["type"] == "lifespan.startup":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})

"""One gateway process: it listens until a signal. Its agents run on after it, and the next gateway knows them."""

from __future__ import annotations

import signal
import time
from asyncio import constants
from collections.abc import Callable
from functools import partial

import uvicorn

from tenure.server.connection_limits import HEAD_TIMEOUT, LimitedConnection, UnauthenticatedConnections
from tenure.server.gateway import Gateway, GatewayApp
from tenure.server.logs import ServerLog
from tenure.server.serve import DRAIN, in_url, listening_on
from tenure.spawners.settings import GatewaySettings


def serve_gateway(settings: GatewaySettings, announce: Callable[[str], object]) -> int:
    """Serve until SIGINT or SIGTERM; 0 when all accepted requests were answered."""
    log = ServerLog()
    log.take_over()
    info = partial(log.info, part="gateway")
    gateway = Gateway(settings.programs, settings.children, size=settings.size, log=info)
    app = GatewayApp(gateway, settings.key, time.time, info)
    config = uvicorn.Config(
        app.app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        ws="none",
        http=LimitedConnection.at(UnauthenticatedConnections()),
    )
    vars(constants)["SSL_HANDSHAKE_TIMEOUT"] = HEAD_TIMEOUT
    server = uvicorn.Server(config)

    def stop(*_: object) -> None:
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)  # until uvicorn has its handlers, and when it raises the signal again at its end
    (sock,) = listening_on(settings.host, settings.port, "choose another address with --listen")
    port = sock.getsockname()[1]
    announce(f"{'https' if settings.tls_cert else 'http'}://{in_url(settings.host)}:{port}")
    try:
        server.run([sock])
    finally:
        left = gateway.running()
        info("stopped", running=left)
        log.close()
    return 0

"""One server process, from its start to its end."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys
from asyncio import constants
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Protocol

import uvicorn

from tenure.client.local_token import PREFIX, remove_token, token_file, write_token
from tenure.config import BadConfig, Settings
from tenure.core.queries import Keys
from tenure.engine import Engine
from tenure.engine.reads.query_table import look
from tenure.server.app import Inner
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import check_bind, policy_of
from tenure.server.auth.visits import is_in
from tenure.server.doorstep import TO_SEND, Doorstep, Visitor
from tenure.server.logs import Log
from tenure.server.requests import Receive, Scope, Send
from tenure.server.service import Part

DRAIN = 10  # seconds that open requests are given at the end
BACKLOG = 4096
# Seconds that a thread may think while another wants to. A batch waits for the store a few times, and each time for the
# event loop after it: with Python's own 5 ms, 64 callers got 1,800 claims a second, with this 2,500.
SWITCH = 0.0003


class Server(uvicorn.Server):
    """Sends home who only waits before it waits for the open requests: else each stream would hold it up."""

    def __init__(self, config: uvicorn.Config, closing: Sequence[Callable[[], None]]) -> None:
        super().__init__(config)
        self._closing = closing

    def go(self, *_: object) -> None:
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        for close in self._closing:
            close()
        super().handle_exit(sig, frame)


class Guest(Protocol):
    """Another application of the same process, with a life of its own around ours."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def around(self, app: Inner) -> Inner: ...

    def close(self) -> None: ...


def serve(
    engine: Engine,
    settings: Settings,
    tell: Callable[[str, str | None], object],
    guests: Mapping[str, Callable[[Assembly], Guest]] | None = None,
    beside: Sequence[Callable[[Callable[..., object]], Part]] = (),
) -> int:
    """Serve until a signal ends it; 0 when what was taken in was answered.

    `tell` hears where it listens, and the link that signs in to the dashboard; `guests` are made for the paths below
    which they answer, `beside` with what writes to the log: they live and end with the server.
    """
    policy = policy_of(settings)
    check_bind(policy, has_keys=bool(look(engine, Keys())))
    log = Log(settings["serve.log_level"].value, settings["serve.log_file"].value)
    log.take_over()
    token = PREFIX + os.urandom(32).hex() if policy.needs_token else None
    assembly = Assembly(engine, policy, log, token)
    assembly.service.beside += [make(log.info) for make in beside]
    app: Inner = assembly.app
    closing = [assembly.service.begin_close]
    for prefix, make in (guests or {}).items():
        guest = make(assembly)
        assembly.app.mount(prefix, guest)
        app = guest.around(app)
        closing.append(guest.close)
    host, port = policy.host, settings["serve.port"].value
    config = uvicorn.Config(
        app, host=host, port=port, log_config=None, access_log=False, server_header=False,
        proxy_headers=False, backlog=BACKLOG, lifespan="on", timeout_graceful_shutdown=DRAIN, timeout_keep_alive=75,
        ssl_certfile=settings["serve.tls_cert"].value, ssl_keyfile=settings["serve.tls_key"].value,
        http=Visitor.at(Doorstep(lambda address: is_in(address, policy.proxies))),
    )  # fmt: skip
    # Neither asyncio nor uvicorn lets us say it elsewhere: a handshake that never ends is held for a minute by default.
    vars(constants)["SSL_HANDSHAKE_TIMEOUT"] = TO_SEND
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each agent that waits has a connection open
    server = Server(config, closing)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Until uvicorn has handlers of its own, and when it raises them again at its end, which is no failure.
        signal.signal(number, server.go)
    listening = _listening(host, port)
    address, port = listening.getsockname()[:2]
    url = f"{'https' if policy.has_tls else 'http'}://{_spelt(host)}:{port}"
    token_at = token_file(os.environ, address, port)
    if token is not None:
        _write_token(token_at, token)
    tell(url, None if token is None else f"{url}/#{token}")
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()  # what is there by now stays: no collection needs to look at it again
    try:
        server.run([listening])
    finally:
        if token is not None:
            remove_token(token_at, token)
        log.close()
    return 0


def _write_token(path: str, token: str) -> None:
    try:
        write_token(path, token)
    except OSError as error:
        raise BadConfig(
            f"the token of this start cannot be written to {path}: {error.strerror or error}",
            "set TENURE_STATE to a folder of your own, or serve.auth = required to go by keys alone",
        ) from None


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens there; it is ours before anything else is started."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise BadConfig(f"cannot listen on {host}:{port}: {error.strerror or error}", "--port takes another") from None
    listening.setblocking(False)
    return listening


def _spelt(host: str) -> str:
    return f"[{host}]" if ":" in host else host

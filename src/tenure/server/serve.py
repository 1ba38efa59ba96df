"""Starts one server process and runs it until a signal."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys
from asyncio import constants
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FrameType
from typing import Protocol

import msgspec
import uvicorn

from tenure.agents.leader_process import LeaderProcess, Place, Stepped, fleet_here, messaging_here
from tenure.client.local_token import PREFIX, remove_token, token_file, write_token
from tenure.config import BadConfig, Settings
from tenure.core.queries import Keys
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.fleet.offers import Address
from tenure.engine.reads.query_table import read_query
from tenure.engine.reads.task_counts import TaskCounts
from tenure.server.app import AsgiApp
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import Policy, check_bind, policy_of
from tenure.server.auth.request_source import is_in
from tenure.server.connection_limits import HEAD_TIMEOUT, LimitedConnection, UnauthenticatedConnections
from tenure.server.logs import ServerLog
from tenure.server.requests import Receive, Scope, Send
from tenure.server.service import Part

DRAIN = 10  # seconds for open requests at shutdown
BACKLOG = 4096
# Seconds that a thread may run while another waits. A batch waits for the store a few times, and each time for the
# event loop after it: with Python's default of 5 ms, 64 callers got 1,800 claims a second, with this value 2,500.
SWITCH = 0.0003


class Server(uvicorn.Server):
    """Ends streams and waits before it waits for open requests: otherwise each stream would delay the shutdown."""

    def __init__(self, config: uvicorn.Config, closing: Sequence[Callable[[], None]]) -> None:
        super().__init__(config)
        self._closing = closing

    def request_exit(self, *_: object) -> None:
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        for close in self._closing:
            close()
        super().handle_exit(sig, frame)


class MountedApp(Protocol):
    """Another ASGI application of the same process, with its own lifespan around ours."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def around(self, app: AsgiApp) -> AsgiApp: ...

    def close(self) -> None: ...


def serve(
    engine: Engine,
    settings: Settings,
    announce: Callable[[str, str | None], object],
    mounts: Mapping[str, Callable[[Assembly], MountedApp]] | None = None,
    parts: Sequence[Callable[[Callable[..., object]], Part]] = (),
    place: Place | None = None,
    transcripts: str | None = None,
) -> int:
    """Serve until a signal; 0 when all accepted requests were answered.

    `announce` gets the URL, and the link that signs in to the dashboard. `mounts` has a factory for each path prefix.
    `parts` are factories that get the log's `info`; the parts start and stop with the server. `place` is where hooks
    run and files are watched; without it nothing is relayed. `transcripts` is the folder with those of agents on this
    machine.
    """
    # Behind a server agents have keys and roles: none leads by being first, unless the project says so.
    engine = Engine(
        engine.store, engine.random, msgspec.structs.replace(engine.context, elects=False, counts=TaskCounts())
    )
    policy = policy_of(settings)
    check_bind(policy, has_keys=bool(read_query(engine, Keys())))
    log = ServerLog(settings["serve.log_level"].value, settings["serve.log_file"].value)
    log.take_over()
    token = PREFIX + os.urandom(32).hex() if policy.needs_token else None
    found_at: list[Address] = []  # where agents of pools find this server, once it listens
    leading = _leading(settings, place, log, lambda: found_at[0] if found_at else None)
    assembly = Assembly(engine, policy, log, token, leading, settings["leader.lease"].value, transcripts)
    assembly.service.parts += [make(log.info) for make in parts]
    app: AsgiApp = assembly.app
    closing = [assembly.service.begin_close]
    for prefix, make in (mounts or {}).items():
        mounted = make(assembly)
        assembly.app.mount(prefix, mounted)
        app = mounted.around(app)
        closing.append(mounted.close)
    host, port = policy.host, settings["serve.port"].value
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        lifespan="on",
        timeout_graceful_shutdown=DRAIN,
        timeout_keep_alive=75,
        ssl_certfile=settings["serve.tls_cert"].value,
        ssl_keyfile=settings["serve.tls_key"].value,
        http=LimitedConnection.at(UnauthenticatedConnections(lambda address: is_in(address, policy.proxies))),
    )
    # Neither asyncio nor uvicorn has another setting: by default a stalled TLS handshake is kept for a minute.
    vars(constants)["SSL_HANDSHAKE_TIMEOUT"] = HEAD_TIMEOUT
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each waiting agent has an open connection
    server = Server(config, closing)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Until uvicorn installs its handlers, and when it raises the signal again at its end, which is not a failure.
        signal.signal(number, server.request_exit)
    listening = listening_on(host, port, "choose another port with --port")
    address, port = listening.getsockname()[:2]
    url = f"{'https' if policy.has_tls else 'http'}://{in_url(host)}:{port}"
    found_at.append(Address(settings["serve.url"].value or _reached(policy, address, port), has_keys=True))
    token_at = token_file(os.environ, address, port)
    if token is not None:
        _write_token(token_at, token)
    announce(url, None if token is None else f"{url}/#{token}")
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()  # these objects stay: no collection needs to visit them again
    try:
        server.run([listening])
    finally:
        if token is not None:
            remove_token(token_at, token)
        log.close()
    return 0


def _leading(
    settings: Settings, place: Place | None, log: ServerLog, address: Callable[[], Address | None]
) -> Callable[[Coordinator, Stepped], Part] | None:
    if place is None:
        return None
    say = partial(log.warning, part="relays")
    messaging, fleet = messaging_here(settings, say), fleet_here(settings, place, address, say)
    return lambda coordinator, stepped: LeaderProcess(coordinator, messaging, place, fleet, say=say, stepped=stepped)


def _reached(policy: Policy, address: str, port: int) -> str:
    """The URL for agents on this machine; those on others need the setting `serve.url`."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared, not bound
    host = everywhere.get(address, policy.host)
    return f"{'https' if policy.has_tls else 'http'}://{in_url(host)}:{port}"


def _write_token(path: str, token: str) -> None:
    try:
        write_token(path, token)
    except OSError as error:
        raise BadConfig(
            f"cannot write the token of this start to {path}: {error.strerror or error}",
            "set TENURE_STATE to a folder that you own, or serve.auth = required to use keys only",
        ) from None


def listening_on(host: str, port: int, hint: str) -> socket.socket:
    """A listening socket, opened before any other part starts."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise BadConfig(f"cannot listen on {host}:{port}: {error.strerror or error}", hint) from None
    listening.setblocking(False)
    return listening


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host

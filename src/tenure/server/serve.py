"""Starts a server, as one process or as several workers, and runs it until a signal."""

from __future__ import annotations

import errno
import gc
import os
import resource
import signal
import socket
import sys
import time
from asyncio import constants
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from types import FrameType, MappingProxyType
from typing import NamedTuple, Protocol

import msgspec
import uvicorn

from tenure.agents.leader_process import LeaderProcess, Place, Stepped, fleet_here, messaging_here, of_own_store
from tenure.client.local_token import PREFIX, remove_token, token_file, write_token
from tenure.config import BadConfig, Settings
from tenure.core.connection_shares import Shares, shares
from tenure.core.errors import InvalidInput, StoreError, close_all
from tenure.core.queries import Keys
from tenure.core.records import Project
from tenure.core.regions import parse_homes
from tenure.core.tenant_records import HOME
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.fleet.offers import Address
from tenure.engine.reads.query_table import read_query
from tenure.engine.reads.task_counts import TaskCounts
from tenure.engine.runtime.tenancy import TenantEngines
from tenure.server.access_log import AccessLog, check_place
from tenure.server.app import AsgiApp
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import Policy, check_bind, policy_of
from tenure.server.auth.request_source import is_in
from tenure.server.connection_limits import (
    HEAD_TIMEOUT,
    MOST_PER_ADDRESS,
    LimitedConnection,
    UnauthenticatedConnections,
)
from tenure.server.coordinator import resign_for
from tenure.server.logs import ServerLog
from tenure.server.regions import Region
from tenure.server.requests import Receive, Scope, Send
from tenure.server.service import Part
from tenure.server.signed_in_connections import SignedInConnections
from tenure.server.store_wait import ended_by_signals
from tenure.server.waiting_server import WaitingServer
from tenure.server.workers.added_metrics import fold, worker_id
from tenure.server.workers.shared_table import SharedMemory
from tenure.server.workers.supervisor import Handles, Supervisor
from tenure.server.workers.worker import Worker, private_folder
from tenure.stores.port import PROCESSES

DRAIN = 10  # seconds for open requests at shutdown
BACKLOG = 4096
ANOTHER_PORT = "choose another port with --port"
PREDECESSORS = 3.0  # seconds for the workers of a parent that was killed to leave the port
# Seconds that a thread may run while another waits. A batch waits for the store a few times, and each time for the
# event loop after it: with Python's default of 5 ms, 64 callers got 1,800 claims a second, with this value 2,500.
SWITCH = 0.0003


class Server(uvicorn.Server):
    """Ends streams and waits before it waits for open requests: otherwise each stream would delay the shutdown."""

    def __init__(self, config: uvicorn.Config, closing: Sequence[Callable[[], None]], *, is_worker: bool) -> None:
        super().__init__(config)
        self._closing, self._is_worker = closing, is_worker

    def request_exit(self, *_: object) -> None:
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._is_worker and sig == signal.SIGINT:
            return  # from the terminal; the parent has it too and sends SIGTERM. uvicorn takes a second one for haste
        close_all(*self._closing, partial(super().handle_exit, sig, frame))


class MountedApp(Protocol):
    """Another ASGI application of the same process, with its own lifespan around ours."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def around(self, app: AsgiApp) -> AsgiApp: ...

    def close(self) -> None: ...


class Site(NamedTuple):
    """What the processes of a server have in common: its settings, and what it serves beside the engine.

    `mounts` has a factory for each path prefix. `parts` are factories that get the log's `info`; the parts start and
    stop with the server, in one of its processes. `place` is where hooks run and files are watched; without it nothing
    is relayed. `transcripts` is the folder with those of agents on this machine.
    """

    settings: Settings
    mounts: Mapping[str, Callable[[Assembly], MountedApp]] = MappingProxyType({})
    parts: Sequence[Callable[[Callable[..., object]], Part]] = ()
    place: Place | None = None
    transcripts: str | None = None


Announce = Callable[[str, str | None], object]  # gets the URL, and the link that signs in to the dashboard


def serve(engine: Engine, site: Site, announce: Announce) -> int:
    """Serve by this process until a signal; 0 when all accepted requests were answered."""
    policy = policy_of(site.settings)
    check_bind(policy, has_keys=_has_keys(engine, policy))
    with _started(site.settings, policy, announce) as start:
        _serve(engine, site, start, start.listening[0])
    return 0


def serve_with_workers(
    count: int, open_engine: Callable[[socket.socket | None], Engine], site: Site, announce: Announce
) -> int:
    """As `serve`, by several processes on one port; each opens the store itself, and gets its socket for that."""
    engine, policy = open_engine(None), policy_of(site.settings)
    try:
        if PROCESSES not in engine.store.features:
            raise BadConfig(
                f"{engine.store.url} is the memory of one process", "leave out --workers, or use SQLite or PostgreSQL"
            )
        check_bind(policy, has_keys=_has_keys(engine, policy))
    finally:
        engine.store.close()
    log = ServerLog(site.settings["serve.log_level"].value, site.settings["serve.log_file"].value)
    if site.place is not None:  # wrong settings end the start, not each worker; which say what they leave out
        messaging_here(site.settings, lambda _: None)
        fleet_here(site.settings, site.place, lambda: None, lambda _: None)
    with _started(site.settings, policy, announce, count) as start, private_folder() as folder:
        memory = SharedMemory()

        def run(handles: Handles) -> int:
            mine = start.listening[handles.number]
            _close([other for other in start.listening if other is not mine])
            _serve(open_engine(mine), site, start, mine, Worker(handles, count, folder, memory))
            return 0

        return Supervisor(
            count, run, log.warning, ended=lambda number, pid: fold(folder, worker_id(number, pid)),
            serving=start.announce, stopping=partial(_close, start.listening),
        ).serve()  # fmt: skip


def _has_keys(engine: Engine, policy: Policy) -> bool:
    """Whether somebody could sign in with a key, in any tenant of the store."""
    if policy.is_open:
        return True  # nobody needs one
    engines = TenantEngines(engine, time.monotonic)
    near = (engines.of(row) for row in engines.rows() if engines.is_at_hand(row))
    return any(read_query(one, Keys()) for one in chain((engine,), near))


def _region(settings: Settings) -> Region:
    try:
        return Region(settings["serve.region"].value, parse_homes(settings["serve.homes"].value))
    except InvalidInput as error:
        raise BadConfig(f"serve.homes: {error.message}", error.hint) from None


def _close(sockets: Sequence[socket.socket]) -> None:
    close_all(*(one.close for one in sockets))


class _Start(NamedTuple):
    """What a start makes once, for all its processes."""

    policy: Policy
    token: str | None
    listening: Sequence[socket.socket]  # one for each process
    address: str  # where agents of pools find the server
    announce: Callable[[], object]  # once it serves


@contextmanager
def _started(settings: Settings, policy: Policy, announce: Announce, processes: int = 1) -> Iterator[_Start]:
    """Listen, and write the token of this start, which is removed at the end."""
    _check_certificate(settings["serve.tls_cert"].value, settings["serve.tls_key"].value)
    _check_access_log(settings)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each waiting agent has an open connection
    token = PREFIX + os.urandom(32).hex() if policy.needs_token else None
    host = policy.host
    with ended_by_signals():  # until a server, or the parent of workers, installs its handlers
        listening = listening_on(host, settings["serve.port"].value, ANOTHER_PORT, processes)
        address, port = listening[0].getsockname()[:2]
        url = f"{'https' if policy.has_tls else 'http'}://{in_url(host)}:{port}"
        token_at = token_file(os.environ, address, port)
        if token is not None:
            _write_token(token_at, token)
        try:
            gc.collect()
            gc.freeze()  # these objects stay: no collection needs to visit them again
            link = None if token is None else f"{url}/#{token}"
            reached = settings["serve.url"].value or _reached(policy, address, port)
            yield _Start(policy, token, listening, reached, partial(announce, url, link))
        finally:
            if token is not None:
                remove_token(token_at, token)


def _serve(engine: Engine, site: Site, start: _Start, listening: socket.socket, worker: Worker | None = None) -> None:
    """Serve until a signal, as the only process or as one of the workers."""
    settings, policy = site.settings, start.policy
    early: list[int] = []  # a signal while the parts are made: their threads must be ended in order
    _handle_signals(lambda number, _: early.append(number))
    # Behind a server agents have keys and roles: none leads by being first, unless the project says so.
    engine = Engine(
        engine.store, engine.random, msgspec.structs.replace(engine.context, elects=False, counts=TaskCounts())
    )
    number = None if worker is None else worker.number
    log = ServerLog(settings["serve.log_level"].value, settings["serve.log_file"].value, worker=number)
    log.take_over()
    leading = _leading(settings, site.place, log, lambda: Address(start.address, has_keys=True))
    access = _access_log(settings, engine, log, number)
    assembly = Assembly(
        engine,
        policy,
        log,
        start.token,
        leading,
        settings["leader.lease"].value,
        site.transcripts,
        worker,
        access,
        most_stores=settings["serve.most_stores"].value,
        region=_region(settings),
    )
    if worker is not None and worker.predecessor:
        with suppress(StoreError):  # its lease will end
            resign_for(engine, worker.predecessor)
    if not number:  # the only process, or the first
        if settings.sources:
            log.info("settings were read", files=list(settings.sources))
        assembly.service.parts += [make(log.info) for make in site.parts]
    app: AsgiApp = assembly.app
    closing = [assembly.tenants.begin_close]
    for prefix, make in site.mounts.items():
        mounted = make(assembly)
        assembly.app.mount(prefix, mounted)
        app = mounted.around(app)
        closing.append(mounted.close)
    config = _configured(settings, policy, 1 if worker is None else worker.count, app)
    server = Server(config, closing, is_worker=worker is not None)
    # Until uvicorn installs its handlers, and when it raises the signal again at its end, which is not a failure.
    _handle_signals(server.request_exit)
    if early:
        server.request_exit()
    sys.setswitchinterval(SWITCH)
    gc.collect()
    gc.freeze()
    try:
        if worker is None:
            start.announce()  # after each step that could still end the start, and last: a signal may follow at once
        server.run([listening])
    finally:
        log.close()


def _configured(settings: Settings, policy: Policy, processes: int, app: AsgiApp) -> uvicorn.Config:
    """What serves the application: its limits and its certificate."""
    connections = UnauthenticatedConnections(
        lambda address: is_in(address, policy.proxies),
        most_per_address=max(1, MOST_PER_ADDRESS // processes),
        most=lambda: _shares(processes).strangers,
    )
    known = SignedInConnections(lambda: _shares(processes).signed_in)
    # Neither asyncio nor uvicorn has another setting: by default a stalled TLS handshake is kept for a minute.
    vars(constants)["SSL_HANDSHAKE_TIMEOUT"] = HEAD_TIMEOUT
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=min(BACKLOG, _shares(processes).strangers),  # so many are accepted at once, before any is closed
        lifespan="on",
        timeout_graceful_shutdown=DRAIN,
        timeout_keep_alive=75,
        ssl_certfile=settings["serve.tls_cert"].value,
        ssl_keyfile=settings["serve.tls_key"].value,
        ws="none",
        http=LimitedConnection.at(connections, known),
    )


def waiting_server(settings: Settings, listening: socket.socket | None) -> WaitingServer:
    """What answers until the store is open: at a worker's socket, or where the server will listen."""
    policy = policy_of(settings)

    def listen() -> socket.socket:
        _check_certificate(settings["serve.tls_cert"].value, settings["serve.tls_key"].value)
        if listening is not None:
            return listening.dup()  # connections that wait at it are the server's afterwards
        return listening_on(policy.host, settings["serve.port"].value, ANOTHER_PORT)[0]

    return WaitingServer(policy, listen, partial(_configured, settings, policy, 1))


def _shares(processes: int) -> Shares:
    """The connections of this process, by the limit of its open files as it is now."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return shares(most if most != resource.RLIM_INFINITY else sys.maxsize, processes)


def _handle_signals(handler: Callable[[int, FrameType | None], object]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _check_access_log(settings: Settings) -> None:
    for name, least in (("serve.access_log_size", 0.001), ("serve.access_log_days", 0)):
        if settings[name].value < least:
            raise BadConfig(f"{name} must be at least {least} (got {settings[name].value:g})")
    if settings["serve.access_log"].value is not None:
        check_place(settings["serve.access_log"].value)


def _access_log(settings: Settings, engine: Engine, log: ServerLog, worker: int | None) -> AccessLog | None:
    path = settings["serve.access_log"].value
    if path is None:
        return None
    size, days = settings["serve.access_log_size"].value, settings["serve.access_log_days"].value

    def presets() -> list[str]:
        return [project.compliance for project in engine.read(lambda tx: tx.find(Project, {}))]

    return AccessLog(path, engine.tenant, size=size, days=days, worker=worker, warn=log.error, presets=presets)


def _leading(
    settings: Settings, place: Place | None, log: ServerLog, address: Callable[[], Address | None]
) -> Callable[[Coordinator, Stepped], Part] | None:
    if place is None:
        return None
    say = partial(log.warning, part="relays")
    messaging, fleet = messaging_here(settings, say), fleet_here(settings, place, address, say)

    def leading(coordinator: Coordinator, stepped: Stepped) -> Part:
        if coordinator.engine.tenant != HOME:
            return of_own_store(coordinator, messaging, say=say, stepped=stepped)
        copies = settings["copies.every"].value
        return LeaderProcess(coordinator, messaging, place, fleet, say=say, stepped=stepped, copies=copies)

    return leading


def _reached(policy: Policy, address: str, port: int) -> str:
    """The URL for agents on this machine; those on others need the setting `serve.url`."""
    everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared, not bound
    host = everywhere.get(address, policy.host)
    return f"{'https' if policy.has_tls else 'http'}://{in_url(host)}:{port}"


def _check_certificate(certificate: str | None, key: str | None) -> None:
    if not certificate:
        return
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise BadConfig(
            f"cannot use the certificate {certificate} with the key {key}: {error}", "see serve.tls_cert, serve.tls_key"
        ) from None


def _write_token(path: str, token: str) -> None:
    try:
        write_token(path, token)
    except OSError as error:
        raise BadConfig(
            f"cannot write the token of this start to {path}: {error.strerror or error}",
            "set TENURE_STATE to a folder that you own, or serve.auth = required to use keys only",
        ) from None


def listening_on(host: str, port: int, hint: str, processes: int = 1) -> list[socket.socket]:
    """A listening socket for each process, opened before any other part starts.

    Linux divides connections evenly among sockets of one port: 64 connections to four workers went to 11 to 26 each,
    while of four that shared one socket one took all in most runs. They are all the parent's: what waits at the socket
    of a process that died is served by the one that follows it. Elsewhere the processes share one socket.
    """
    until = time.monotonic() + (PREDECESSORS if processes > 1 else 0.0)
    while True:
        try:
            return _listening(host, port, processes)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= until:
                raise BadConfig(f"cannot listen on {host}:{port}: {error.strerror or error}", hint) from None
        time.sleep(0.1)


def _listening(host: str, port: int, processes: int) -> list[socket.socket]:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    if processes == 1 or sys.platform != "linux":
        listening = [socket.create_server((host, port), family=family, backlog=BACKLOG)] * processes
    else:
        port = _free(family, host, port)
        listening = [
            socket.create_server((host, port), family=family, backlog=BACKLOG, reuse_port=True)
            for _ in range(processes)
        ]
    for one in listening:
        one.setblocking(False)
    return listening


def _free(family: int, host: str, port: int) -> int:
    """The port, which nobody else listens on: not even another server of the same user, with which it could be shared.

    The socket is bound and never listens, so that no client connects to it: it is closed at once.
    """
    with socket.socket(family, socket.SOCK_STREAM) as alone:
        alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            alone.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        alone.bind((host, port))
        bound: int = alone.getsockname()[1]
        return bound


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host

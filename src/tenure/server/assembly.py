"""Creates and connects the parts of one server process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from tenure import __version__
from tenure.agents.identity import user_of
from tenure.agents.leader_process import Stepped
from tenure.artifacts.port import Artifacts
from tenure.client.transports.local import ProjectArtifacts
from tenure.core import limits
from tenure.core.caller_errors import for_caller, in_full
from tenure.core.commands import ClaimNext, Command, Principal
from tenure.core.errors import TenureError
from tenure.core.events import Event
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query
from tenure.core.records import replace
from tenure.core.roles import check_all_projects
from tenure.core.tenant_records import HOME
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Coordinator, Cycle, Note
from tenure.engine.reads.task_counts import TaskCounts
from tenure.engine.runtime.tenancy import TenantEngines, is_far
from tenure.server import (
    artifact_routes,
    coordinator_routes,
    delivery_routes,
    docs_page,
    plan_routes,
    sign_in_routes,
    transcript_routes,
)
from tenure.server.access_log import AccessLog
from tenure.server.app import App, Endpoint
from tenure.server.auth.authenticator import Authenticator
from tenure.server.auth.policy import Policy
from tenure.server.auth.request_source import source_of
from tenure.server.coordinator import coordinator_of
from tenure.server.dashboard.pages import Dashboard
from tenure.server.logs import ServerLog
from tenure.server.metrics import EventCounter, Metrics
from tenure.server.metrics_page import CONTENT_TYPE, MetricsPage
from tenure.server.process_memory import Memory, OwnMemory
from tenure.server.regions import EVERYWHERE, Region, is_standby
from tenure.server.requests import Request
from tenure.server.responses import Response
from tenure.server.service import Part, Service
from tenure.server.tenants import TenantServices
from tenure.server.workers.added_metrics import WorkerMetrics
from tenure.server.workers.recalled import answer_others, recalled_by_others
from tenure.server.workers.worker import Worker
from tenure.server.write_watch import WriteWatch
from tenure.stores.open_store import open_store
from tenure.stores.router import Router

MCP = "/mcp"


class Assembly:
    """`app` is the ASGI application; its lifespan starts and stops the other parts."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        log: ServerLog,
        token: str | None = None,
        leading: Callable[[Coordinator, Stepped], Part] | None = None,
        lease: float = limits.LEADER_LEASE,
        transcripts: str | None = None,
        worker: Worker | None = None,
        access: AccessLog | None = None,
        most_stores: int = limits.MOST_STORES,
        region: Region = EVERYWHERE,
    ) -> None:
        """`engine` is the home tenant's: the other tenants of its store are served too.

        `leading` makes what runs while this process leads a store; without it only the coordinator runs.

        `lease` is the leader's, in seconds; `transcripts` the folder with those of agents on this machine. `worker` is
        this process, where the server has several. `access` is the access log. `most_stores`: tenants' own.
        `region`: this server's, and the others.
        """
        standby = is_standby(engine.store)
        if standby:
            engine = Engine(engine.store, engine.random, replace(engine.context, elsewhere=region.of_standby))
        self._log, self._access, self._policy = log, access, policy
        self.worker = worker
        memory: Memory = OwnMemory() if worker is None else worker.memory
        self.metrics = Metrics(version=__version__)
        self.service = Service(engine, self.metrics)
        router = Router(open_store, time.monotonic, most=most_stores)
        how: dict[str, Any] = {"fresh": _counting(engine), "router": router}
        self.engines = TenantEngines(engine, time.monotonic, _artifacts_of(engine), **how, elsewhere=region.refusal)
        # The leader of a store serves all its tenants, wherever their home is.
        led = (
            self.engines if region.name is None else TenantEngines(engine, time.monotonic, _artifacts_of(engine), **how)
        )
        self._lease, self._leading = lease, leading
        self.tenants = TenantServices(
            self.service,
            self.engines,
            self._connect,
            self._leader_of,
            most_stores,
            say=partial(log.error, part="tenants"),
        )
        self.authenticator = Authenticator(
            engine,
            policy,
            engines=self.engines,
            read_in_thread=self.service.read_in_thread,
            write_in_thread=self.service.write_in_thread,
            apart=self.tenants.apart.run,
            token=token,
            user=user_of(os.environ) if token else None,
            memory=memory,
        )
        self.service.is_still_valid = self.authenticator.is_still_valid
        self.coordinator: Coordinator = coordinator_of(
            engine, tell=self._noted, cycled=self._cycled, lease=lease, engines=led, news=self._news
        )
        self.event_counter = EventCounter(engine, self.metrics, self.coordinator.instance, self.engines.find)
        self.writes = WriteWatch()
        self._connect(self.service)
        leader = self._led(self.coordinator)
        self.service.parts += [self.event_counter] if standby else [self.event_counter, leader]
        self._scrapes = MetricsPage(self.metrics, engine, engines=self._shown)
        if worker is not None:
            worker.name = self.coordinator.instance
            self._scrapes.shown = WorkerMetrics(worker.peers, self.metrics.registry, worker.folder).page
            self.service.parts.append(worker)
            answer_others(worker.peers, self.authenticator.recall)
            self.authenticator.ask_others = partial(recalled_by_others, worker.peers)
        self.app = App(
            self.service,
            lambda request: self.authenticator.authenticate(request.scope),
            log,
            lambda scope: (
                bool(scope["scheme"] == "https")
                or bool(policy.proxies and source_of(scope, policy.proxies).scheme == "https")
            ),
            self._accessed if access is not None else None,
            lambda request: self.service_of(request.principal.tenant or HOME),
            self.tenants,
            lambda request: self.authenticator.authenticate_watcher(request.scope),
        )
        self.app.add(
            *coordinator_routes.routes(
                self.service,
                self.coordinator,
                self.service_of,
                self.writes,
                lambda request: self.authenticator.is_owner_here(request.scope),
            ),
            *docs_page.routes(),
            *artifact_routes.routes(self.service),
            *transcript_routes.routes(transcripts),
            *plan_routes.routes(),
            *sign_in_routes.routes(self.authenticator),
            *delivery_routes.routes(self.service_of, self.authenticator, policy, memory),
            Endpoint("GET", "/metrics", self._page, is_watched=True),
        )
        self.app.mount("/", Dashboard(), is_open=True)

    # --- tenants ---

    async def service_of(self, tenant: str) -> Service:
        """The service of an open tenant; NotFound where there is none of that name."""
        row = await self.authenticator.open_tenant(tenant)
        if row is not None and is_far(row):
            await self.authenticator.open_store(tenant)
        return self.tenants.of(row)

    def _leader_of(self, engine: Engine) -> Part:
        """What leads a store with one tenant."""
        return self._led(coordinator_of(engine, tell=self._noted, lease=self._lease))

    def _led(self, coordinator: Coordinator) -> Part:
        return coordinator if self._leading is None else self._leading(coordinator, self.metrics.relayed)

    def _connect(self, service: Service) -> None:
        """Connect a tenant's service: what hears its events, and what observes its commands."""
        tenant, feed, engine = service.tenant, service.feed, service.engine
        feed.listeners.append(partial(self.authenticator.hear, tenant))  # before listeners that use its cache
        if engine.context.counts is not None:
            engine.context.counts.position = lambda: feed.position
            feed.listeners.append(engine.context.counts.hear)
        feed.listeners.append(lambda events: self.event_counter.hear(events, tenant))
        feed.listeners.append(self._listed if tenant == HOME else partial(self.tenants.hears, tenant))
        service.observers += [self.event_counter.observe, self.authenticator.observe]
        if engine.store is self.service.engine.store:
            service.observers.append(self.writes.observe)

    def _listed(self, events: Sequence[Event]) -> None:
        """A listener of the home tenant's feed: the coordinator lists the tenants again, and who follows one that was
        closed, or has another store by now, follows it no more.
        """
        tenant_events = [event for event in events if event.kind.startswith("tenant.")]
        if self.coordinator.tenants is not None and tenant_events:
            self.coordinator.tenants.relist()
        for event in tenant_events:
            if event.kind in ("tenant.closed", "tenant.moved"):
                self.tenants.end(event.details["tenant"])

    def _news(self, tenant: str, mark: int) -> None:
        """The leader has found events in a tenant, after the mark: this process counts them. In another thread."""
        loop = self.service.threads.reader.loop
        if loop is not None and (mark == 0 or tenant not in self.tenants.known()):
            with suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(lambda: asyncio.ensure_future(self._follow(tenant, mark)))

    async def _follow(self, tenant: str, mark: int) -> None:
        with suppress(TenureError):
            row = await self.authenticator.open_tenant(tenant)
            if row is not None and is_far(row):
                await self.service_of(tenant)
            else:
                self.tenants.of(row, mark)

    def _shown(self) -> list[Engine]:
        """The engines of the tenants on the metrics page: those in use here, then others by name."""
        rows = {row.id: row for row in self.engines.rows() if self.engines.is_at_hand(row)}
        used = [name for name in self.tenants.known() if name in rows]
        names = list(dict.fromkeys((*used, *rows)))[: limits.METRIC_TENANTS - 1]
        return [self.service.engine, *(self.engines.of(rows[name]) for name in names)]

    async def _page(self, request: Request) -> Response:
        check_all_projects(request.principal, "metrics")
        tenant = request.principal.tenant or HOME
        return Response(200, await self._scrapes.page(None if tenant == HOME else tenant), CONTENT_TYPE.encode())

    # --- the access log ---

    def _accessed(self, request: Request, status: int, seconds: float) -> None:
        assert self._access is not None
        self._access.request(request, status, seconds, self._address(request), error=request.error)

    def _address(self, request: Request) -> str | None:
        if request.is_known:
            return request.principal.address
        try:
            return source_of(request.scope, self._policy.proxies).address
        except TenureError:  # headers that contradict each other
            peer = request.scope.get("client")
            return peer[0] if peer else None

    def tool_ran(self, command: Command, principal: Principal, answer: Outcome | TenureError, seconds: float) -> None:
        """A command of an MCP tool."""
        self.service.observe(command, principal, answer, seconds)
        self._note_hidden(answer, principal)
        if self._access is not None:
            self._access.operation(command, answer, principal, MCP)

    def tool_read(self, query: Query, principal: Principal, view: Any) -> None:
        """A query of an MCP tool, with its view or its error."""
        self._note_hidden(view, principal)
        if self._access is not None:
            self._access.operation(query, view, principal, MCP)

    def _note_hidden(self, answer: Any, principal: Principal) -> None:
        """What the caller of a tool may not read of an error."""
        if isinstance(answer, TenureError) and for_caller(answer, principal) is not answer:
            self._log.error("a tool failed", code=answer.code, why=in_full(answer))

    async def tool_claimed(self, command: ClaimNext, principal: Principal, seconds: float) -> Outcome:
        """A claim of an MCP tool that may wait."""
        service = await self.service_of(principal.tenant or HOME)
        outcome = await service.claim_or_wait(command, principal, seconds)
        if self._access is not None:
            self._access.operation(command, outcome, principal, MCP)
        return outcome

    def _cycled(self, cycle: Cycle) -> None:
        self.metrics.cycle(cycle, self.coordinator.term)
        self.writes.cycled(cycle)

    def _noted(self, note: Note) -> None:
        tenant = None if note.tenant == HOME else note.tenant
        getattr(self._log, note.level)(note.message, part="coordinator", tenant=tenant)


def _artifacts_of(home: Engine) -> Callable[[str], Callable[[str], Artifacts] | None]:
    """Each tenant has its own folder or prefix in the place for artifacts."""
    place = home.context.artifacts
    return lambda tenant: place.of_tenant(tenant) if isinstance(place, ProjectArtifacts) else place


def _counting(home: Engine) -> Callable[[], dict[str, Any]]:
    """What each engine has for itself: the counts of its tasks, where the server keeps them."""
    return lambda: {"counts": None if home.context.counts is None else TaskCounts()}

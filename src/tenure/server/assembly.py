"""Creates and connects the parts of one server process."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tenure import __version__
from tenure.agents.identity import user_of
from tenure.agents.leader_process import Stepped
from tenure.core import limits
from tenure.core.commands import ClaimNext, Command, Principal
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.queries import Query
from tenure.core.roles import check_all_projects
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Coordinator, Cycle, Note
from tenure.server import (
    artifact_routes,
    coordinator_routes,
    delivery_routes,
    docs_page,
    plan_routes,
    sign_in_routes,
    transcript_routes,
)
from tenure.server.access_log import AccessLog, of_command, of_query
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
from tenure.server.requests import Request
from tenure.server.responses import Response
from tenure.server.service import Part, Service
from tenure.server.workers.added_metrics import WorkerMetrics
from tenure.server.workers.worker import Worker

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
    ) -> None:
        """`leading` makes what runs while this process leads; without it only the coordinator runs.

        `lease` is the leader's, in seconds; `transcripts` the folder with those of agents on this machine. `worker` is
        this process, where the server has several. `access` is the access log.
        """
        self._log, self._access, self._policy = log, access, policy
        self.worker = worker
        memory: Memory = OwnMemory() if worker is None else worker.memory
        self.metrics = Metrics(tenant=engine.tenant, version=__version__)
        self.service = Service(engine, self.metrics)
        self.authenticator = Authenticator(
            engine,
            policy,
            read_in_thread=self.service.read_in_thread,
            write_in_thread=self.service.write_in_thread,
            token=token,
            user=user_of(os.environ) if token else None,
            memory=memory,
        )
        self.service.is_still_valid = self.authenticator.is_still_valid
        self.coordinator: Coordinator = coordinator_of(engine, tell=self._noted, cycled=self._cycled, lease=lease)
        self.event_counter = EventCounter(engine, self.metrics, self.coordinator.instance)
        self.service.feed.listeners.insert(0, self.authenticator.hear)  # before listeners that use its cache
        self.service.feed.listeners.append(self.event_counter.hear)
        if engine.context.counts is not None:
            engine.context.counts.position = lambda: self.service.feed.position
            self.service.feed.listeners.insert(0, engine.context.counts.hear)
        self.service.observers += [self.event_counter.observe, self.authenticator.observe]
        leader: Part = self.coordinator if leading is None else leading(self.coordinator, self.metrics.relayed)
        self.service.parts += [self.event_counter, leader]
        self._scrapes = MetricsPage(self.metrics, engine)
        if worker is not None:
            worker.name = self.coordinator.instance
            self._scrapes.shown = WorkerMetrics(worker.peers, self.metrics.registry, worker.folder).page
            self.service.parts.append(worker)
        self.app = App(
            self.service,
            lambda request: self.authenticator.authenticate(request.scope),
            log,
            lambda scope: (
                bool(scope["scheme"] == "https")
                or bool(policy.proxies and source_of(scope, policy.proxies).scheme == "https")
            ),
            self._accessed if access is not None else None,
        )
        self.app.add(
            *coordinator_routes.routes(self.service, self.coordinator),
            *docs_page.routes(),
            *artifact_routes.routes(self.service),
            *transcript_routes.routes(self.service, transcripts),
            *plan_routes.routes(self.service),
            *sign_in_routes.routes(self.authenticator),
            *delivery_routes.routes(self.service, policy, memory),
            Endpoint("GET", "/metrics", self._page),
        )
        self.app.mount("/", Dashboard(), is_open=True)

    async def _page(self, request: Request) -> Response:
        check_all_projects(request.principal, "metrics")
        return Response(200, await self._scrapes.page(), CONTENT_TYPE.encode())

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
        if self._access is not None:
            self._access.operation(of_command(command, answer), principal, MCP, project=command.project)

    def tool_read(self, query: Query, principal: Principal, view: Any) -> None:
        """A query of an MCP tool, with its view or its error."""
        if self._access is not None:
            self._access.operation(of_query(query, view), principal, MCP, project=query.project)

    async def tool_claimed(self, command: ClaimNext, principal: Principal, seconds: float) -> Outcome:
        """A claim of an MCP tool that may wait."""
        outcome = await self.service.claim_or_wait(command, principal, seconds)
        if self._access is not None:
            self._access.operation(of_command(command, outcome), principal, MCP, project=command.project)
        return outcome

    def _cycled(self, cycle: Cycle) -> None:
        self.metrics.cycle(cycle, self.coordinator.term)

    def _noted(self, note: Note) -> None:
        getattr(self._log, note.level)(note.message, part="coordinator")

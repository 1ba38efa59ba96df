"""Creates and connects the parts of one server process."""

from __future__ import annotations

import os
from collections.abc import Callable

from tenure import __version__
from tenure.agents.identity import user_of
from tenure.agents.leader_process import Stepped
from tenure.core import limits
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
    ) -> None:
        """`leading` makes what runs while this process leads; without it only the coordinator runs.

        `lease` is the leader's, in seconds; `transcripts` the folder with those of agents on this machine. `worker` is
        this process, where the server has several.
        """
        self._log = log
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

    def _cycled(self, cycle: Cycle) -> None:
        self.metrics.cycle(cycle, self.coordinator.term)

    def _noted(self, note: Note) -> None:
        getattr(self._log, note.level)(note.message, part="coordinator")

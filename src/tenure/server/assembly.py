"""The parts of one server process, put together."""

from __future__ import annotations

from contextlib import AbstractContextManager

from tenure import __version__
from tenure.core.commands import ClaimNext, ClaimTask, Command, Principal, RevokeKey, RotateKey
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.roles import check_all_projects
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Cycle
from tenure.server import artifact_routes, coordinator_routes, delivery_routes, document_routes, sign_in_routes
from tenure.server.answers import Answer
from tenure.server.app import App, Place
from tenure.server.auth.gate import Gate
from tenure.server.auth.policy import Policy
from tenure.server.auth.visits import visit_of
from tenure.server.coordinator import Note, coordinator_of
from tenure.server.counting import Counting
from tenure.server.dashboard.pages import Dashboard
from tenure.server.logs import Log
from tenure.server.metrics import Metrics
from tenure.server.requests import Request
from tenure.server.scraping import CONTENT_TYPE, Scrapes
from tenure.server.service import Service


class Assembly:
    """`app` is the ASGI application; its lifespan starts and ends the rest."""

    def __init__(self, engine: Engine, policy: Policy, log: Log, token: str | None = None) -> None:
        self._log = log
        self.metrics = Metrics(tenant=engine.tenant, version=__version__)
        self.service = Service(engine, self)
        self.gate = Gate(engine, policy, aside=self.service.aside, write=self.service.write, token=token)
        self.service.is_still_good = self.gate.is_still_good
        self.coordinator = coordinator_of(engine, tell=self._noted, cycled=self._cycled)
        self.counting = Counting(engine, self.metrics, self.coordinator.instance)
        self.service.feed.listeners.insert(0, self.gate.hear)  # before those who act by what it knows
        self.service.feed.listeners.append(self.counting.hear)
        self.service.beside += [self.counting, self.coordinator]
        self._scrapes = Scrapes(self.metrics, engine)
        self.app = App(
            self.service, self._sign_in, self._watch,
            lambda scope: bool(scope["scheme"] == "https") or bool(
                policy.proxies and visit_of(scope, policy.proxies).scheme == "https"
            ),
        )  # fmt: skip
        self.app.add(
            *coordinator_routes.routes(self.service, self.coordinator), *document_routes.routes(),
            *artifact_routes.routes(self.service),
            *sign_in_routes.routes(self.gate), *delivery_routes.routes(self.service, policy),
            Place("GET", "/metrics", self._page),
        )  # fmt: skip
        self.app.mount("/", Dashboard(), is_open=True)

    # --- what the service tells ---

    def observe(self, command: Command, principal: Principal, answer: Outcome | TenureError, seconds: float) -> None:
        self.metrics.observe(command, principal, answer, seconds)
        if isinstance(command, (ClaimTask, ClaimNext)) and isinstance(answer, Outcome) and answer.ok:
            self.counting.see(command.project, answer)
        if isinstance(command, (RotateKey, RevokeKey)):
            self.gate.ring.forget(command.key)  # here it opens nothing from now on; others hear of it by the feed

    def holding(self, kind: str) -> AbstractContextManager[None]:
        return self.metrics.holding(kind)

    def store_failed(self, error: TenureError) -> None:
        self.metrics.store_failed(error)

    # --- what the others ask and tell ---

    async def _sign_in(self, request: Request) -> Principal:
        return await self.gate.admit(request.scope)

    async def _page(self, request: Request) -> Answer:
        check_all_projects(request.principal, "metrics")
        return Answer(200, await self._scrapes.page(), CONTENT_TYPE.encode())

    def _watch(self, request: Request, status: int, seconds: float) -> None:
        scope = request.scope
        self.metrics.request(request.route or "none", scope["method"], status, seconds)
        self._log.request(
            scope["method"], request.route or "none", status, seconds,
            principal=request.principal if request.is_known else None, trace_id=request.trace.id,
            path=None if request.route else scope["path"],
        )  # fmt: skip
        if request.crash is not None:
            self._log.error("a bug of ours", exc_info=request.crash, trace_id=request.trace.id)

    def _cycled(self, cycle: Cycle) -> None:
        term = self.coordinator.term
        self.metrics.cycle(
            cycle.seconds, leads=term is not None, term=term, settled=cycle.settled, failed=cycle.failed, ok=cycle.ok
        )

    def _noted(self, note: Note) -> None:
        getattr(self._log, note.level)(note.message, part="coordinator")

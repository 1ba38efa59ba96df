"""`/api/v1/coordinator/…` and the probes: is the process alive, can it serve, does the store have a leader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

from tenure import __version__
from tenure.client.routes import PREFIX
from tenure.client.wire import plain
from tenure.core import limits
from tenure.core.caller_errors import in_fixed_words
from tenure.core.errors import InvalidInput, StoreUnavailable, TenureError
from tenure.core.instants import parse_instant
from tenure.core.queries import Relays
from tenure.core.roles import check_coordinator
from tenure.core.store_health import OK, UNAVAILABLE, health_of
from tenure.core.tenant_records import HOME
from tenure.core.tenants import unknown
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.reads.coordinator_status import MOST_LOGGED, logs, recover, spawners, status
from tenure.engine.reads.query_table import read_query
from tenure.server import responses
from tenure.server.app import Endpoint
from tenure.server.requests import Request, decode_recover
from tenure.server.responses import Response
from tenure.server.service import Service
from tenure.server.write_watch import WriteWatch

if TYPE_CHECKING:
    from tenure.core.views.project_views import CoordinatorHealth

PATIENCE = limits.READY_WAIT
HEALTHY, DEGRADED = "healthy", "degraded"
WELL = ("up to date", "ok", "paused")  # states of sinks and spawners: a person paused it on purpose
_WITHOUT_STORE: CoordinatorHealth = {
    "status": DEGRADED, "database": UNAVAILABLE, "reason": None, "active": False, "term": 0, "since": None,
    "last_heartbeat_at": None, "last_cycle_at": None, "cycles": 0, "lease": None, "store": "unavailable",
    "here": False, "sinks": [], "spawners": [],
}  # fmt: skip
_LATER = (b"retry-after", b"%d" % responses.RETRY_AFTER)


ServiceOf = Callable[[str], Awaitable[Service]]  # of an open tenant; raises NotFound


def routes(
    service: Service,
    coordinator: Coordinator,
    service_of: ServiceOf,
    writes: WriteWatch,
    is_owner: Callable[[Request], bool],
) -> Iterator[Endpoint]:
    """The endpoints for `App.add`. `service` is the home tenant's; `is_owner` says who may read the store's errors."""
    endpoints = CoordinatorEndpoints(service, coordinator, service_of, writes, is_owner)
    yield Endpoint("GET", f"{PREFIX}/coordinator/status", endpoints.status)
    yield Endpoint("POST", f"{PREFIX}/coordinator/recover", endpoints.recover)
    yield Endpoint("GET", f"{PREFIX}/coordinator/logs", endpoints.logs)
    yield Endpoint("GET", "/health", endpoints.health, is_open=True)
    yield Endpoint("GET", "/health/coordinator", endpoints.coordinator_health, is_open=True)
    yield Endpoint("GET", "/ready", endpoints.ready, is_open=True)


class CoordinatorEndpoints:
    def __init__(
        self,
        service: Service,
        coordinator: Coordinator,
        service_of: ServiceOf | None = None,
        writes: WriteWatch | None = None,
        is_owner: Callable[[Request], bool] = lambda _: False,
    ) -> None:
        self._service, self._coordinator = service, coordinator
        self._writes, self._is_owner = writes or WriteWatch(), is_owner
        self._service_of = service_of or _unknown
        self._engine = service.engine
        self._probe: asyncio.Future[None] | None = None

    # --- the coordinator ---

    async def status(self, request: Request) -> Response:
        who = request.principal
        check_coordinator(who, "status", of_all=False)  # it is about the projects of the key
        service = request.service
        return responses.of_value(
            plain(
                await service.read_in_thread(status, service.engine, self._coordinator, who.projects, self._engine, who)
            )
        )

    async def recover(self, request: Request) -> Response:
        check_coordinator(request.principal, "recover")
        asked = decode_recover(await request.json())
        service = request.service
        return responses.of_value(plain(await service.read_in_thread(recover, service.engine, asked.project)))

    async def logs(self, request: Request) -> Response:
        check_coordinator(request.principal, "logs")
        service = await self._of_log(request)
        since = request.parameter("since")
        limit = int(request.number("limit", 100, MOST_LOGGED))
        level = request.parameter("level")

        def read() -> list[dict[str, Any]]:
            notes = self._coordinator.notes
            return logs(
                service.engine, notes, level="info" if level is None else level, limit=limit, since=_instant(since)
            )

        return responses.of_value({"items": plain(await service.read_in_thread(read)), "next": None})

    async def _of_log(self, request: Request) -> Service:
        """The service whose log is asked for: `tenant` names another one, for the deployment's owner alone."""
        named = request.parameter("tenant")
        if named in (None, request.service.tenant):
            return request.service
        if request.service.tenant != HOME or request.principal.role != "owner":
            raise unknown(named or "")
        return await self._service_of(named or "")

    # --- probes ---

    async def health(self, request: Request) -> Response:
        """The process responds. Nothing else is checked, since a restart would fix nothing else."""
        return alive()

    async def ready(self, request: Request) -> Response:
        """Whether the store responds in time; if not, a load balancer uses another server.

        Failing writes are reported, and it stays ready: it still answers reads, and another server writes no better.
        """
        trouble = await self._store_error()
        if trouble is not None:
            request.cause = trouble
            return responses.of_error(trouble if self._is_owner(request) else in_fixed_words(trouble))
        if self._service.is_closing:
            return responses.of_error(StoreUnavailable("this server is shutting down", "use another server"))
        failing = self._writes.failure()
        if failing is None:
            return responses.of_value({"status": "ready"})
        database, reason = health_of(None, failing)
        return responses.of_value(
            {"status": "ready", "database": database, "reason": self._reason(request, failing, reason)}
        )

    def _reason(self, request: Request, trouble: TenureError, fixed: str | None) -> str | None:
        """The error's own words, for the owner of the deployment; the log has them too."""
        request.cause = trouble
        return trouble.message if self._is_owner(request) else fixed

    async def coordinator_health(self, request: Request) -> Response:
        """200 if any process leads; 503 if none does, or the store is unavailable. A sink in trouble degrades it."""
        trouble = await self._store_error()
        if trouble is not None:
            return without_store(trouble, self._reason(request, trouble, None))
        seen = await self._service.read_in_thread(status, self._engine, self._coordinator)
        relays = await self._service.read_in_thread(read_query, self._engine, Relays())
        shown = ("active", "term", "since", "last_heartbeat_at", "last_cycle_at", "cycles", "lease")
        value = {name: seen[name] for name in shown} | {"store": "ok", "here": seen["here"]["leads"]}
        # Everybody may ask: no URL, and no text of an error.
        value["sinks"] = [{name: relay[name] for name in ("name", "state", "lag", "lag_events")} for relay in relays]
        value["spawners"] = await self._service.read_in_thread(spawners, self._engine)
        parts = (*relays, *value["spawners"])
        failing = self._writes.failure()
        database, reason = health_of(None, failing)
        is_well = database == OK and seen["active"] and all(part["state"] in WELL for part in parts)
        reason = reason if failing is None else self._reason(request, failing, reason)
        value = {"status": HEALTHY if is_well else DEGRADED, "database": database, "reason": reason} | value
        headers = () if seen["active"] else (_LATER,)
        return responses.of_value(plain(value), *headers, status=200 if seen["active"] else 503)

    async def _store_error(self) -> TenureError | None:
        """The error of a small read. One read at a time: probes of a store that hangs must not pile up."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.ensure_future(self._service.read_in_thread(_small_read, self._engine))
            self._probe.add_done_callback(_seen)
        try:
            await asyncio.wait_for(asyncio.shield(self._probe), PATIENCE)
        except TimeoutError:
            return StoreUnavailable(f"the store has not responded for {PATIENCE:g} s")
        except TenureError as error:
            return error
        return None


def alive() -> Response:
    return responses.of_value({"status": "ok", "version": __version__})


def without_store(trouble: TenureError, reason: str | None = None) -> Response:
    """The coordinator's health where the store cannot be read; by default with the reason for everybody."""
    database, fixed = health_of(trouble, None)
    return responses.of_value(_WITHOUT_STORE | {"database": database, "reason": reason or fixed}, _LATER, status=503)


async def _unknown(name: str) -> Service:
    raise unknown(name)


def _small_read(engine: Engine) -> None:
    engine.read(lambda tx: tx.now)  # a store may begin with its first query


def _seen(probe: asyncio.Future[None]) -> None:
    """Retrieve the error of a probe that nobody awaited, so that asyncio does not log it."""
    if not probe.cancelled():
        probe.exception()


def _instant(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text) if text.isdecimal() else parse_instant(text)
    except ValueError as error:
        raise InvalidInput(f"since {text[:60]!r}: {error}") from None

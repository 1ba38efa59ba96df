"""`/api/v1/coordinator/…`, and what probes ask: is the process alive, can it serve, does anybody lead."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec

from tenure import __version__
from tenure.client.routes import PREFIX
from tenure.client.wire import instant, plain
from tenure.core import limits
from tenure.core.decoders import check_json
from tenure.core.errors import InvalidInput, StoreUnavailable, TenureError
from tenure.core.roles import check_coordinator
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.reads.coordinator_status import MOST_LOGGED, logs, recover, status
from tenure.server import answers
from tenure.server.answers import Answer
from tenure.server.app import Place
from tenure.server.requests import Request
from tenure.server.service import Service

PATIENCE = limits.READY_WAIT


class Recover(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    project: str | None = None  # all of them


def routes(service: Service, coordinator: Coordinator) -> Iterator[Place]:
    """What `App.add` takes."""
    desk = Desk(service, coordinator)
    yield Place("GET", f"{PREFIX}/coordinator/status", desk.status)
    yield Place("POST", f"{PREFIX}/coordinator/recover", desk.recover)
    yield Place("GET", f"{PREFIX}/coordinator/logs", desk.logs)
    yield Place("GET", "/health", desk.health, is_open=True)
    yield Place("GET", "/health/coordinator", desk.coordinator_health, is_open=True)
    yield Place("GET", "/ready", desk.ready, is_open=True)


class Desk:
    def __init__(self, service: Service, coordinator: Coordinator) -> None:
        self._service, self._coordinator = service, coordinator
        self._engine = service.engine
        self._probe: asyncio.Future[None] | None = None

    # --- the coordinator ---

    async def status(self, request: Request) -> Answer:
        who = request.principal
        check_coordinator(who, "status", "viewer")
        return answers.of_value(plain(await self._service.aside(status, self._engine, self._coordinator, who.projects)))

    async def recover(self, request: Request) -> Answer:
        check_coordinator(request.principal, "recover")
        body = await request.body() or b"{}"
        check_json(body, "the body")
        try:
            asked = msgspec.json.decode(body, type=Recover)
        except msgspec.MsgspecError as error:
            raise InvalidInput(f"the body: {error}") from None
        return answers.of_value(plain(await self._service.aside(recover, self._engine, asked.project)))

    async def logs(self, request: Request) -> Answer:
        check_coordinator(request.principal, "logs")
        since = request.parameter("since")
        limit = int(request.number("limit", 100, MOST_LOGGED))
        level = request.parameter("level")

        def read() -> list[dict[str, Any]]:
            notes = self._coordinator.notes
            return logs(
                self._engine, notes, level="info" if level is None else level, limit=limit, since=_instant(since)
            )

        return answers.of_value({"items": plain(await self._service.aside(read)), "next": None})

    # --- probes ---

    async def health(self, request: Request) -> Answer:
        """The process answers; nothing else is asked, since restarting it would mend nothing else."""
        return answers.of_value({"status": "ok", "version": __version__})

    async def ready(self, request: Request) -> Answer:
        """Whether the store answers in time; a balancer sends requests elsewhere where it does not."""
        trouble = await self._trouble()
        if trouble is None and not self._service.is_closing:
            return answers.of_value({"status": "ready"})
        return answers.of_error(trouble or StoreUnavailable("this server is closing", "ask another"))

    async def coordinator_health(self, request: Request) -> Answer:
        """200 where somebody leads, whichever process it is; 503 where nobody does, or the store is away."""
        trouble = await self._trouble()
        if trouble is not None:
            return answers.of_error(trouble)
        seen = await self._service.aside(status, self._engine, self._coordinator)
        shown = ("active", "term", "since", "last_heartbeat_at", "last_cycle_at", "cycles", "lease")
        value = {name: seen[name] for name in shown} | {"store": "ok", "here": seen["here"]["leads"]}
        headers = () if seen["active"] else ((b"retry-after", b"%d" % answers.RETRY_AFTER),)
        return answers.of_value(plain(value), *headers, status=200 if seen["active"] else 503)

    async def _trouble(self) -> TenureError | None:
        """What keeps the store from a small read. One at a time: probes of a store that hangs must not pile up."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.ensure_future(self._service.aside(_small_read, self._engine))
            self._probe.add_done_callback(_seen)
        try:
            await asyncio.wait_for(asyncio.shield(self._probe), PATIENCE)
        except TimeoutError:
            return StoreUnavailable(f"the store has not answered for {PATIENCE:g} s")
        except TenureError as error:
            return error
        return None


def _small_read(engine: Engine) -> None:
    with engine.store.begin(engine.tenant, write=False) as tx:
        tx.now  # noqa: B018 - a store may begin with its first question


def _seen(probe: asyncio.Future[None]) -> None:
    """What nobody waited for has failed too, and is not told again."""
    if not probe.cancelled():
        probe.exception()


def _instant(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text) if text.isdecimal() else instant(text)
    except ValueError as error:
        raise InvalidInput(f"since {text[:60]!r}: {error}") from None

"""Webhook deliveries: the one endpoint that reads a body before authentication.

The signature covers the body, so the body must be read to verify it. The cost is bounded: without a signature header no
body is read; the body has a maximum size; verification only reads, and comes before rate limits, so wrong deliveries do
not block genuine ones. No response distinguishes an unknown tenant or name from a wrong signature, nor a tenant whose
own store is unavailable: a sender delivers a refused one again. Only a verified delivery becomes a command, which
verifies the signature again in its transaction.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator

from tenure.client.routes import DELIVERIES, PREFIX
from tenure.core import signatures
from tenure.core.commands import Deliver, Principal
from tenure.core.errors import NotFound, RateLimited, TenureError
from tenure.core.outcomes import Outcome
from tenure.core.tenant_records import HOME
from tenure.engine.sources.deliveries import is_genuine, not_genuine
from tenure.server import responses
from tenure.server.app import Endpoint
from tenure.server.auth.authenticator import FAILURES, FAILURES_A_SECOND, Authenticator
from tenure.server.auth.lookups import AWAY
from tenure.server.auth.policy import Policy
from tenure.server.auth.request_source import NAMED_TENANT, check_host, source_of, tenant_named
from tenure.server.process_memory import Memory
from tenure.server.rate_limits import caller_at, limited
from tenure.server.requests import Request
from tenure.server.responses import Response
from tenure.server.service import Service

A_SECOND, AT_ONCE = 20.0, 100.0  # genuine deliveries to one trigger from one address


ServiceOf = Callable[[str], Awaitable[Service]]  # of an open tenant; raises NotFound


def routes(service_of: ServiceOf, authenticator: Authenticator, policy: Policy, memory: Memory) -> Iterator[Endpoint]:
    endpoint = _DeliveryEndpoint(service_of, authenticator, policy, memory)
    yield Endpoint("POST", PREFIX + DELIVERIES, endpoint.take, is_open=True)


class _DeliveryEndpoint:
    def __init__(self, service_of: ServiceOf, authenticator: Authenticator, policy: Policy, memory: Memory) -> None:
        self._service_of, self._authenticator, self._policy = service_of, authenticator, policy
        self._failures = memory.buckets("unsigned", FAILURES_A_SECOND, FAILURES, time.monotonic)
        self._deliveries = memory.buckets("deliveries", A_SECOND, AT_ONCE, time.monotonic)

    async def take(self, request: Request) -> Response:
        who = source_of(request.scope, self._policy.proxies)
        check_host(who, self._policy)
        caller = caller_at(who.address)
        headers = {name: value for name in signatures.HEADERS if (value := request.header(name.encode())) is not None}
        if not signatures.is_signed(headers):
            raise self._refused(caller, "unsigned")
        body = await request.body(signatures.LARGEST_BODY)
        project, trigger = request.fields["project"], request.fields["trigger"]
        tenant = tenant_named(who, request.scope.get(NAMED_TENANT)) or HOME
        what = f"{tenant} {project} {trigger}"
        service, home = await self._service_now(tenant), await self._service_of(HOME)

        async def is_good(there: Service) -> bool:
            return await there.read_in_thread(is_genuine, there.engine, project, trigger, headers, body)

        is_far = service is not None and service.engine.store is not home.engine.store
        try:
            is_accepted = service is not None and await is_good(service)
        except AWAY as error:
            if not is_far:
                raise
            self._authenticator.note_away(tenant, error)
            is_accepted = False
        if service is None or not is_accepted:
            if service is None or is_far:
                await is_good(home)  # the same read for every name, with the same trouble
            raise self._refused(caller, what)
        self._deliveries.take(f"{caller} {what}")
        command = Deliver(project=project, trigger=trigger, headers=headers, body=body, trace_id=request.trace.id)
        principal = Principal(role="agent", address=who.address, projects=(project,), tenant=tenant)
        return _response(await service.do(command, principal))

    async def _service_now(self, tenant: str) -> Service | None:
        """None where there is no such tenant, or its own store is unavailable: the signature cannot be checked."""
        try:
            return await self._service_of(tenant)
        except NotFound:
            return None
        except AWAY:
            if self._authenticator.is_away(tenant):
                return None
            raise

    def _refused(self, caller: str, what: str) -> TenureError:
        """Failures are counted by address and trigger; beyond the limit the sender must wait."""
        name = f"{caller} {what}"
        if (wait := self._failures.wait_of(name)) > 0:
            return limited(wait)
        self._failures.take(name)
        return not_genuine()


def _response(outcome: Outcome) -> Response:
    """The outcome of the delivery, without data of the project."""
    if outcome.outcome == "DENIED_LIMIT":
        raise RateLimited(
            outcome.message, "no task was created; send it again later", retry_after=outcome.retry_in or 1
        )
    return responses.of_outcome(outcome)

"""Deliveries for webhooks: the one place where a body is read of somebody who has not signed in.

The signature is over the body, so it must be read to be judged. What keeps that small: without a signature header no
body is read; the body is bounded; the judgement is a look, not a write, and comes before anything is counted, so that
wrong ones keep no genuine one out; and no answer tells an unknown name from a wrong signature. Only what was found
genuine becomes a command, which is judged again, in its transaction.
"""

from __future__ import annotations

from collections.abc import Iterator

from tenure.client.routes import DELIVERIES, PREFIX
from tenure.core import signatures
from tenure.core.commands import Deliver, Principal
from tenure.core.errors import RateLimited, TenureError
from tenure.core.outcomes import Outcome
from tenure.engine.sources.deliveries import is_genuine, not_genuine
from tenure.server import answers
from tenure.server.answers import Answer
from tenure.server.app import Place
from tenure.server.auth.gate import FAILURES, FAILURES_A_SECOND
from tenure.server.auth.origins import check_host
from tenure.server.auth.policy import Policy
from tenure.server.auth.visits import visit_of
from tenure.server.limits import Buckets, caller_at, limited
from tenure.server.requests import Request
from tenure.server.service import Service

A_SECOND, AT_ONCE = 20.0, 100.0  # genuine deliveries to one trigger from one address


def routes(service: Service, policy: Policy) -> Iterator[Place]:
    yield Place("POST", PREFIX + DELIVERIES, _Desk(service, policy).take, is_open=True)


class _Desk:
    def __init__(self, service: Service, policy: Policy) -> None:
        self._service, self._policy = service, policy
        self._failures = Buckets(FAILURES_A_SECOND, FAILURES)
        self._deliveries = Buckets(A_SECOND, AT_ONCE)

    async def take(self, request: Request) -> Answer:
        who = visit_of(request.scope, self._policy.proxies)
        check_host(who, self._policy)
        caller = caller_at(who.address)
        headers = {name: value for name in signatures.HEADERS if (value := request.header(name.encode())) is not None}
        if not signatures.is_signed(headers):
            raise self._refused(caller, "unsigned")
        body = await request.body(signatures.LARGEST_BODY)
        project, trigger = request.fields["project"], request.fields["trigger"]
        if not await self._service.aside(is_genuine, self._service.engine, project, trigger, headers, body):
            raise self._refused(caller, f"{project} {trigger}")
        self._deliveries.take(f"{caller} {project} {trigger}")
        command = Deliver(project=project, trigger=trigger, headers=headers, body=body, trace_id=request.trace.id)
        principal = Principal(role="agent", address=who.address, projects=(project,))
        return _told(await self._service.do(command, principal))

    def _refused(self, caller: str, what: str) -> TenureError:
        """Counted by address and by what was tried; too many are told to wait."""
        name = f"{caller} {what}"
        if (wait := self._failures.wait_of(name)) > 0:
            return limited(wait)
        self._failures.take(name)
        return not_genuine()


def _told(outcome: Outcome) -> Answer:
    """What became of it, and nothing of the project."""
    if outcome.outcome == "DENIED_LIMIT":
        raise RateLimited(outcome.message, "nothing was made; send it again later", retry_after=outcome.retry_in or 1)
    return answers.of_outcome(outcome)

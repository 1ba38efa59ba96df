"""Responses: outcomes, views and errors as status, headers and JSON. `client/routes.py` is the table of statuses."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from http import HTTPStatus
from math import ceil
from typing import Any, NamedTuple

import msgspec

from tenure.client.routes import OF_ERROR, OF_KIND, OF_OUTCOME
from tenure.client.wire import cursor_text, outcome_value, plain
from tenure.core.errors import NotHome, TenureError
from tenure.core.outcomes import CODES, Outcome
from tenure.core.query import Page
from tenure.server.requests import TRACEPARENT, Disconnected, Request, Send

JSON = b"application/json"
PROBLEM = b"application/problem+json"
RETRY_AFTER = 1  # seconds, the default
COSTLY = 0.001  # seconds of processor time from which a response says what it took
Headers = tuple[tuple[bytes, bytes], ...]
_NOT_KEPT = (b"cache-control", b"no-store")
_SNIFF = (b"x-content-type-options", b"nosniff")


class Response(NamedTuple):
    status: int
    body: bytes
    type: bytes = JSON
    headers: Headers = ()

    def all_headers(self) -> list[tuple[bytes, bytes]]:
        if not self.type:  # without a body
            return [_NOT_KEPT, _SNIFF, *self.headers]
        length = (b"content-length", b"%d" % len(self.body))
        return [(b"content-type", self.type), length, _NOT_KEPT, _SNIFF, *self.headers]


class StreamedResponse(NamedTuple):
    """A response in pieces: server-sent events, or the bytes of an artifact."""

    chunks: AsyncGenerator[bytes, None]
    status: int = 200
    headers: Headers = (
        (b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"),
        (b"x-content-type-options", b"nosniff"),
    )  # fmt: skip
    waits: str = "events"  # the kind of open request, for metrics

    async def send(self, request: Request, send: Send) -> None:
        """Send the pieces until the end, or until the client disconnects."""
        headers = [*self.headers, (TRACEPARENT, request.trace.header)]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        is_head = request.scope["method"] == "HEAD"

        async def pour() -> None:
            async with aclosing(self.chunks) as chunks:
                if not is_head:
                    async for chunk in chunks:
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        with suppress(Disconnected, TenureError):  # the client sees by the length that the response is incomplete
            await request.while_there(pour())


def of_value(value: Any, *headers: tuple[bytes, bytes], status: int = 200) -> Response:
    return Response(status, msgspec.json.encode(value), headers=headers)


def of_outcome(outcome: Outcome, *headers: tuple[bytes, bytes], lists_claims: bool = False) -> Response:
    """The outcome as JSON, with the HTTP status of its kind."""
    value = outcome_value(outcome)
    if lists_claims and outcome.outcome == "NO_TASK":
        value["claims"] = []  # nothing to claim is an empty list, not an error
    return Response(status_of(outcome), msgspec.json.encode(value), headers=headers)


def status_of(outcome: Outcome) -> int:
    return OF_OUTCOME.get(outcome.outcome) or OF_KIND[CODES[outcome.outcome].kind]


def with_cost(answer: Response, seconds: float) -> Response:
    """The response with the processor time that it took, if that was long: open pages then ask less often."""
    if seconds < COSTLY:
        return answer
    return answer._replace(headers=(*answer.headers, (b"server-timing", b"cpu;dur=%.1f" % (1000 * seconds))))


def of_view(view: Any) -> Response:
    """A list as a page that says whether there are more, with the cursor of the next one; any other view as it is."""
    if isinstance(view, Outcome):
        return of_outcome(view)
    return of_list(view) if isinstance(view, list) else of_value(plain(view))


def of_list(view: list[Any]) -> Response:
    """A list without pages is whole."""
    next, more = (view.next, view.more) if isinstance(view, Page) else (None, False)
    cursor = next if next is None else cursor_text(next) if isinstance(next, tuple) else str(next)
    return of_value({"items": plain(view), "next": cursor, "more": more})


def problem(error: TenureError) -> dict[str, Any]:
    """An error as problem details (RFC 9457); `definite`: nothing was done."""
    status = OF_ERROR.get(error.code, 500)
    fields = {
        "type": f"urn:tenure:error:{error.code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message,
        "code": error.code,
        "definite": error.definite,
    }
    return fields | ({"hint": error.hint} if error.hint else {})


def of_error(error: TenureError) -> Response:
    fields = problem(error)
    headers: list[tuple[bytes, bytes]] = []
    if fields["status"] in (429, 503):
        headers.append((b"retry-after", b"%d" % max(RETRY_AFTER, ceil(getattr(error, "retry_after", None) or 0))))
    if fields["status"] == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if isinstance(error, NotHome) and error.home is not None:
        headers.append((b"tenure-home", error.home.encode()))
    if hasattr(error, "allowed"):
        headers.append((b"allow", error.allowed.encode()))
    return Response(fields["status"], msgspec.json.encode(fields), PROBLEM, tuple(headers))


def of_batch(answers: Sequence[Outcome | TenureError]) -> Response:
    """One outcome or problem for each command, in the same order."""
    fields = [problem(a) if isinstance(a, TenureError) else outcome_value(a) for a in answers]
    return of_value({"outcomes": fields})

"""Answers: outcomes, looks and errors as status, headers and JSON. `client/statuses.py` is the table of statuses."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from math import ceil
from typing import Any, NamedTuple

import msgspec

from tenure.client.statuses import OF_ERROR, OF_KIND, OF_OUTCOME
from tenure.client.wire import outcome_value, plain
from tenure.core.errors import TenureError
from tenure.core.outcomes import CODES, Outcome
from tenure.core.queries import Log, Query, Tasks
from tenure.engine.reads.tasks import MOST_EVENTS, MOST_LISTED

JSON = b"application/json"
PROBLEM = b"application/problem+json"
RETRY_AFTER = 1  # seconds, where nothing else says how long
Headers = tuple[tuple[bytes, bytes], ...]
_NOT_KEPT = (b"cache-control", b"no-store")
_SNIFF = (b"x-content-type-options", b"nosniff")


class Answer(NamedTuple):
    status: int
    body: bytes
    type: bytes = JSON
    headers: Headers = ()

    def all_headers(self) -> list[tuple[bytes, bytes]]:
        length = (b"content-length", b"%d" % len(self.body))
        return [(b"content-type", self.type), length, _NOT_KEPT, _SNIFF, *self.headers]


def of_value(value: Any, *headers: tuple[bytes, bytes], status: int = 200) -> Answer:
    return Answer(status, msgspec.json.encode(value), headers=headers)


def of_outcome(outcome: Outcome, *, lists_claims: bool = False) -> Answer:
    """The outcome's one shape, with the status of what it means."""
    value = outcome_value(outcome)
    if lists_claims and outcome.outcome == "NO_TASK":
        value["claims"] = []  # nothing to claim is an empty list, not an error
    return Answer(status_of(outcome), msgspec.json.encode(value))


def status_of(outcome: Outcome) -> int:
    return OF_OUTCOME.get(outcome.outcome) or OF_KIND[CODES[outcome.outcome].kind]


def of_look(query: Query, seen: Any) -> Answer:
    """A list as a page with the cursor of the next one; anything else as it is."""
    if isinstance(seen, Outcome):
        return of_outcome(seen)
    if isinstance(seen, list):
        return of_value({"items": plain(seen), "next": _cursor(query, seen)})
    headers = ((b"etag", b'"%d"' % seen["version"]),) if "version" in seen else ()
    return of_value(plain(seen), *headers)


def _cursor(query: Query, seen: Sequence[Any]) -> Any:
    """What `after` must be for the next page; None at the end."""
    if isinstance(query, Log):
        return seen[-1]["sequence"] if len(seen) >= min(query.limit, MOST_EVENTS) else None
    if isinstance(query, Tasks) and len(seen) >= min(query.limit, MOST_LISTED):
        last = seen[-1]
        return msgspec.json.encode([last.get(query.order.lstrip("-")), last["id"]]).decode()
    return None


def problem(error: TenureError) -> dict[str, Any]:
    """An error as RFC 9457 has it; `definite` says that nothing was done."""
    status = OF_ERROR.get(error.code, 500)
    told = {
        "type": f"urn:tenure:error:{error.code}", "title": HTTPStatus(status).phrase, "status": status,
        "detail": error.message, "code": error.code, "definite": error.definite,
    }  # fmt: skip
    return told | ({"hint": error.hint} if error.hint else {})


def of_error(error: TenureError) -> Answer:
    told = problem(error)
    headers: list[tuple[bytes, bytes]] = []
    if told["status"] in (429, 503):
        headers.append((b"retry-after", b"%d" % max(RETRY_AFTER, ceil(getattr(error, "retry_after", None) or 0))))
    if told["status"] == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if hasattr(error, "allowed"):
        headers.append((b"allow", error.allowed.encode()))
    return Answer(told["status"], msgspec.json.encode(told), PROBLEM, tuple(headers))


def of_batch(answers: Sequence[Outcome | TenureError]) -> Answer:
    """One outcome or problem for each command, in their order."""
    told = [problem(a) if isinstance(a, TenureError) else outcome_value(a) for a in answers]
    return of_value({"outcomes": told})

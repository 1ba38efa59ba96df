"""Replies: what a server answered, as outcomes, views or the very errors that a local store would have raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from tenure.client.wire import unspelled
from tenure.core import errors
from tenure.core.decoders import converted
from tenure.core.errors import InvalidInput, OutcomeUnknown, StoreUnavailable, TenureError
from tenure.core.outcomes import Outcome

T = TypeVar("T")


class Reply(NamedTuple):
    status: int
    body: bytes
    type: str = ""
    retry_after: float | None = None
    location: str = ""


class Trouble(NamedTuple):
    """What may pass when it is tried again. `is_sent`: something may have happened by it."""

    error: TenureError
    is_sent: bool
    retry_after: float | None = None


PASSING = frozenset({429, 502, 503, 504})
LASTING = frozenset({"SCHEMA_MISMATCH", "STORE_CORRUPT"})  # 503, but nothing that time mends


def trouble_in(reply: Reply, url: str) -> Trouble | None:
    """The trouble that a reply tells of, where it may pass; None where the reply is the answer."""
    if reply.status not in PASSING:
        return None
    told = _problem(reply)
    if told is None:  # of a proxy, or whatever else stands before the server
        away = StoreUnavailable(f"{url} answered with status {reply.status}", "look whether the server runs")
        return Trouble(away, reply.status in (502, 504), reply.retry_after)
    error = error_of(told)
    return None if error.code in LASTING else Trouble(error, not error.definite, reply.retry_after)


def outcome_of(reply: Reply, url: str) -> Outcome:
    return _read(reply, url, outcome_in)


def outcome_in(value: dict[str, Any]) -> Outcome:
    if value["outcome"] == "NO_TASK" and not value.get("claims"):
        value.pop("claims", None)  # over HTTP nothing to claim is also an empty list
    return converted(unspelled(value), Outcome)


def answers_of(reply: Reply, url: str) -> list[Outcome | TenureError]:
    """The answers to a batch."""
    return _read(
        reply, url, lambda value: [outcome_in(t) if "outcome" in t else error_of(t) for t in value["outcomes"]]
    )


def seen_of(reply: Reply, url: str) -> Any:
    """What a look saw: a view, an outcome, or a page (`items` and `next`)."""
    return _read(reply, url, _seen)


def _seen(value: dict[str, Any]) -> Any:
    if not value:
        raise KeyError("nothing")  # no look has nothing to tell
    if "outcome" in value and "items" not in value:
        return outcome_in(value)
    return {"items": unspelled(value["items"]), "next": value["next"]} if "items" in value else unspelled(value)


def mark_of(reply: Reply, url: str) -> int:
    return _read(reply, url, lambda value: int(value["mark"]))


def _read(reply: Reply, url: str, read: Callable[[Any], T]) -> T:
    """What `read` makes of the reply; InvalidInput where it is not what a tenure server says."""
    value = _value(reply, url)
    try:
        return read(value)
    except (KeyError, TypeError, AttributeError, ValueError):  # msgspec's own errors are ValueErrors
        raise _no_server(reply, url) from None


def _no_server(reply: Reply, url: str) -> InvalidInput:
    return InvalidInput(
        f"{url} does not answer as a tenure server does (status {reply.status})",
        "look what the url should be, and whether the server has another version",
    )


def _value(reply: Reply, url: str) -> Any:
    """The JSON of a reply; a problem is raised as the error that it is."""
    told = _problem(reply)
    if told is not None:
        raise error_of(told)
    if 300 <= reply.status < 400:
        raise InvalidInput(f"{url} sends elsewhere: {reply.location[:200]}", "set the url to where the server is")
    value = _decoded(reply)
    if not isinstance(value, dict) or (reply.status >= 400 and "outcome" not in value):
        raise _no_server(reply, url)
    return value


def _decoded(reply: Reply) -> Any:
    try:
        return msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _problem(reply: Reply) -> dict[str, Any] | None:
    value = _decoded(reply) if reply.type.startswith("application/problem+json") else None
    return value if isinstance(value, dict) and isinstance(value.get("code"), str) else None


# --- errors -------------------------------------------------------------------------------------------------


def _tree(kind: type[TenureError]) -> Iterator[tuple[str, type[TenureError]]]:
    yield kind.code, kind
    for sub in kind.__subclasses__():
        if sub.__module__ == errors.__name__:
            yield from _tree(sub)


_KINDS = dict(_tree(TenureError))


def error_of(told: dict[str, Any]) -> TenureError:
    """The error that a problem spells, of the same class as it was there."""
    code = told["code"]
    kind = _KINDS.get(code, TenureError)
    error = kind(str(told.get("detail") or code), told.get("hint"))
    if error.code != code:  # a newer server's
        error.code = code
    error.definite = bool(told.get("definite", kind.definite))
    return error


def unknown(error: TenureError, request_id: str | None) -> OutcomeUnknown:
    """The end of tries of which one may have done something."""
    again = f" with request id {request_id}" if request_id else ""
    return OutcomeUnknown(f"{error.message}; whether it was done is not known", f"send it again{again}")

"""HTTP messages: commands and queries as requests, page by page for long lists; replies as outcomes or errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlencode

import msgspec

from tenure.client.routes import APART, AS_JSON, BATCH, NEWS, PREFIX, PREVIEW, ROUTES, Route
from tenure.client.wire import cursor_text, from_plain, read_cursor
from tenure.core import errors, inputs, limits
from tenure.core.commands import Command, Principal
from tenure.core.decoders import converted
from tenure.core.errors import InvalidInput, StoreUnavailable, TenureError
from tenure.core.ids import parse_receipt
from tenure.core.outcomes import CODES, Outcome
from tenure.core.queries import Log, Query, States, Tasks
from tenure.core.records import replace

if TYPE_CHECKING:
    from tenure.client.contents import Source

T = TypeVar("T")

FOUND = (200, 206)  # statuses of a reply that carries an artifact
PAGE = 500
_JSON = {"Content-Type": "application/json"}
_PRINTABLE = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


# --- requests -----------------------------------------------------------------------------------------------


class Request(NamedTuple):
    method: str
    path: str  # below the server's own URL, with the query string
    headers: dict[str, str]
    body: bytes = b""
    is_read: bool = True  # it changes nothing
    request_id: str | None = None
    source: Source | None = None  # the body of an upload, sent in pieces
    is_download: bool = False  # a reply with an artifact is returned unread


def command_request(command: Command, principal: Principal, wait: float | None = None) -> Request:
    """The request that carries a command; invalid input is raised here, before anything is sent."""
    checked = inputs.validated(command).command
    route = ROUTES[type(command)]
    fields = {name: getattr(checked, name) for name in checked.__struct_fields__}
    if "{task}" in route.path and "task" not in fields:
        fields["task"] = parse_receipt(checked.receipt).name
    path, in_path = _filled(route, fields)
    body = {name: value for name, value in _given(checked) if name not in in_path and name not in APART}
    headers = {**identity_headers(principal), **_trace(checked.trace_id), **_JSON}
    headers["Idempotency-Key"] = _request_id(checked.request_id or "")
    if wait is not None:
        path += f"?wait={wait:g}"
    return Request(route.method, path, headers, msgspec.json.encode(body), False, checked.request_id)


def batch_request(batch: Sequence[Command], principal: Principal, *, is_preview: bool) -> Request:
    """Many commands of one project in one request."""
    projects = {command.project for command in batch}
    if len(projects) != 1:
        raise InvalidInput(
            f"a batch over a server must be for one project (got {len(projects)})", "send one for each project"
        )
    if "" in projects:
        raise InvalidInput("a batch over a server cannot have commands without a project", "send them one by one")
    path = PREFIX + (PREVIEW if is_preview else BATCH).replace("{project}", path_part(projects.pop()))
    body = {
        "commands": [
            {"command": type(command).__struct_config__.tag}
            | {name: value for name, value in _given(command) if name not in APART}
            for command in batch
        ],
        "request_ids": [command.request_id for command in batch],
    }
    headers = {**identity_headers(principal), **_trace(None), **_JSON}
    ids = {command.request_id or "" for command in batch}
    try:
        encoded = msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidInput(f"batch: a command cannot be encoded as JSON: {error}", "send them one by one") from None
    return Request("POST", path, headers, encoded, is_preview, min(ids))


def query_request(query: Query, principal: Principal) -> Request:
    route = ROUTES[type(query)]
    fields = {name: getattr(query, name) for name in query.__struct_fields__}
    path, in_path = _filled(route, fields)
    if route.method == "POST":
        body = {name: value for name, value in _given(query) if name not in in_path and name != "project"}
        return Request("POST", path, {**identity_headers(principal), **_JSON}, msgspec.json.encode(body))
    pairs: list[tuple[str, str]] = []
    for name, value in _given(query):
        if name in in_path or name == "project":
            continue
        if name == "after" and isinstance(value, (tuple, list)):
            pairs.append((name, cursor_text((value[0], value[1]))))
        elif name in AS_JSON:
            pairs.append((name, msgspec.json.encode(value).decode()))
        elif isinstance(value, (tuple, list)):
            pairs += [(name, str(part)) for part in value]
        else:
            pairs.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
    return Request(route.method, path + ("?" + urlencode(pairs) if pairs else ""), identity_headers(principal))


def news_request(project: str, mark: int, wait: float, principal: Principal, tasks: Collection[str] = ()) -> Request:
    path = PREFIX + NEWS.replace("{project}", path_part(project))
    of = "".join(f"&task={path_part(task)}" for task in tasks) if len(tasks) <= inputs.MOST_LISTED else ""
    return Request("GET", f"{path}?mark={mark}&wait={wait:g}{of}", identity_headers(principal))


def path_part(text: str) -> str:
    """The text as one part of a path."""
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise InvalidInput(f"{text[:80]!r} is not valid UTF-8", "give a name without such bytes") from None


def _filled(route: Route, fields: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """The path with its braces filled, and which fields those were."""
    parts, used = [], set()
    for part in route.path.split("/"):
        if part.startswith("{"):
            name = part.strip("{}")
            if not fields[name]:  # an empty segment would be another path
                raise InvalidInput(f"{name} must not be empty")
            used.add(name)
            parts.append(path_part(str(fields[name])))
        else:
            parts.append(part)
    return PREFIX + "/".join(parts), frozenset(used)


def _given(value: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """The fields that differ from their defaults: an older server may not know the others."""
    names, defaults = value.__struct_fields__, value.__struct_defaults__
    missing = (msgspec.NODEFAULT,) * (len(names) - len(defaults))
    for name, default in zip(names, (*missing, *defaults), strict=True):
        field = getattr(value, name)
        if default is msgspec.NODEFAULT or field != (default.factory() if hasattr(default, "factory") else default):
            yield name, _plain(field)


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return dict(_given(value))
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


# --- pages --------------------------------------------------------------------------------------------------


def parts_of(query: Query) -> Iterator[Query]:
    """The query, or several that together ask for the same: one URL cannot hold all names."""
    if not isinstance(query, States):
        yield query
        return
    for start in range(0, len(query.tasks), limits.TASKS_PER_QUERY):
        yield replace(query, tasks=query.tasks[start : start + limits.TASKS_PER_QUERY])


def first_page(query: Query) -> Query:
    """The newest events of the log come in one reply; other long lists come page by page."""
    if isinstance(query, Tasks) or (isinstance(query, Log) and not query.last):
        return replace(query, limit=min(query.limit, PAGE))
    return query


def next_page(page: Query, view: Mapping[str, Any], so_far: int, wanted: Query) -> Query | None:
    """The next page, until there are as many rows as wanted, or no more."""
    if not isinstance(page, (Tasks, Log)) or view["next"] is None:
        return None
    assert isinstance(wanted, (Tasks, Log))
    left = wanted.limit - so_far
    if left <= 0 or (isinstance(page, Log) and page.last):
        return None
    after = view["next"]
    if isinstance(page, Tasks):
        return replace(page, after=read_cursor(after), limit=min(left, PAGE))
    return replace(page, after=int(after), limit=min(left, PAGE))


# --- headers ------------------------------------------------------------------------------------------------


def header_safe(text: str) -> str:
    """Text for a header: `%` and everything but printable ASCII is percent-encoded UTF-8."""
    try:
        return quote(text, safe=_PRINTABLE)
    except UnicodeEncodeError:
        raise InvalidInput(f"{text[:80]!r} is not valid UTF-8", "give a name without such bytes") from None


def header_text(text: str) -> str:
    """The text that `header_safe` encoded."""
    return unquote(text)


def _request_id(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        raise InvalidInput(f"request id must be printable ASCII over a server (got {text[:80]!r})")
    return text


def identity_headers(principal: Principal) -> dict[str, str]:
    names = {"Agent": principal.agent, "Session": principal.session, "User": principal.user}
    headers = {f"Tenure-{name}": header_safe(value) for name, value in names.items() if value}
    if principal.role != "owner":  # the header can only lower the role: the highest needs none
        headers["Tenure-Role"] = principal.role
    return headers


def _trace(trace_id: str | None) -> dict[str, str]:
    """W3C `traceparent`: the command's, OpenTelemetry's where the program uses it, or the environment's."""
    if trace_id is not None and len(trace_id) == 32:
        return {"traceparent": f"00-{trace_id}-{os.urandom(8).hex()}-01"}
    otel = sys.modules.get("opentelemetry.trace")
    if otel is not None:
        span = otel.get_current_span().get_span_context()
        if span.is_valid:
            return {"traceparent": f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"}
    given = os.environ.get("TRACEPARENT")
    return {"traceparent": given} if given and given.isascii() and given.isprintable() else {}


# --- replies ------------------------------------------------------------------------------------------------


class Reply(NamedTuple):
    status: int
    body: bytes
    headers: Any  # a mapping that ignores the case of names
    stream: Any = None  # of a download: the body, still to be read

    @property
    def retry_after(self) -> float | None:
        """In seconds; a date there is not worth a parser."""
        text = self.headers.get("Retry-After")
        return float(text) if text is not None and text.isdecimal() else None


class Trouble(NamedTuple):
    """A failure that another try may not meet. `is_sent`: the request may have been applied."""

    error: TenureError
    is_sent: bool
    retry_after: float | None = None


PASSING = frozenset({429, 502, 503, 504})
LASTING = frozenset({"SCHEMA_MISMATCH", "STORE_CORRUPT", "UNSAFE_ROLE"})  # 503, but waiting does not fix them


def trouble_in(reply: Reply, url: str) -> Trouble | None:
    """The failure that a reply reports, where another try may succeed; None where the reply is final."""
    if reply.status not in PASSING:
        return None
    problem = _problem(reply)
    if problem is None:  # from a proxy before the server
        unavailable = StoreUnavailable(f"{url} answered with status {reply.status}", "check whether the server runs")
        return Trouble(unavailable, reply.status in (502, 504), reply.retry_after)
    error = error_of(problem)
    return None if error.code in LASTING else Trouble(error, not error.definite, reply.retry_after)


def problem_in(reply: Reply, url: str) -> TenureError:
    """The error that a reply reports."""
    problem = _problem(reply)
    return not_tenure(reply, url) if problem is None else error_of(problem)


def outcome_of(reply: Reply, url: str) -> Outcome:
    return _read(reply, url, _outcome, is_write=True)


def _outcome(value: dict[str, Any]) -> Outcome:
    CODES[value["outcome"]]  # KeyError for one of a newer server
    if value["outcome"] == "NO_TASK" and not value.get("claims"):
        value.pop("claims", None)  # over HTTP nothing to claim is also an empty list
    return converted(from_plain(value), Outcome)


def answers_of(reply: Reply, url: str) -> list[Outcome | TenureError]:
    """The answers to a batch."""
    return _read(
        reply, url, lambda value: [_outcome(v) if "outcome" in v else error_of(v) for v in value["outcomes"]],
        is_write=True,
    )  # fmt: skip


def view_of(reply: Reply, url: str) -> Any:
    """The answer to a query: a view, an outcome, or a page (`items` and `next`)."""
    return _read(reply, url, _view)


def _view(value: dict[str, Any]) -> Any:
    if not value:
        raise KeyError("nothing")  # no query has an empty answer
    if "outcome" in value and "items" not in value:
        return _outcome(value)
    if "items" not in value:
        return from_plain(value)
    if not isinstance(value["items"], list):
        raise TypeError("its items are not a list")
    return {"items": from_plain(value["items"]), "next": value["next"]}


def mark_of(reply: Reply, url: str) -> int:
    return _read(reply, url, lambda value: int(value["mark"]))


def _read(reply: Reply, url: str, read: Callable[[Any], T], *, is_write: bool = False) -> T:
    """What `read` returns for the reply; InvalidInput where a tenure server would not answer so."""
    value = _value(reply, url, is_write=is_write)
    try:
        return read(value)
    except UNREADABLE:
        raise not_tenure(reply, url, is_write=is_write) from None


# msgspec's own errors are ValueErrors.
UNREADABLE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)


def not_tenure(reply: Reply, url: str, *, is_write: bool = False) -> InvalidInput:
    """With `is_write` it is not definite where the reply reports success: a proxy may have cut it."""
    error = InvalidInput(
        f"{url} does not answer as a tenure server does (status {reply.status})",
        "check the url, and whether the server has another version",
    )
    error.definite = not (is_write and reply.status < 300)
    return error


def _value(reply: Reply, url: str, *, is_write: bool = False) -> Any:
    """The JSON of a reply; a problem is raised as its error."""
    problem = _problem(reply)
    if problem is not None:
        raise error_of(problem)
    if 300 <= reply.status < 400:
        location = reply.headers.get("Location", "")
        raise InvalidInput(f"{url} redirects to {location[:200]}", "set the url to where the server is")
    value = _decoded(reply)
    if not isinstance(value, dict) or (reply.status >= 400 and "outcome" not in value):
        raise not_tenure(reply, url, is_write=is_write)
    return value


def _decoded(reply: Reply) -> Any:
    try:
        return msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def _problem(reply: Reply) -> dict[str, Any] | None:
    is_problem = reply.headers.get("Content-Type", "").startswith("application/problem+json")
    value = _decoded(reply) if is_problem else None
    return value if isinstance(value, dict) and isinstance(value.get("code"), str) else None


def _tree(kind: type[TenureError]) -> Iterator[tuple[str, type[TenureError]]]:
    yield kind.code, kind
    for sub in kind.__subclasses__():
        if sub.__module__ == errors.__name__:
            yield from _tree(sub)


_KINDS = dict(_tree(TenureError))


def error_of(problem: dict[str, Any]) -> TenureError:
    """The error of a problem document, of the same class as on the server."""
    code = problem["code"]
    kind = _KINDS.get(code, TenureError)
    error = kind(str(problem.get("detail") or code), problem.get("hint"))
    if error.code != code:  # a newer server's
        error.code = code
    error.definite = bool(problem.get("definite", kind.definite))
    return error

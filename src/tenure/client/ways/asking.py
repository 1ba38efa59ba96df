"""Requests: a command or a query as the HTTP that `client/routes.py` lays down for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlencode

import msgspec

from tenure.client.routes import APART, AS_JSON, BATCH, NEWS, PREFIX, PREVIEW, Route, route_of
from tenure.core import inputs
from tenure.core.commands import Command, Principal
from tenure.core.errors import InvalidInput
from tenure.core.queries import Query
from tenure.core.receipts import parse_receipt
from tenure.core.records import replace

if TYPE_CHECKING:
    from tenure.engine import Random

_JSON = {"Content-Type": "application/json"}
_PRINTED = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


C = TypeVar("C", bound=Command)


class Request(NamedTuple):
    method: str
    path: str  # below the server's own URL, with the query string
    headers: dict[str, str]
    body: bytes = b""
    is_look: bool = True  # nothing can have happened by it
    request_id: str | None = None


def named(command: C, chance: Random) -> C:
    """The command with a request id, so that it can be sent again."""
    return command if command.request_id is not None else replace(command, request_id=chance.token(16).hex())


def of_command(command: Command, principal: Principal, wait: float | None = None) -> Request:
    """The request that carries a command; what is wrong with it is raised here, before anything is sent."""
    checked = inputs.validated(command).command
    route = route_of(type(command))
    fields = {name: getattr(checked, name) for name in checked.__struct_fields__}
    if "{task}" in route.path and "task" not in fields:
        fields["task"] = parse_receipt(checked.receipt).name
    path, in_path = _filled(route, fields)
    body = {name: value for name, value in _given(checked) if name not in in_path and name not in APART}
    headers = {
        **said_by(principal), **_trace(checked.trace_id), **_JSON,
        "Idempotency-Key": _request_id(checked.request_id or ""),
    }  # fmt: skip
    if wait is not None:
        path += f"?wait={wait:g}"
    return Request(route.method, path, headers, msgspec.json.encode(body), False, checked.request_id)


def of_batch(batch: Sequence[Command], principal: Principal, *, is_preview: bool) -> Request:
    """Many commands of one project in one request."""
    projects = {command.project for command in batch}
    if len(projects) != 1:
        raise InvalidInput(f"a batch for {len(projects)} projects; over a server it is of one", "send one for each")
    if "" in projects:
        raise InvalidInput("commands about the store as a whole go one by one over a server")
    path = PREFIX + (PREVIEW if is_preview else BATCH).replace("{project}", quote(projects.pop(), safe=""))
    body = {
        "commands": [
            {"command": type(command).__struct_config__.tag}
            | {name: value for name, value in _given(command) if name not in APART}
            for command in batch
        ],
        "request_ids": [command.request_id for command in batch],
    }
    headers = {**said_by(principal), **_trace(None), **_JSON}
    ids = {command.request_id or "" for command in batch}
    return Request("POST", path, headers, msgspec.json.encode(body), is_preview, min(ids))


def of_query(query: Query, principal: Principal) -> Request:
    route = route_of(type(query))
    fields = {name: getattr(query, name) for name in query.__struct_fields__}
    path, in_path = _filled(route, fields)
    pairs: list[tuple[str, str]] = []
    for name, value in _given(query):
        if name in in_path or name == "project":
            continue
        if name in AS_JSON and not isinstance(value, int):
            pairs.append((name, msgspec.json.encode(value).decode()))
        elif isinstance(value, (tuple, list)):
            pairs += [(name, str(part)) for part in value]
        else:
            pairs.append((name, str(value).lower() if isinstance(value, bool) else str(value)))
    return Request(route.method, path + ("?" + urlencode(pairs) if pairs else ""), said_by(principal))


def of_news(project: str, mark: int, wait: float, principal: Principal) -> Request:
    path = PREFIX + NEWS.replace("{project}", quote(project, safe=""))
    return Request("GET", f"{path}?mark={mark}&wait={wait:g}", said_by(principal))


def _filled(route: Route, fields: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """The path with its braces filled, and which fields those were."""
    parts, used = [], set()
    for part in route.path.split("/"):
        if part.startswith("{"):
            name = part.strip("{}")
            if not fields[name]:  # an empty segment would be another path
                raise InvalidInput(f"{name}: is empty")
            used.add(name)
            parts.append(quote(str(fields[name]), safe=""))
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


# --- headers ------------------------------------------------------------------------------------------------


def header_safe(text: str) -> str:
    """Text as a header may have it: whatever is not printable ASCII, and `%`, is percent-encoded UTF-8."""
    return quote(text, safe=_PRINTED)


def unsafe(text: str) -> str:
    """What `header_safe` was given."""
    return unquote(text)


def _request_id(text: str) -> str:
    if not (text.isascii() and text.isprintable()):
        raise InvalidInput(f"request id {text[:80]!r}: over a server it is of printable ASCII characters")
    return text


def said_by(principal: Principal) -> dict[str, str]:
    """Who speaks, as headers."""
    said = {"Agent": principal.agent, "Session": principal.session, "User": principal.user}
    headers = {f"Tenure-{name}": header_safe(value) for name, value in said.items() if value}
    if principal.role != "owner":  # a role can only be lowered: there is nothing to say of the highest
        headers["Tenure-Role"] = principal.role
    return headers


def _trace(trace_id: str | None) -> dict[str, str]:
    """W3C `traceparent`: that of the command, of OpenTelemetry where the program uses it, or of the environment."""
    if trace_id is not None and len(trace_id) == 32:
        return {"traceparent": f"00-{trace_id}-{os.urandom(8).hex()}-01"}
    otel = sys.modules.get("opentelemetry.trace")
    if otel is not None:
        span = otel.get_current_span().get_span_context()
        if span.is_valid:
            return {"traceparent": f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"}
    given = os.environ.get("TRACEPARENT")
    return {"traceparent": header_safe(given)} if given else {}

"""Decodes a request into a query: fields of the path and of the query string, or of a body.

Repeated names are lists; `fields` may also be one text with commas. Names that other systems use for a field are in
`ALIASES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from tenure.client.routes import ALIASES, AS_JSON, Route
from tenure.client.wire import read_cursor
from tenure.core.decoders import check_json
from tenure.core.errors import InvalidInput
from tenure.core.instants import is_instant, parse_instant
from tenure.core.queries import AT, Query, Tasks
from tenure.server.requests import body_type, braces, decoder, meant_field

_PAIRS = frozenset({*AS_JSON, "after"})


def query_of(route: Route, fields: Mapping[str, str], query_string: bytes) -> Query:
    """The route's query, with fields from the path and the query string."""
    kind = route.asks
    assert issubclass(kind, Query)
    values: dict[str, Any] = {}
    lists, aliases = _lists(kind), ALIASES.get(kind, {})
    try:
        pairs = parse_qsl(query_string.decode(), keep_blank_values=True, strict_parsing=bool(query_string))
    except ValueError:
        raise InvalidInput("the query string is malformed") from None
    for given, text in pairs:
        name = aliases.get(given, given)
        if name == "fields":
            values.setdefault(name, []).extend(text.split(","))
        elif name in lists:
            values.setdefault(name, []).append(text)
        elif name in values:
            raise InvalidInput(f"{name} is given twice")
        else:
            values[name] = _value(kind, name, text)
    own = {field.name for field in msgspec.structs.fields(kind)}
    values |= {name: value for name, value in fields.items() if name in own}
    try:
        return msgspec.convert(values, kind, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(f"the query: {error}", meant_field(error, kind)) from None


@cache
def query_reader(route: Route) -> Callable[[Mapping[str, str], bytes], Query]:
    """A function that decodes the body of a query that is sent with one: a plan does not fit into a URL."""
    kind = route.asks
    assert issubclass(kind, Query)
    decode = decoder(body_type(kind, braces(route.path)), may_be_empty=True, has_instants=True)

    def read(fields: Mapping[str, str], body: bytes) -> Query:
        given = decode(body)
        return kind(**{name: getattr(given, name) for name in given.__struct_fields__}, **fields)

    return read


def _value(kind: type[Query], name: str, text: str) -> Any:
    try:
        if name == "after" and kind is Tasks:
            return _place(text)
        if name in AS_JSON and text.startswith("["):
            check_json(text, name)
            return msgspec.json.decode(text)
        is_plain = name == AT or not is_instant(name) or text.isdecimal()
        return text if is_plain else parse_instant(text)
    except ValueError as error:
        raise InvalidInput(f"{name} {text[:80]!r}: {error}") from None


def _place(text: str) -> tuple[Any, str]:
    try:
        return read_cursor(text)
    except (ValueError, RecursionError):  # msgspec's own errors are ValueErrors
        raise InvalidInput(
            f"after {text[:80]!r} is not a place in a list", "pass `next` of the previous page"
        ) from None


def _lists(kind: type[Query]) -> frozenset[str]:
    """Fields that may be given several times."""
    return frozenset(
        field.name for field in msgspec.structs.fields(kind) if field.name not in _PAIRS and "tuple" in str(field.type)
    )

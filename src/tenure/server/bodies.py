"""Decodes a request into a command or a query.

The body of a command is its struct without the fields that come from the path, the headers and the server. Unknown
fields are refused: a typo in an optional field would otherwise be ignored silently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import reduce
from operator import or_
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from tenure.client.routes import APART, AS_JSON, COMMANDS, Route
from tenure.client.wire import from_plain
from tenure.core import commands as c
from tenure.core.commands import Command
from tenure.core.decoders import check_json, decoder_of
from tenure.core.errors import InvalidInput
from tenure.core.ids import parse_key
from tenure.core.instants import is_instant, parse_instant
from tenure.core.queries import Query

# Their bodies may contain instants as RFC 3339 text.
_WITH_INSTANTS = (c.Add, c.Plan, c.Spawn, c.Edit, c.Retry)


class RequestContext(NamedTuple):
    """The parts of a request beside its body."""

    fields: Mapping[str, str]  # of the path
    request_id: str | None = None
    trace_id: str | None = None
    version: int | None = None  # If-Match


# --- commands -----------------------------------------------------------------------------------------------


def body_type(kind: type[Command], without: Collection[str]) -> type[msgspec.Struct]:
    """The struct of a command's body: the command's fields except `without`."""
    fields: list[Any] = []
    for field in msgspec.structs.fields(kind):
        if field.name in APART or field.name in without:
            continue
        default: Any = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        fields.append((field.name, field.type) if field.required else (field.name, field.type, default))
    return msgspec.defstruct(
        kind.__name__,
        fields,
        kw_only=True,
        frozen=True,
        forbid_unknown_fields=True,
        tag_field="command",
        tag=kind.__struct_config__.tag,
        module=__name__,
    )


def reader_of(route: Route) -> Callable[[RequestContext, bytes], Command]:
    """A function that decodes a request into the route's command."""
    kind = route.asks
    assert issubclass(kind, Command)
    own = frozenset(field.name for field in msgspec.structs.fields(kind))
    in_path = own & _braces(route.path)
    names_task = "{task}" in route.path and "task" not in own
    decode = _decoder(body_type(kind, in_path), may_be_empty=True, has_instants=issubclass(kind, _WITH_INSTANTS))

    def read(context: RequestContext, body: bytes) -> Command:
        given = decode(body)
        values = {name: getattr(given, name) for name in given.__struct_fields__}
        values |= {name: context.fields[name] for name in in_path}
        if context.version is not None and "version" in own:
            values["version"] = context.version
        if names_task:
            check_task(context.fields["task"], str(values["receipt"]))
        if "project" in own and "project" not in values:
            values["project"] = context.fields.get("project", "")
        return kind(request_id=context.request_id, trace_id=context.trace_id, **values)

    return read


def check_task(named: str, receipt: str) -> None:
    """Refuse a path and a receipt of different tasks. A path with a task's id is not compared."""
    key = parse_key(named)
    if key is not None and key.ref != receipt.partition("@")[0]:
        raise InvalidInput(f"the path names {key.ref}, but the receipt is for {receipt.partition('@')[0][:80]}")


_ITEMS = tuple(body_type(route.asks, ()) for route in COMMANDS if issubclass(route.asks, Command))
_KINDS: dict[Any, type[Command]] = {kind.__struct_config__.tag: kind for kind in c.ALL}


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Commands, each with its kind in `command`; `request_ids` has one id for each command."""

    commands: list[msgspec.Raw]
    request_ids: list[str | None] | None = None


def read_batch(context: RequestContext, body: bytes) -> list[Command | InvalidInput]:
    """The commands of a batch; an invalid command is an error in its place, and the others still run."""
    batch: Batch = _decode_batch(body)
    ids = batch.request_ids or [None] * len(batch.commands)
    if len(ids) != len(batch.commands):
        raise InvalidInput(f"request_ids must have one id for each command (got {len(ids)} for {len(batch.commands)})")
    return [_item(bytes(raw), context._replace(request_id=id)) for raw, id in zip(batch.commands, ids, strict=True)]


def _item(raw: bytes, context: RequestContext) -> Command | InvalidInput:
    try:
        given = _decode_item(raw)
    except InvalidInput as error:
        return error
    kind = _KINDS[given.__struct_config__.tag]
    values = {name: getattr(given, name) for name in given.__struct_fields__}
    return kind(project=context.fields["project"], request_id=context.request_id, trace_id=context.trace_id, **values)


def _decoder(
    kind: Any, *, may_be_empty: bool = False, has_instants: bool = False, is_checked: bool = False
) -> Callable[[bytes], Any]:
    decode = decoder_of(kind).decode

    def decoded(body: bytes) -> Any:
        if not body and may_be_empty:
            body = b"{}"
        if not is_checked:
            check_json(body, "the body")
        try:
            if has_instants:
                return msgspec.convert(from_plain(msgspec.json.decode(body)), kind)
            return decode(body)
        except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
            raise InvalidInput(f"the body: {error}") from None

    return decoded


class LoginBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str


class RecoverBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    project: str | None = None  # None: all


decode_login: Callable[[bytes], LoginBody] = _decoder(LoginBody)
decode_recover: Callable[[bytes], RecoverBody] = _decoder(RecoverBody, may_be_empty=True)
_decode_batch = _decoder(Batch)
_decode_item = _decoder(reduce(or_, _ITEMS), has_instants=True, is_checked=True)  # with the whole batch


def _braces(path: str) -> frozenset[str]:
    return frozenset(part.strip("{}") for part in path.split("/") if part.startswith("{"))


# --- queries ------------------------------------------------------------------------------------------------


def query_of(route: Route, fields: Mapping[str, str], query_string: bytes) -> Query:
    """The route's query, with fields from the path and the query string."""
    kind = route.asks
    assert issubclass(kind, Query)
    values: dict[str, Any] = {}
    lists = _lists(kind)
    try:
        pairs = parse_qsl(query_string.decode(), keep_blank_values=True, strict_parsing=bool(query_string))
    except ValueError:
        raise InvalidInput("the query string is malformed") from None
    for name, text in pairs:
        if name in lists:
            values.setdefault(name, []).append(text)
        elif name in values:
            raise InvalidInput(f"{name} is given twice")
        else:
            values[name] = _value(name, text)
    own = {field.name for field in msgspec.structs.fields(kind)}
    values |= {name: value for name, value in fields.items() if name in own}
    try:
        return msgspec.convert(values, kind, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InvalidInput(f"the query: {error}") from None


def _value(name: str, text: str) -> Any:
    try:
        if name in AS_JSON and text.startswith("["):
            check_json(text, name)
            return msgspec.json.decode(text)
        return parse_instant(text) if is_instant(name) and not text.isdecimal() else text
    except ValueError as error:
        raise InvalidInput(f"{name} {text[:80]!r}: {error}") from None


def _lists(kind: type[Query]) -> frozenset[str]:
    """Fields that may be given several times."""
    return frozenset(
        field.name for field in msgspec.structs.fields(kind) if field.name not in AS_JSON and "tuple" in str(field.type)
    )

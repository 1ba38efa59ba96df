"""A request: the ASGI scope with accessors, its trace, and its decoding into a command or a query.

The body of a command is its struct without the fields that come from the path, the headers and the server. Unknown
fields are refused: a typo in an optional field would otherwise be ignored silently.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Mapping, MutableMapping
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_args
from urllib.parse import parse_qs

import msgspec
from msgspec.structs import asdict

from tenure.client.routes import APART, COMMANDS, Route
from tenure.client.wire import from_plain
from tenure.core import commands as c
from tenure.core import limits
from tenure.core.commands import OWNER, Command, Principal
from tenure.core.decoders import check_json, decoder_of
from tenure.core.errors import InvalidInput, NotSignedIn, TenureError, TooLarge, UnsupportedType
from tenure.core.ids import parse_key
from tenure.core.inputs import LARGEST_BATCH
from tenure.core.queries import Query

if TYPE_CHECKING:
    from tenure.server.service import Service

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
T = TypeVar("T")
JSON = "application/json"
LATE = limits.KEY_CACHE  # seconds from the start of a request: who sends its body for longer is looked up again
# A task's ETag: its version, and a digest of its view. Proxies that compress mark a tag as weak.
_TAG = re.compile(r'(?:W/)?"([0-9]{1,18})(?:-[0-9a-f]{1,32})?"')


def version_in(if_match: str) -> int:
    """The version that If-Match names."""
    found = _TAG.fullmatch(if_match.strip())
    if found is None:
        raise InvalidInput(
            f"If-Match must be the ETag of the task (got {if_match[:40]!r})", 'as in `"17"`: the version in quotes'
        )
    return int(found[1])


class Disconnected(Exception):
    """The client has closed the connection."""


class Request:
    """`fields` are those of the path; `principal` and `trace` are set once they are known."""

    __slots__ = (
        "_began", "_receive", "cause", "crash", "error", "fields", "headers", "is_known", "operations", "principal",
        "route", "scope", "service", "status", "trace",
    )  # fmt: skip
    trace: Trace
    service: Service  # of its tenant, once it is known

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.fields: Mapping[str, str] = {}
        self.principal: Principal = OWNER
        self.is_known = False  # whether `principal` is authenticated
        self.status = 200  # of a streamed response, or a mounted application's response
        self.route = ""  # the path with placeholders
        self.crash: Exception | None = None  # an unexpected error
        self.error: str | None = None  # the code of the error that answers it
        self.cause: TenureError | None = None  # the error itself, for the log: the caller may read less of it
        self.operations: list[tuple[Command | Query, Any]] = []  # each with its answer, for the access log
        self._receive, self._began = receive, time.monotonic()

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def parameter(self, name: str) -> str | None:
        """One value of the query string."""
        given = self.parameters(name)
        return given[-1] if given else None

    def parameters(self, name: str) -> list[str]:
        """All values of a repeated name in the query string."""
        return parse_qs(self.scope["query_string"].decode("latin-1"), keep_blank_values=True).get(name, [])

    def number(self, name: str, default: float, most: float) -> float:
        text = self.parameter(name)
        try:
            value = default if text is None else float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value <= most:
            raise InvalidInput(f"{name} must be a number from 0 to {most:g} (got {text!r})")
        return value

    async def receive(self) -> MutableMapping[str, Any]:
        """The next message. Raises NotSignedIn where the caller may do nothing any more when the body is complete."""
        message = await self._receive()
        is_late = self.is_known and time.monotonic() - self._began > LATE
        is_whole = message["type"] == "http.request" and not message.get("more_body", False)
        if is_late and is_whole and not await self.service.is_still_valid(self.principal):
            raise NotSignedIn("the key or token ended while the body was sent; nothing was done", "sign in again")
        return message

    async def body(self, largest: int = LARGEST_BATCH) -> bytes:
        """The whole body; TooLarge as soon as it exceeds `largest`."""
        parts = [part async for part in self.parts(largest)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def parts(self, largest: int) -> AsyncIterator[bytes]:
        """The body in pieces; TooLarge as soon as it exceeds `largest`."""
        length = self.headers.get(b"content-length", b"0")
        if int(length) > largest if length.isdigit() else True:
            raise TooLarge(f"the body may have at most {largest} bytes (got {length.decode('latin-1')[:20]})")
        size, is_more = 0, True
        while is_more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part = message.get("body", b"")
            size += len(part)
            if size > largest:
                raise TooLarge(f"the body may have at most {largest} bytes")
            yield part
            is_more = message.get("more_body", False)

    async def json(self) -> bytes:
        """The whole body, which must be JSON; its media type may be left out."""
        kind = (self.header(b"content-type") or JSON).partition(";")[0].strip().lower()
        if kind != JSON and not kind.endswith("+json"):
            raise UnsupportedType(
                f"the body has the media type {kind[:80]!r}",
                "send JSON, with Content-Type: application/json",
            )
        return await self.body()

    def context(self) -> RequestContext:
        """The parts of the request beside its body."""
        request_id = self.header(b"idempotency-key")
        if request_id == "":  # otherwise all callers without a key would share one
            raise InvalidInput("the header Idempotency-Key is empty", "omit it, or send a unique value")
        return RequestContext(self.fields, request_id, self.trace.id, self._version())

    def _version(self) -> int | None:
        text = self.header(b"if-match")
        return None if text is None or text.strip() == "*" else version_in(text)

    def sent_by(self, send: Send) -> Send:
        """`send` for a mounted application: records the status and adds the trace header."""

        async def noted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (TRACEPARENT, self.trace.header)]
            await send(message)

        return noted

    async def while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is cancelled when the client disconnects."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self._gone())
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Disconnected
            return task.result()
        finally:
            task.cancel()
            gone.cancel()

    async def _gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


# --- W3C trace context ---
# Commands and events store the caller's trace id, and the response returns it. An invalid header counts as missing: a
# new trace starts here. Traces are not exported.

TRACEPARENT = b"traceparent"
# version - trace id - parent's id - flags; only later versions may have more after another dash.
_PARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_NO_TRACE, _NO_SPAN = b"0" * 32, b"0" * 16
_SAMPLED, _UNSAMPLED = b"01", b"00"


class Trace(NamedTuple):
    """`id` is the trace's id in commands, events and logs; `span` is the id of this request."""

    id: str
    span: str
    flags: str = "00"

    @property
    def header(self) -> bytes:
        """The value of `traceparent` in the response."""
        return f"00-{self.id}-{self.span}-{self.flags}".encode()


def trace_of(given: bytes | None, token: Callable[[int], bytes]) -> Trace:
    """The trace of a request's `traceparent`, or a new one; `token` returns random bytes."""
    found = _PARENT.fullmatch(given) if given is not None and len(given) <= limits.TRACE_PARENT else None
    if found is not None:
        version, trace, span, flags, more = found.groups()
        is_valid = version != b"ff" and trace != _NO_TRACE and span != _NO_SPAN and not (version == b"00" and more)
        if is_valid:
            # Only the first flag is defined; later versions may use the others.
            sampled = _SAMPLED if int(flags, 16) & 1 else _UNSAMPLED
            return Trace(trace.decode(), _id(token, 8), sampled.decode())
    return Trace(_id(token, 16), _id(token, 8))


def _id(token: Callable[[int], bytes], size: int) -> str:
    """Random, and never all zeros, which would mean none."""
    return (token(size).hex().lstrip("0") or "1").zfill(size * 2)


# Their bodies may contain instants as RFC 3339 text.
_WITH_INSTANTS = (
    c.Add, c.AddMany, c.Plan, c.Spawn, c.Edit, c.Retry, c.RewindRelay, c.ReplayWebhook, c.SetBudget,
)  # fmt: skip


class RequestContext(NamedTuple):
    """The parts of a request beside its body."""

    fields: Mapping[str, str]  # of the path
    request_id: str | None = None
    trace_id: str | None = None
    version: int | None = None  # If-Match


# --- commands -----------------------------------------------------------------------------------------------


def body_type(kind: type[Command] | type[Query], without: Collection[str]) -> type[msgspec.Struct]:
    """The struct of a command's body, or of a query with one: its fields except `without`."""
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
        tag_field=kind.__struct_config__.tag_field,
        tag=kind.__struct_config__.tag,
        module=__name__,
    )


@cache
def reader_of(route: Route) -> Callable[[RequestContext, bytes], Command]:
    """A function that decodes a request into the route's command."""
    kind = route.asks
    assert issubclass(kind, Command)
    own = frozenset(field.name for field in msgspec.structs.fields(kind))
    in_path = own & braces(route.path)
    names_task = "{task}" in route.path and "task" not in own
    decode = decoder(
        body_type(kind, in_path),
        may_be_empty=True,
        has_instants=issubclass(kind, _WITH_INSTANTS),
        wrapped=_WRAPPED.get(kind),
    )

    def read(context: RequestContext, body: bytes) -> Command:
        values = asdict(decode(body))
        values |= {name: context.fields[name] for name in in_path}
        if context.version is not None:
            if "version" not in own:
                raise InvalidInput("If-Match is for edits of a task", "omit it here: nothing would be compared")
            values["version"] = context.version
        if names_task:
            check_task(context.fields["task"], str(values["receipt"]))
        if "project" in own and "project" not in values:
            values["project"] = context.fields.get("project", "")
        return kind(request_id=context.request_id, trace_id=context.trace_id, **values)

    return read


class Wrapped(NamedTuple):
    """A field whose own fields may also be sent bare, without it."""

    field: str
    beside: frozenset[str]  # fields of the command, which stay where they are

    def around(self, value: Any) -> Any:
        if not isinstance(value, dict) or self.field in value or not value:
            return value
        bare = {name: part for name, part in value.items() if name not in self.beside}
        return {name: value[name] for name in value.keys() & self.beside} | {self.field: bare}


_WRAPPED: dict[Any, Wrapped] = {
    c.Add: Wrapped("task", frozenset()),
    c.Edit: Wrapped("changes", frozenset({"version", "supersede"})),
}


def check_task(named: str, receipt: str) -> None:
    """Refuse a path and a receipt of different tasks. A path with a task's id is not compared."""
    key = parse_key(named)
    if key is not None and key.ref != receipt.partition("@")[0]:
        raise InvalidInput(f"the path names {key.ref}, but the receipt is for {receipt.partition('@')[0][:80]}")


_ITEMS = {route.asks: body_type(route.asks, ()) for route in COMMANDS if issubclass(route.asks, Command)}


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
    return [_item(bytes(raw), id, context) for raw, id in zip(batch.commands, ids, strict=True)]


def _item(raw: bytes, request_id: str | None, context: RequestContext) -> Command | InvalidInput:
    try:
        kind, decode = _item_reader(_name_in(raw))
        values = asdict(decode(raw))
    except InvalidInput as error:
        return error
    return kind(project=context.fields["project"], request_id=request_id, trace_id=context.trace_id, **values)


class Named(msgspec.Struct, frozen=True):
    """The one field of a batch's command by which its type is known."""

    command: str


def _name_in(raw: bytes) -> str:
    try:
        return decoder_of(Named).decode(raw).command
    except ValueError:
        _decode_item(raw)  # raises, with the field that is wrong
        raise


@cache
def _item_reader(name: str) -> tuple[type[Command], Callable[[bytes], msgspec.Struct]]:
    """The command of that name, and the decoder of its body. One type: a union of all takes 100 µs to decode."""
    for kind, body in _ITEMS.items():
        if kind.__struct_config__.tag == name:
            return kind, decoder(body, has_instants=issubclass(kind, _WITH_INSTANTS), is_checked=True)
    raise InvalidInput(f"the body: Invalid value {name[:80]!r} - at `$.command`")


def decoder(
    kind: Any,
    *,
    may_be_empty: bool = False,
    has_instants: bool = False,
    is_checked: bool = False,
    wrapped: Wrapped | None = None,
) -> Callable[[bytes], Any]:
    decode = decoder_of(kind).decode

    def decoded(body: bytes) -> Any:
        if not body and may_be_empty:
            body = b"{}"
        if not is_checked:
            check_json(body, "the body")
        try:
            if has_instants:
                value = msgspec.json.decode(body)
                return msgspec.convert(from_plain(value if wrapped is None else wrapped.around(value)), kind)
            return decode(body)
        except RecursionError:
            raise InvalidInput("the body is nested too deep") from None
        except msgspec.ValidationError as error:
            near, hint = meant_field(error, kind), None
            if wrapped is not None:
                hint = f"{f'{near} Send' if near else 'send'} its fields alone, or in `{wrapped.field}`"
            raise InvalidInput(f"the body: {error}", hint or near) from None
        except msgspec.DecodeError as error:
            raise InvalidInput(f"the body is not valid JSON: {error}") from None
        except ValueError as error:  # an instant
            raise InvalidInput(f"the body: {error}") from None

    return decoded


def meant_field(error: Exception, kind: Any) -> str | None:
    """The field that a misspelt one resembles, of this struct or of one in it."""
    from tenure.core.inputs import suggestion

    found = _UNKNOWN.search(str(error))
    near = suggestion(found[1], _names(kind) - {found[1]}) if found else ""
    return near.removeprefix("; ") or None


_UNKNOWN = re.compile("unknown field `([^`]{1,80})`")


def _names(kind: Any) -> set[str]:
    fields = msgspec.structs.fields(kind) if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else ()
    inner = {name for field in fields for part in (field.type, *get_args(field.type)) for name in _own_names(part)}
    return {field.name for field in fields} | inner


def _own_names(kind: Any) -> set[str]:
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
    return {field.name for field in msgspec.structs.fields(kind)} if is_struct else set()


class LoginBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    key: str


class RecoverBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    project: str | None = None  # None: all


class PlanText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    path: str = "plan.yaml"  # its ending chooses between YAML and JSON; its name is the plan's, if that has none


decode_plan: Callable[[bytes], PlanText] = decoder(PlanText)
decode_login: Callable[[bytes], LoginBody] = decoder(LoginBody)
decode_recover: Callable[[bytes], RecoverBody] = decoder(RecoverBody, may_be_empty=True)
_decode_batch = decoder(Batch)
_decode_item = decoder(reduce(or_, _ITEMS.values()), is_checked=True)  # with the whole batch


def braces(path: str) -> frozenset[str]:
    return frozenset(part.strip("{}") for part in path.split("/") if part.startswith("{"))

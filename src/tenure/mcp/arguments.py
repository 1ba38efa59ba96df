"""What the tools take: one struct each, from which the input schema is made and by which a call is checked.

The schemas are as small as they can be: no titles, no defaults, no `null`. A model that sends `null` for a value it has
not got, or "50" for 50, means what it says, so both are taken.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import inspect

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.inputs import suggestion

MOST_WAITED = limits.MCP_WAIT

# Gemini CLI offers this one with every tool, for its own ordering of calls, and sends it along.
OF_CLIENTS = frozenset({"wait_for_previous"})


LOOKS = ("task", "ready", "held", "status", "inbox", "why", "history")
ENDINGS = ("done", "fail", "release", "ask")


def told(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


def one_of(*names: str) -> msgspec.Meta:
    """Tells of the choices only: whoever takes the value checks it, and then names what is near."""
    return msgspec.Meta(extra_json_schema={"enum": list(names)})


Texts = tuple[str, ...]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Claim(Arguments, frozen=True, kw_only=True):
    task: Annotated[str, told("key, as B-003")] | None = None
    wait: Annotated[float, told("seconds, at most 300")] | None = None
    track: str | None = None
    type: str | None = None
    tags: Texts | None = None
    capabilities: Annotated[Texts, told("yours")] | None = None
    lease: float | None = None


class Show(Arguments, frozen=True, kw_only=True):
    what: Annotated[str, one_of(*LOOKS)] | None = None
    task: str | None = None
    limit: int | None = None


class Update(Arguments, frozen=True, kw_only=True):
    receipt: str
    percent: int | None = None
    step: Annotated[str, told("what you do now")] | None = None
    checkpoint: Annotated[dict[str, Any], told("next, files, tests, blockers")] | None = None


class Finish(Arguments, frozen=True, kw_only=True):
    receipt: str
    outcome: Annotated[str, one_of(*ENDINGS)]
    summary: Annotated[str, told("what was done, why not, or the question")] | None = None
    result: Annotated[Any, msgspec.Meta(extra_json_schema={"type": "object"})] = None
    class_: Annotated[str, told("of failure: task, timeout, environment, rate_limit")] | None = msgspec.field(
        name="class", default=None
    )
    retry_after: float | None = None
    seen: Annotated[int, told("brief you have read, after CHANGED")] | None = None


class Add(Arguments, frozen=True, kw_only=True):
    title: str | None = None
    description: str | None = None
    track: str | None = None
    type: str | None = None
    priority: Annotated[int | str, told("high, normal, low, or 0 (first) to 100")] | None = None
    after: Annotated[Texts, told("tasks it waits for")] | None = None
    tags: Texts | None = None
    touches: Annotated[Texts, told("globs it changes")] | None = None
    capabilities: Texts | None = None
    receipt: str | None = None
    wait: Annotated[bool, told("until subtasks end")] | None = None


class Message(Arguments, frozen=True, kw_only=True):
    text: str | None = None
    to: Annotated[str, told("agent, @all, @leader, @idle, @track:B")] | None = None
    reply_to: str | None = None


class Reserve(Arguments, frozen=True, kw_only=True):
    patterns: Annotated[Texts, told("src/**, port:8080")] | None = None
    receipt: Annotated[str, told("of your task, or what to release")] | None = None
    shared: bool | None = None
    lease: float | None = None
    release: bool | None = None


T = TypeVar("T", bound=Arguments)


def taken(kind: type[T], given: dict[str, Any] | None, tool: str) -> T:
    """What was given, with every type proven; InvalidInput says what is wrong and where."""
    fields = [field.encode_name for field in msgspec.structs.fields(kind)]
    named = {name: value for name, value in (given or {}).items() if name not in OF_CLIENTS}
    for name in named:
        if name not in fields:
            raise InvalidInput(
                f"{tool}: there is no {name[:60]!r}{suggestion(name, fields)}", f"there are: {', '.join(fields)}"
            )
    try:
        return msgspec.convert(named, kind, strict=False)
    except UnicodeEncodeError:  # half of a surrogate pair, where a number or a list is read from a text
        raise InvalidInput(f"{tool}: text that is not valid UTF-8", "re-encode it, or drop the bytes") from None
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{tool}: {error}") from None


# --- schemas ------------------------------------------------------------------------------------------------


def schema(kind: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of a tool's input, with nothing in it that a model does not need."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    made: dict[str, Any] = {"type": "object", "properties": {f.encode_name: _schema(f.type) for f in info.fields}}
    required = [field.encode_name for field in info.fields if field.required]
    return made | ({"required": required} if required else {})


_NAMES: dict[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.DictType: "object",
}


def _schema(type: inspect.Type) -> dict[str, Any]:
    if isinstance(type, inspect.Metadata):
        return _schema(type.type) | (type.extra_json_schema or {})
    if isinstance(type, inspect.UnionType):  # None need not be told of, and of two ways to say it the wider will do
        return _schema([part for part in type.types if not isinstance(part, inspect.NoneType)][-1])
    if isinstance(type, inspect.VarTupleType):
        return {"type": "array", "items": _schema(type.item_type)}
    if isinstance(type, inspect.AnyType):
        return {}
    return {"type": _NAMES[type.__class__]}

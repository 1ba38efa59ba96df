"""The arguments of the tools: one struct each, which defines the input schema and validates a call.

The schemas are as small as possible: no titles, no defaults, no `null`. Models also send `null` for a missing value and
"50" for 50, so both are accepted.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import inspect

from tenure.core import limits
from tenure.core.commands import Totals
from tenure.core.errors import InvalidInput
from tenure.core.inputs import suggestion

MOST_WAITED = limits.MCP_WAIT

# Gemini CLI adds this argument to every tool, for its own ordering of calls, and sends it.
CLIENT_ARGUMENTS = frozenset({"wait_for_previous"})


VIEWS = ("task", "ready", "held", "status", "inbox", "why", "history")
ENDINGS = ("done", "fail", "release", "ask")


def described(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


def one_of(*names: str) -> msgspec.Meta:
    """Only lists the choices in the schema: the tool checks the value, and suggests a similar one."""
    return msgspec.Meta(extra_json_schema={"enum": list(names)})


Texts = tuple[str, ...]


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Claim(Arguments, frozen=True, kw_only=True):
    task: Annotated[str, described("as B-003")] | None = None
    wait: Annotated[float, described("at most 300 s")] | None = None
    track: str | None = None
    type: str | None = None
    tags: Texts | None = None
    capabilities: Texts | None = None  # the agent's own
    lease: float | str | None = None  # seconds, or auto
    like: Annotated[int, described("up to N alike")] | None = None  # of one type and track


class Show(Arguments, frozen=True, kw_only=True):
    what: Annotated[str, one_of(*VIEWS)] | None = None
    task: str | None = None
    limit: int | None = None


class Update(Arguments, frozen=True, kw_only=True):
    receipt: str
    percent: int | None = None
    step: str | None = None  # what the agent does now
    checkpoint: Annotated[dict[str, Any], described("next, files, tests, blockers")] | None = None
    usage: Annotated[dict[str, Any], described("totals: model, fresh, output, cost_usd")] | None = None


class Finish(Arguments, frozen=True, kw_only=True):
    receipt: str
    outcome: Annotated[str, one_of(*ENDINGS)]
    summary: Annotated[str, described("work, why not, or question")] | None = None
    result: Annotated[Any, msgspec.Meta(extra_json_schema={"type": "object"})] = None
    class_: Annotated[str, described("task, timeout, environment, rate_limit")] | None = msgspec.field(
        name="class", default=None
    )
    retry_after: float | None = None
    seen: Annotated[int, described("brief read, after CHANGED")] | None = None


class Add(Arguments, frozen=True, kw_only=True):
    title: str | None = None
    description: str | None = None
    track: str | None = None
    type: str | None = None
    priority: Annotated[int | str, described("high, normal, low, 0 to 100")] | None = None
    after: Annotated[Texts, described("tasks it waits for")] | None = None
    tags: Texts | None = None
    touches: Annotated[Texts, described("globs it changes")] | None = None
    capabilities: Texts | None = None
    receipt: str | None = None
    wait: Annotated[bool, described("until subtasks end")] | None = None


class Message(Arguments, frozen=True, kw_only=True):
    text: str | None = None
    to: Annotated[str, described("agent, @all, @leader, @idle, @track:B")] | None = None
    reply_to: str | None = None
    emit: Annotated[str, described("as build_passed")] | None = None
    data: Annotated[Any, msgspec.Meta(extra_json_schema={"type": "object"})] = None


class Reserve(Arguments, frozen=True, kw_only=True):
    patterns: Annotated[Texts, described("src/**, port:8080")] | None = None
    receipt: Annotated[str, described("of your task, or to release")] | None = None
    shared: bool | None = None
    lease: float | None = None
    release: bool | None = None


T = TypeVar("T", bound=msgspec.Struct)


def taken(kind: type[T], given: dict[str, Any] | None, tool: str) -> T:
    """The arguments as a struct, with every type checked; InvalidInput names the wrong field."""
    fields = [field.encode_name for field in msgspec.structs.fields(kind)]
    named = {name: value for name, value in (given or {}).items() if name not in CLIENT_ARGUMENTS}
    for name in named:
        if name not in fields:
            raise InvalidInput(
                f"{tool}: unknown argument {name[:60]!r}{suggestion(name, fields)}", f"valid: {', '.join(fields)}"
            )
    try:
        return msgspec.convert(named, kind, strict=False)
    except UnicodeEncodeError:  # half of a surrogate pair in a text that is read as a number or a list
        raise InvalidInput(f"{tool}: text that is not valid UTF-8", "re-encode it, or remove the bytes") from None
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{tool}: {error}") from None


def totals(given: dict[str, Any]) -> Totals:
    """Usage as models send it: with `null` for what they do not know, and the cost as a number."""
    known = {name: value for name, value in given.items() if value is not None}
    if isinstance(known.get("cost_usd"), (int, float)):
        known["cost_usd"] = str(known["cost_usd"])
    return taken(Totals, known, "update: usage")


# --- schemas ------------------------------------------------------------------------------------------------


def schema(kind: type[Arguments]) -> dict[str, Any]:
    """The JSON schema of a tool's input, without anything that a model does not need."""
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
    if isinstance(type, inspect.UnionType):  # without None; of two types the wider is enough
        return _schema([part for part in type.types if not isinstance(part, inspect.NoneType)][-1])
    if isinstance(type, inspect.VarTupleType):
        return {"type": "array", "items": _schema(type.item_type)}
    if isinstance(type, inspect.AnyType):
        return {}
    return {"type": _NAMES[type.__class__]}

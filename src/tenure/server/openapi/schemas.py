"""The components of the document: every type on the wire, as JSON.

msgspec generates the schemas; this module adapts them to the wire. Instants are RFC 3339 text, by the rule of
`client/wire.py`. Bodies are the structs that `bodies.py` decodes. No schema is written by hand twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, get_args

import msgspec

from tenure.client.routes import COMMANDS, QUERIES, Route
from tenure.core import commands as c
from tenure.core import inputs, views
from tenure.core import queries as q
from tenure.core.instants import is_instant
from tenure.core.outcomes import CODES, Outcome
from tenure.core.views import project_views, team_views
from tenure.server.openapi.bounds import Schema, bounded
from tenure.server.requests import LoginBody, RecoverBody, body_type

# Views of endpoints outside of the route table.
OTHER_VIEWS = (
    project_views.CoordinatorView, project_views.CoordinatorHealth, project_views.RecoveredView,
    project_views.NoteView, team_views.PrincipalView,
)  # fmt: skip
MODULES = [module for module in vars(views).values() if isinstance(module, ModuleType)]
REF = "#/components/schemas/{name}"
DEFAULT = "x-tenure-default"  # of a field in a body
SPELLED: Schema = {"type": "string", "format": "date-time"}
# Both are accepted: RFC 3339 text as it was read, or microseconds.
SAID: Schema = {"anyOf": [SPELLED, {"type": "integer", "minimum": 0, "exclusiveMaximum": 1 << 53}]}
ASKED: Schema = {"anyOf": [SPELLED, {"type": "integer"}]}  # of a query, which accepts any number
PROBLEM: Schema = {
    "title": "Problem",
    "description": "An error (RFC 9457). `definite`: nothing was done; otherwise send it again with the same key.",
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "a stable code; see the reference of errors"},
        "hint": {"type": "string", "description": "what to do"},
        "definite": {"type": "boolean"},
    },
    "required": ["type", "title", "status", "detail", "code", "definite"],
}


def ref(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}


def components() -> dict[str, Schema]:
    """All schemas, by name."""
    queried = [views.OF[route.asks] for route in QUERIES if issubclass(route.asks, q.Query)]
    viewed = {_item_of(kind) for kind in (*queried, *views.IN_OUTCOME.values())}
    answers = _made([*viewed, *OTHER_VIEWS])
    del answers["Outcome"]
    bodies = [body_of(route) for route in (*COMMANDS, *QUERIES)]
    asked = _made([*(body for body in bodies if body is not None), LoginBody, RecoverBody])
    return {
        "Outcome": _outcome(),
        "Problem": PROBLEM,
        **{name: _walked(_in_order(schema), _spelled) for name, schema in answers.items()},
        **{_body_name(name): _body(name, schema) for name, schema in asked.items()},
        "Changes": _changes(asked["NewTask"]),
        "BareEdit": _bare_edit(asked["NewTask"], asked["Edit"]),
        **_batch(),
    }


# --- answers ------------------------------------------------------------------------------------------------


def view_of(kind: Any) -> Schema:
    """The schema of a query's view; an array for a list."""
    item = _item_of(kind)
    schema = {"type": "string"} if item is str else ref(item.__name__)
    return schema if item is kind else {"type": "array", "items": schema}


def _in_order(schema: Schema) -> Schema:
    """The fields in the view's own order; msgspec sorts them."""
    module = next((module for module in MODULES if hasattr(module, schema["title"])), None)
    if module is None:
        return schema
    order = getattr(module, schema["title"]).__annotations__
    return {**schema, "properties": {name: schema["properties"][name] for name in order}}


def _item_of(kind: Any) -> Any:
    parts = get_args(kind)
    return parts[0] if parts else kind


def _outcome() -> Schema:
    """Unset fields are omitted on the wire, so none is null; fields with views refer to them."""
    schema: Schema = _made([Outcome])["Outcome"]
    properties = {name: _without_null(part) for name, part in schema["properties"].items()}
    properties |= {name: view_of(kind) for name, kind in views.IN_OUTCOME.items()}
    properties["outcome"] = {"type": "string", "enum": list(CODES)}
    description = "The result of a command: `outcome` is a code, `message` a sentence, `hint` what to do."
    return _walked({**schema, "description": description, "properties": properties}, _spelled)


def _without_null(schema: Schema) -> Schema:
    kept = {word: value for word, value in schema.items() if word not in ("anyOf", "default")}
    some = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    return {**kept, **some[0]} if len(some) == 1 else kept | ({"anyOf": some} if some else {})


# --- bodies -------------------------------------------------------------------------------------------------


def in_path(route: Route) -> set[str]:
    return set(re.findall(r"{(\w+)}", route.path))


def body_of(route: Route) -> type[msgspec.Struct] | None:
    """The struct of a route's body; None if the path has all fields."""
    if not issubclass(route.asks, c.Command) and route.method != "POST":
        return None
    kind = body_type(route.asks, in_path(route))
    return kind if kind.__struct_fields__ else None


def body_ref(kind: type[msgspec.Struct]) -> Schema:
    return ref(_body_name(kind.__name__))


_OWN = {route.asks.__name__ for route in (*COMMANDS, *QUERIES)}


def _body_name(name: str) -> str:
    """Commands and views may share a name; the name of a body ends in Body."""
    return f"{name}Body" if name in _OWN else name


def _changes(new_task: Schema) -> Schema:
    """The fields that an edit may change: those of a new task, without defaults."""
    fields = {name: part for name, part in _body("NewTask", new_task)["properties"].items() if name in inputs.EDITABLE}
    return {
        "title": "Changes",
        "description": "The fields of a task to change.",
        "type": "object",
        "properties": {
            name: {word: value for word, value in part.items() if word != DEFAULT} for name, part in fields.items()
        },
        "additionalProperties": False,
        "minProperties": 1,
    }


# Commands whose main field may be left out, with its own fields in its place: the schema of such a body.
BARE: dict[type[c.Command] | type[q.Query], str] = {c.Add: "NewTask", c.Edit: "BareEdit"}


def _bare_edit(new_task: Schema, edit: Schema) -> Schema:
    """The fields to change, beside the other fields of an edit."""
    beside = {name: part for name, part in _body("Edit", edit)["properties"].items() if name != "changes"}
    changes = _changes(new_task)
    return {**changes, "title": "BareEdit", "properties": {**changes["properties"], **beside}}


def _body(name: str, schema: Schema) -> Schema:
    """Without the tag that only a batch needs, and with the bounds of its values.

    Defaults are in an extension: generators of clients take a field with a default for one that is always there,
    and send it.
    """
    properties = {
        field: _default_as_text(bounded(_described(field, part), name, field))
        for field, part in schema["properties"].items()
        if field != "command"
    }
    required = [field for field in schema.get("required", ()) if field != "command"]
    made = {**schema, "title": _body_name(name), "properties": properties, "required": required}
    return made if required else {word: value for word, value in made.items() if word != "required"}


def _default_as_text(schema: Schema) -> Schema:
    if "default" not in schema:
        return schema
    kept = {word: value for word, value in schema.items() if word != "default"}
    return kept if schema["default"] is None else {**kept, DEFAULT: schema["default"]}


def _batch() -> dict[str, Schema]:
    """Each command as in a batch: with its kind, and with the fields of the path."""
    kinds = {route.asks: body_type(route.asks, ()) for route in COMMANDS if issubclass(route.asks, c.Command)}
    made = _made(kinds.values())
    named: dict[str, Schema] = {}
    for kind in kinds.values():
        plain = _body(kind.__name__, made[kind.__name__])
        tag = {"type": "string", "const": kind.__struct_config__.tag}
        name, properties = f"{kind.__name__}Command", {"command": tag, **plain["properties"]}
        required = ["command", *plain.get("required", ())]
        named[name] = {**plain, "title": name, "properties": properties, "required": required}
    either = {
        "title": "AnyCommand",
        "description": "Any command, with its kind in `command`.",
        "oneOf": [ref(name) for name in named],
        "discriminator": {
            "propertyName": "command",
            "mapping": {s["properties"]["command"]["const"]: REF.format(name=n) for n, s in named.items()},
        },
    }
    return {"AnyCommand": either, **named}


def _described(name: str, schema: Schema) -> Schema:
    if name == "changes":
        return {**schema, "anyOf": [ref("Changes"), *schema["anyOf"][1:]]} if "anyOf" in schema else ref("Changes")
    return _instant(schema, SAID) if is_instant(name) else schema


# --- both ---------------------------------------------------------------------------------------------------


def _made(kinds: Iterable[Any]) -> dict[str, Schema]:
    _, made = msgspec.json.schema_components(kinds, ref_template=REF)
    return made


def _walked(schema: Schema, change: Callable[[str, Schema], Schema]) -> Schema:
    """The schema with each property changed."""
    if "properties" not in schema:
        return schema
    return {**schema, "properties": {name: change(name, part) for name, part in schema["properties"].items()}}


def _spelled(name: str, schema: Schema) -> Schema:
    return _instant(schema, SPELLED) if is_instant(name) else schema


def _instant(schema: Schema, spelled: Schema) -> Schema:
    if schema.get("type") == "integer":
        return {**{word: value for word, value in schema.items() if word != "type"}, **spelled}
    if "anyOf" in schema:
        return {**schema, "anyOf": [_instant(one, spelled) for one in schema["anyOf"]]}
    return schema

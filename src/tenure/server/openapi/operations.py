"""One operation for each route of the table: parameters, body, responses and role."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tenure.client.routes import ALIASES, AS_JSON, CONDITION_FAILED, OF_ERROR, OF_KIND, OF_OUTCOME, P, Route
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core import roles, views
from tenure.core.instants import is_instant
from tenure.server.openapi import examples
from tenure.server.openapi.bounds import Schema, bounded_query
from tenure.server.openapi.schemas import ASKED, BARE, DEFAULT, body_of, body_ref, in_path, ref, view_of

Operation = dict[str, Any]
NOBODY = "nobody"  # the role of what only a process on the store's own host may do
JSON, PROBLEM = "application/json", "application/problem+json"

# The fields of paths.
IN_PATH = {
    "project": "the name of the project",
    "task": "a task's id, key, short key (`B-003`) or an unambiguous prefix of one",
    "dag": "the id of the dag",
    "session": "the name of the session",
    "pool": "the name of the pool",
    "agent": "the name of the agent",
    "code": "the track's code, for example `B`",
    "key": "the id of the key, or its name",
    "scope": "which budget: `tenant`, `project`, `dag:ID`, `task:KEY` or `agent:NAME`",
    "schedule": "the name of the schedule",
    "trigger": "the name of the trigger",
    "webhook": "the name of the webhook",
    "sink": "the name of the sink",
    "tenant": "the name of the tenant",
    "user": "the name of the member",
    "name": "the artifact's name, for example `reports/summary.md`",
}
MEANINGS = {
    400: "the request is invalid: `detail` names the field and the valid values",
    401: "not signed in, or the key is not valid",
    403: "the role does not allow this",
    404: "not found",
    409: "refused: `outcome` has the reason",
    412: "refused: the task has changed since the version in If-Match",
    413: "too large",
    415: "the body is not JSON",
    421: "the tenant's home is in another region: send it to the server in Tenure-Home",
    422: "the output does not match the task's contract",
    429: "too many requests: retry after Retry-After",
    500: "an internal error; nothing was done",
    503: "the store is unavailable, or the server is overloaded: retry after Retry-After",
}
ANYWHERE = (400, 401, 403, 404, 409, 413, 421, 429, 500, 503)
WITH_BODY = (*ANYWHERE, 415)
assert set(OF_ERROR.values()) - {405} == set(WITH_BODY)


def operation(route: Route) -> Operation:
    """The route as an OpenAPI operation."""
    kind = route.asks
    name = str(kind.__struct_config__.tag)
    made: Operation = {
        "operationId": name,
        "summary": _first_line(kind),
        "description": needed(role_of(kind), capability=roles.CAPABILITY_FOR.get(kind)),
        "tags": [_theme(route)],
        "x-tenure-role": role_of(kind),
        **({"x-tenure-capability": roles.CAPABILITY_FOR[kind]} if kind in roles.CAPABILITY_FOR else {}),
        "parameters": [*path_parameters(route.path), *_other_parameters(route)],
        "responses": _command_responses(kind) if issubclass(kind, c.Command) else _view_responses(kind),
    }
    body = body_of(route)
    if body is not None:
        made["responses"] = dict(sorted({**made["responses"], **problems(415)}.items()))
        bare = {"anyOf": [body_ref(body), ref(BARE[kind])]} if kind in BARE else None
        content: Schema = {"schema": bare or body_ref(body)}
        if name in examples.BODIES:
            content["example"] = examples.BODIES[name]
        required = any(field.required for field in msgspec.structs.fields(body))
        made["requestBody"] = {"required": required, "content": {JSON: content}}
    return made


def role_of(kind: type[c.Command] | type[q.Query]) -> str:
    """The lowest role that may use it over HTTP."""
    if kind is c.Gone:
        return NOBODY
    if issubclass(kind, c.Command):
        return roles.NEEDS[kind]
    return roles.QUERIES_NEED.get(kind, roles.ROLES[0])


def needed(role: str | None, *, capability: str | None = None) -> str:
    """Who may use an operation, as a sentence."""
    if role is None:
        return "Needs no authentication."
    if role == NOBODY:
        return "Only a process on the store's own host may do this, not over HTTP."
    more = f"; an agent also needs the capability `{capability}`" if capability else ""
    return f"Needs the role `{role}`{more}."


def _first_line(kind: type[msgspec.Struct]) -> str:
    return " ".join((kind.__doc__ or "").split())


THEMES = {
    "claims": "What a holder does with its receipt, from the claim to the result.",
    "tasks": "Tasks: create, edit, read, and what operators do with them.",
    "dags": "Plans and their graphs.",
    "projects": "Projects: settings, budgets, usage, validations, webhooks, pools.",
    "log": "Events, as a list or live.",
    "agents": "Agents: register, health, tasks, drain and terminate.",
    "sessions": "What a session claimed, did and lost.",
    "messages": "Mail between agents and people.",
    "reservations": "Patterns of files, ports and other things that one holder uses.",
    "schedules": "Tasks by the clock.",
    "triggers": "Tasks by events and signed deliveries.",
    "keys": "API keys.",
    "tenants": "Tenants of the deployment, and the members of one.",
    "server": "Probes, metrics, sign-in and the coordinator.",
}
# By the first segment of a path below its project.
_THEME = {
    "ready": "tasks", "next": "tasks", "states": "tasks", "dead-letters": "tasks", "plans": "dags", "publish": "dags",
    "forecast": "dags",
    "members": "tenants", "events": "log", "undo": "log", "processes": "agents", "gone": "agents", "leader": "agents",
}  # fmt: skip


def _theme(route: Route) -> str:
    if ("receipt" in route.asks.__struct_fields__ and "{task}" in route.path) or route.asks in (
        c.ClaimNext,
        c.ClaimTask,
    ):
        return "claims"
    word = next((word for word in route.path.removeprefix(P).split("/") if word), "projects")
    theme = _THEME.get(word, word)
    return theme if theme in THEMES else "projects"


# --- parameters ------------------------------------------------------------------------------------------


def path_parameters(path: str) -> list[Schema]:
    return [parameter(name) for name in re.findall(r"{(\w+)}", path)]


def in_paths() -> dict[str, Schema]:
    """The parameters of paths, shared by operations."""
    schema = {"type": "string", "minLength": 1}
    return {
        name: {"name": name, "in": "path", "required": True, "description": meaning, "schema": schema}
        for name, meaning in IN_PATH.items()
    }


def _other_parameters(route: Route) -> list[Schema]:
    """The parameters in the query string and the headers."""
    kind = route.asks
    if issubclass(kind, q.Query) and route.method == "POST":
        return [parameter("stale"), parameter("traceparent")]
    if issubclass(kind, q.Query):
        own = [field for field in msgspec.structs.fields(kind) if field.name not in {*in_path(route), "project"}]
        made = {field.name: _parameter(kind, field) for field in own}
        others = [
            {**made[name], "name": alias, "description": f"the same as `{name}`"}
            for alias, name in ALIASES.get(kind, {}).items()
        ]
        return [*made.values(), *others, parameter("stale"), parameter("If-None-Match"), parameter("traceparent")]
    parameters = [parameter("Idempotency-Key"), parameter("traceparent")]
    if kind is c.Edit:
        parameters.append(parameter("If-Match"))
    if kind is c.ClaimNext:
        parameters.append(parameter("wait"))
    return parameters


PARAMETER_MEANINGS = {
    q.AT: "as it was at this instant (RFC 3339), or right after the event with this sequence (digits)",
    "fields": "only these fields of each task, repeated or with commas; the generated types have all",
    "level": "the lowest level that is wanted",
    "tag": "of several, tasks that have all",
}


def parameter(name: str) -> Schema:
    return {"$ref": f"#/components/parameters/{name}"}


def _parameter(kind: type[q.Query], field: msgspec.structs.FieldInfo) -> Schema:
    """A field of a query as a parameter: repeated for several values, JSON text for pairs."""
    made: Schema = {"name": field.name, "in": "query", "required": field.required}
    (schema,), _ = msgspec.json.schema_components([field.type])
    schema = _some(schema)
    if kind is q.Tasks and field.name == "after":
        return {**made, "description": "`next` of the page before", "schema": {"type": "string", "minLength": 1}}
    if field.name in PARAMETER_MEANINGS:
        made["description"] = PARAMETER_MEANINGS[field.name]
    if field.name in AS_JSON and schema.get("type") == "array":
        made["description"] = AS_JSON[field.name]
        return {**made, "schema": {"type": "string", "pattern": r"^\[.*\]$"}}
    if is_instant(field.name) and field.name != q.AT:
        schema = ASKED
    else:
        schema = bounded_query(schema, field.name, kind.largest)
    if not field.required and field.default is not None and field.default is not msgspec.NODEFAULT:
        schema = {**schema, DEFAULT: field.default}  # not `default`: generated clients would send it
    return {**made, "schema": schema}


def _some(schema: Schema) -> Schema:
    """Without null: an absent parameter is omitted."""
    return next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), schema)


# --- responses ----------------------------------------------------------------------------------------

# Outcomes have the statuses of their kinds; an error with the same status has another media type.
_OUTCOMES = {
    200: "the outcome",
    201: "created",
    202: "submitted; waiting for validation",
    404: MEANINGS[404],
    409: MEANINGS[409],
    CONDITION_FAILED: MEANINGS[412],
    422: MEANINGS[422],
}
assert set(_OUTCOMES) == {*OF_KIND.values(), *OF_OUTCOME.values(), CONDITION_FAILED}


def responses() -> dict[str, Schema]:
    """The responses that operations share: `Problem404`, `Outcome404` and so on."""
    made: dict[str, Schema] = {}
    for status in WITH_BODY:
        made[f"Problem{status}"] = {"description": MEANINGS[status], "content": {PROBLEM: {"schema": ref("Problem")}}}
        if status in (429, 503):
            made[f"Problem{status}"]["headers"] = {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}
        elif status == 421:
            made[f"Problem{status}"]["headers"] = {"Tenure-Home": {"$ref": "#/components/headers/Tenure-Home"}}
    for status, meaning in _OUTCOMES.items():
        also = made[f"Problem{status}"]["content"] if status in ANYWHERE else {}
        made[f"Outcome{status}"] = {"description": meaning, "content": {JSON: {"schema": ref("Outcome")}, **also}}
    made["Outcome201"]["headers"] = {"Location": {"$ref": "#/components/headers/Location"}}
    made["NotModified"] = {"description": "the copy is still the same"}
    return made


def problems(*statuses: int) -> dict[str, Schema]:
    return {str(status): {"$ref": f"#/components/responses/Problem{status}"} for status in statuses}


def _command_responses(kind: type[c.Command]) -> dict[str, Schema]:
    """Only an edit compares a version."""
    statuses = [status for status in _OUTCOMES if status != CONDITION_FAILED or kind is c.Edit]
    ends = {str(status): {"$ref": f"#/components/responses/Outcome{status}"} for status in statuses}
    return dict(sorted({**problems(*ANYWHERE), **ends}.items()))


def _view_responses(kind: type[q.Query]) -> dict[str, Schema]:
    schema = view_of(views.OF[kind])
    answer: Schema = {"description": "the view"}
    if schema.get("type") == "array":
        schema = page(schema, _cursor(kind))
    is_read = kind.declaration.method == "GET"
    if is_read:
        answer["headers"] = {
            "ETag": {"$ref": "#/components/headers/ETag"},
            "Tenure-Age": {"$ref": "#/components/headers/Tenure-Age"},
        }
    answer["content"] = {JSON: {"schema": schema}}
    by_status = {"200": answer, **problems(*ANYWHERE)}
    if is_read:
        by_status["304"] = {"$ref": "#/components/responses/NotModified"}
    if kind is q.Next:  # has the statuses of a claim
        by_status |= {status: of for status, of in _command_responses(c.ClaimTask).items() if status in ("404", "409")}
    if kind is q.Log:
        answer["content"]["text/event-stream"] = {
            "schema": {"type": "string", "description": "a live stream of events"}
        }
    return dict(sorted(by_status.items()))


def page(items: Schema, cursor: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {
            "items": items,
            "next": {**cursor, "description": "the value of `after` for the next page; null at the end"},
            "more": {"type": "boolean", "description": "whether the list stopped before its end, at `limit`"},
        },
        "required": ["items", "next", "more"],
    }


def _cursor(kind: type[q.Query]) -> Schema:
    return {"type": ["string", "null"]} if "after" in kind.__struct_fields__ else {"type": "null"}

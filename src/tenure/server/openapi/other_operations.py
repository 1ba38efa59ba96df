"""The operations of endpoints outside of the route table."""

from __future__ import annotations

from typing import Any

from tenure.client.routes import ARTIFACT, BATCH, DELIVERIES, NEWS, PLAN_FILES, PREFIX, PREVIEW, TRANSCRIPT
from tenure.core import inputs
from tenure.core.events import LEVELS
from tenure.core.store_health import READ_ONLY
from tenure.engine.reads.coordinator_status import MOST_LOGGED
from tenure.server.openapi import examples
from tenure.server.openapi.bounds import Schema
from tenure.server.openapi.operations import (
    JSON,
    PROBLEM,
    Operation,
    needed,
    page,
    parameter,
    path_parameters,
    problems,
)
from tenure.server.openapi.schemas import ASKED, ref

_ANY = (400, 401, 403, 404, 413, 421, 429, 500, 503)
_WRITE = (400, 401, 403, 413, 421, 429, 500, 503)
_OBJECT: Schema = {"type": "object"}
_TEXT: Schema = {"type": "string"}
_BINARY: Schema = {"schema": {"type": "string", "format": "binary"}}
_BYTES: Schema = {"application/octet-stream": _BINARY, "*/*": _BINARY}  # generators read the first alone
_OUTCOME: Schema = {JSON: {"schema": ref("Outcome")}}
_BOTH: Schema = {**_OUTCOME, PROBLEM: {"schema": ref("Problem")}}


def paths() -> dict[str, dict[str, Operation]]:
    """Path → method → operation."""
    return {
        PREFIX + BATCH: {"post": _batch("batch", "Run commands in one transaction, with one outcome each.")},
        PREFIX + PREVIEW: {"post": _batch("preview", "The outcomes that a batch would have now; nothing is written.")},
        PREFIX + NEWS: {"get": _news()},
        PREFIX + TRANSCRIPT: {"get": _transcript()},
        PREFIX + PLAN_FILES: {"post": _plan_file()},
        PREFIX + ARTIFACT: {"put": _put_artifact(), "get": _get_artifact()},
        PREFIX + "/coordinator/status": {
            "get": _view("coordinator_status", "The leader and its cycles.", ref("CoordinatorView"), "admin")
        },
        PREFIX + "/coordinator/recover": {"post": _recover()},
        PREFIX + "/coordinator/logs": {"get": _logs()},
        PREFIX + DELIVERIES: {"post": _delivery()},
        "/health": {"get": _open("health", "The process responds.", _fields(status={"const": "ok"}, version=_TEXT))},
        "/ready": {"get": _readiness()},
        "/health/coordinator": {"get": _coordinator_health()},
        "/metrics": {"get": _metrics()},
        PREFIX + "/me": {"get": _view("me", "The current principal.", ref("PrincipalView"))},
        "/login": {"post": _login()},
        "/logout": {"post": _open("logout", "End the dashboard session.", _OBJECT, 400, 403)},
        "/openapi.json": {"get": _open("openapi", "This document.", _OBJECT)},
    }


# --- parts -----------------------------------------------------------------------------------------------------


def _operation(id: str, summary: str, theme: str, role: str | None, **more: Any) -> Operation:
    """`role` None: needs no authentication."""
    made = {
        "operationId": id, "summary": summary, "description": needed(role), "tags": [theme], "x-tenure-role": role,
        **more,
    }  # fmt: skip
    return made if role is not None else {**made, "security": []}


def _view(id: str, summary: str, schema: Schema, role: str = "viewer", theme: str = "server", **more: Any) -> Operation:
    return _operation(id, summary, theme, role, responses={**_ok("the view", schema), **problems(*_ANY)}, **more)


def _open(id: str, summary: str, schema: Schema, *statuses: int, **more: Any) -> Operation:
    responses = {**_ok("ok", schema), **problems(*statuses, 500)}
    return _operation(id, summary, "server", None, responses=responses, **more)


def _ok(description: str, schema: Schema) -> Schema:
    return {"200": {"description": description, "content": {JSON: {"schema": schema}}}}


def _fields(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _body(content: Schema, *, required: bool = True) -> Schema:
    return {"required": required, "content": content}


def _query(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "schema": schema}


def _header(name: str, description: str, *, required: bool = False) -> Schema:
    return {"name": name, "in": "header", "required": required, "description": description, "schema": _TEXT}


# --- operations ------------------------------------------------------------------------------------------------


def _batch(id: str, summary: str) -> Operation:
    """Each command needs its own role, and is refused in its place."""
    body = _fields(commands={"type": "array", "items": ref("AnyCommand"), "maxItems": inputs.MOST_COMMANDS})
    body["properties"]["request_ids"] = {
        "type": ["array", "null"],
        "items": {"type": ["string", "null"], "maxLength": inputs.LONGEST_NAME},
        "description": "the Idempotency-Key of each command, or null",
    }
    body["additionalProperties"] = False
    answer = _fields(outcomes={"type": "array", "items": {"anyOf": [ref("Outcome"), ref("Problem")]}})
    parameters = [*path_parameters(BATCH), parameter("traceparent")]
    content = {JSON: {"schema": body, "example": examples.BATCH}}
    responses = {**_ok("one outcome for each command, in order", answer), **problems(*_ANY, 415)}
    more = {"parameters": parameters, "requestBody": _body(content), "responses": responses}
    return _operation(id, summary, "projects", "viewer", **more)


def _news() -> Operation:
    mark = _query("mark", {"type": "number", "minimum": 0, "default": 0})
    task = _query("task", {"type": "array", "items": _TEXT, "maxItems": inputs.MOST_LISTED})
    task["description"] = "ids of tasks: wait for events of these that their holder did not cause itself"
    parameters = [*path_parameters(NEWS), mark, parameter("wait"), task]
    schema = _fields(mark={"type": "integer"})
    return _view("news", "Wait until the log has events beyond `mark`.", schema, theme="log", parameters=parameters)


def _transcript() -> Operation:
    generation = _query("generation", {"type": "integer", "minimum": 0, "maximum": 999_999_999, "default": 0})
    generation["description"] = "of this claim; 0: the last one"
    after = _query("after", {"type": "integer", "minimum": 0, "default": 0})
    after["description"] = "`next` of the answer before: only newer lines"
    line = _fields(at={"type": ["number", "null"], "description": "seconds since the start"}, text=_TEXT)
    line["properties"]["from"] = {"type": "string", "enum": ["agent", "errors", "runner"]}
    number: Schema = {"type": "integer"}
    schema = _fields(
        key=_TEXT, generation=number, is_live={"type": "boolean", "description": "the claim has not ended"},
        next=number, lines={"type": "array", "items": line},
    )  # fmt: skip
    summary = "What an agent of `tenure run` said and which tools it called, also while it works."
    parameters = [*path_parameters(TRANSCRIPT), generation, after]
    return _view("transcript", summary, schema, theme="tasks", parameters=parameters)


def _plan_file() -> Operation:
    """The plans are bodies of `POST /projects/{project}/dags`."""
    body = {**_fields(text=_TEXT), "additionalProperties": False}
    body["properties"]["path"] = {"type": "string", "default": "plan.yaml", "description": "its name, for messages"}
    finding = _fields(
        line={"type": "integer"}, column={"type": "integer"}, code=_TEXT, message=_TEXT,
        level={"type": "string", "enum": ["error", "warning"]},
    )  # fmt: skip
    answer = _fields(plans={"type": "array", "items": _OBJECT}, findings={"type": "array", "items": finding})
    content = {JSON: {"schema": body}}
    more = {"parameters": path_parameters(PLAN_FILES), "requestBody": _body(content)}
    responses = {**_ok("the plans, or the errors of the text", answer), **problems(*_ANY)}
    summary = "Read the text of a plan file; creates nothing."
    return _operation("read_plan", summary, "dags", "viewer", **more, responses=responses)


def _put_artifact() -> Operation:
    """A name may contain slashes, unescaped."""
    parameters = [
        *path_parameters(ARTIFACT),
        _header("Tenure-Receipt", "the receipt of the claim", required=True),
        _header("Content-Digest", "RFC 9530, `sha-256=:…:`; a body with another digest is refused"),
        _header("Tenure-Runner", "the word of a runner, for its transcript"),
        parameter("traceparent"),
    ]
    responses = {
        "200": {"description": "stored", "content": _OUTCOME},
        "404": {"description": "no such task", "content": _BOTH},
        "409": {"description": "no longer the holder", "content": _BOTH},
        **problems(*_WRITE),
    }
    more = {"parameters": parameters, "requestBody": _body({"application/octet-stream": _BINARY})}
    summary = "Store the body as a named artifact of the claim."
    return _operation("put_artifact", summary, "tasks", "agent", **more, responses=responses)


def _get_artifact() -> Operation:
    generation = _query("generation", {"type": "integer", "minimum": 0, "maximum": 999_999_999})
    headers = [_header("Range", "`bytes=FROM-TO`, one range"), _header("If-None-Match", "the ETag of a copy")]
    responses = {
        "200": {"description": "the whole artifact", "content": _BYTES},
        "206": {"description": "the requested range", "content": _BYTES},
        "304": {"description": "not modified"},
        "416": {"description": "invalid range", "content": {PROBLEM: {"schema": ref("Problem")}}},
        **problems(*_ANY),
    }
    more = {"parameters": [*path_parameters(ARTIFACT), generation, *headers], "responses": responses}
    return _operation("get_artifact", "Download an artifact, or a Range of it.", "tasks", "viewer", **more)


def _delivery() -> Operation:
    """The sender defines the body; signature headers replace the key."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature", "x-github-delivery", "x-hub-signature-256")
    headers = [{"name": name, "in": "header", "schema": _TEXT} for name in names]
    answers = {
        "200": "accepted before, or filtered out",
        "201": "accepted",
        "409": "the trigger is paused",
        "422": "the trigger's template cannot create its tasks",
    }
    outcomes = {status: {"description": meaning, "content": _OUTCOME} for status, meaning in answers.items()}
    more = {
        "parameters": [*path_parameters(DELIVERIES), *headers],
        "requestBody": _body({JSON: {"schema": _OBJECT}}),
        "responses": {**outcomes, **problems(*_WRITE)},
    }
    return _operation("take_delivery", "Deliver a signed webhook to a trigger.", "triggers", None, **more)


def _recover() -> Operation:
    body = _body({JSON: {"schema": ref("RecoverBody")}}, required=False)
    summary = "Settle all due tasks now, in one project or all."
    made = _view("coordinator_recover", summary, ref("RecoveredView"), "admin", requestBody=body)
    return {**made, "responses": {**made["responses"], **problems(415)}}


def _logs() -> Operation:
    parameters = [
        _query("level", {"type": "string", "enum": list(LEVELS), "default": "info"}),
        _query("limit", {"type": "integer", "minimum": 0, "maximum": MOST_LOGGED, "default": 100}),
        _query("since", ASKED),
    ]
    items = {"type": "array", "items": {"anyOf": [ref("EventView"), ref("NoteView")]}}
    summary = "The coordinator's log: events that time caused."
    return _view("coordinator_logs", summary, page(items, {"type": "null"}), "admin", parameters=parameters)


def _login() -> Operation:
    body = _body({JSON: {"schema": ref("LoginBody")}})
    summary = "Exchange a key for the dashboard's cookie."
    return _open("login", summary, ref("PrincipalView"), 400, 401, 403, 413, 429, 503, requestBody=body)


def _readiness() -> Operation:
    """It says more where writes fail."""
    told = _fields(status={"const": "ready"})
    told["properties"] |= {"database": {"const": READ_ONLY}, "reason": _TEXT}
    return _open("readiness", "The store responds in time.", told, 503)


def _coordinator_health() -> Operation:
    made = _open("coordinator_health", "The store has a leader.", ref("CoordinatorHealth"), 503)
    content = {JSON: {"schema": ref("CoordinatorHealth")}, PROBLEM: {"schema": ref("Problem")}}
    made["responses"]["503"] = {"description": "no process leads, or the store is unavailable", "content": content}
    return made


def _metrics() -> Operation:
    page = {"200": {"description": "the Prometheus text format", "content": {"text/plain": {"schema": _TEXT}}}}
    responses = {**page, **problems(401, 403, 429, 500, 503)}
    return _operation("metrics", "Metrics for Prometheus.", "server", "viewer", responses=responses)

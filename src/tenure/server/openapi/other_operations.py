"""The operations of endpoints outside of the route table."""

from __future__ import annotations

from typing import Any

from tenure.client.routes import ARTIFACT, BATCH, DELIVERIES, NEWS, PREFIX, PREVIEW
from tenure.core import inputs
from tenure.core.events import LEVELS
from tenure.engine.reads.coordinator_status import MOST_LOGGED
from tenure.server.openapi import examples
from tenure.server.openapi.bounds import Schema
from tenure.server.openapi.operations import JSON, PROBLEM, Operation, page, parameter, path_parameters, problems
from tenure.server.openapi.schemas import ASKED, ref

_ANY = (400, 401, 403, 404, 413, 429, 500, 503)


def paths() -> dict[str, dict[str, Operation]]:
    """Path → method → operation."""
    return {
        PREFIX + BATCH: {"post": _batch("batch", "Run commands in one transaction, with one outcome each.")},
        PREFIX + PREVIEW: {"post": _batch("preview", "The outcomes that a batch would have now; nothing is written.")},
        PREFIX + NEWS: {"get": _news()},
        PREFIX + ARTIFACT: {"put": _put_artifact(), "get": _get_artifact()},
        PREFIX + "/coordinator/status": {
            "get": _view("coordinator_status", "The leader and its cycles.", ref("CoordinatorView"))
        },
        PREFIX + "/coordinator/recover": {"post": _recover()},
        PREFIX + "/coordinator/logs": {"get": _logs()},
        PREFIX + DELIVERIES: {"post": _delivery()},
        "/health": {
            "get": _probe(
                "health", "The process responds.", _object(status={"const": "ok"}, version={"type": "string"})
            )
        },
        "/ready": {"get": _probe("readiness", "The store responds in time.", _object(status={"const": "ready"}), 503)},
        "/health/coordinator": {"get": _coordinator_health()},
        "/metrics": {"get": _metrics()},
        PREFIX + "/me": {"get": _view("me", "The current principal.", ref("PrincipalView"))},
        "/login": {"post": _login()},
        "/logout": {"post": _probe("logout", "End the dashboard session.", {"type": "object"}, 400, 403)},
        "/openapi.json": {"get": _probe("openapi", "This document.", {"type": "object"})},
    }


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _operation(id: str, summary: str, theme: str, role: str | None, **more: Any) -> Operation:
    """`role` None: needs no authentication."""
    made = {"operationId": id, "summary": summary, "tags": [theme], "x-tenure-role": role, **more}
    return made if role is not None else {**made, "security": []}


def _view(id: str, summary: str, schema: Schema, role: str = "viewer", **more: Any) -> Operation:
    responses = {"200": {"description": "the view", "content": {JSON: {"schema": schema}}}, **problems(*_ANY)}
    return _operation(id, summary, "server", role, responses=responses, **more)


def _batch(id: str, summary: str) -> Operation:
    """Each command needs its own role, and is refused in its place."""
    body = _object(commands={"type": "array", "items": ref("AnyCommand"), "maxItems": inputs.MOST_COMMANDS})
    body["properties"]["request_ids"] = {
        "type": ["array", "null"], "items": {"type": ["string", "null"], "maxLength": inputs.LONGEST_NAME},
        "description": "the Idempotency-Key of each command, or null",
    }  # fmt: skip
    body["additionalProperties"] = False
    answer = _object(outcomes={"type": "array", "items": {"anyOf": [ref("Outcome"), ref("Problem")]}})
    content = {"schema": body, "example": examples.BATCH}
    return _operation(
        id, summary, "projects", "viewer",
        parameters=[*path_parameters(BATCH), parameter("traceparent")],
        requestBody={"required": True, "content": {JSON: content}},
        responses={
            "200": {"description": "one outcome for each command, in order", "content": {JSON: {"schema": answer}}},
            **problems(*_ANY),
        },
    )  # fmt: skip


def _news() -> Operation:
    mark = {"name": "mark", "in": "query", "schema": {"type": "number", "minimum": 0, "default": 0}}
    made = _view(
        "news", "Wait until the log has events beyond `mark`.", _object(mark={"type": "integer"}),
        parameters=[*path_parameters(NEWS), mark, parameter("wait")],
    )  # fmt: skip
    return {**made, "tags": ["log"]}


_BYTES: Schema = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def _header(name: str, description: str, *, required: bool = False) -> Schema:
    schema = {"type": "string"}
    return {"name": name, "in": "header", "required": required, "description": description, "schema": schema}


def _put_artifact() -> Operation:
    """A name may contain slashes, unescaped."""
    outcome = {JSON: {"schema": ref("Outcome")}}
    refused = {**outcome, PROBLEM: {"schema": ref("Problem")}}
    return _operation(
        "put_artifact", "Store the body as a named artifact of the claim.", "tasks", "agent",
        parameters=[
            *path_parameters(ARTIFACT),
            _header("Tenure-Receipt", "the receipt of the claim", required=True),
            _header("Content-Digest", "RFC 9530, `sha-256=:…:`; a body with another digest is refused"),
            parameter("traceparent"),
        ],
        requestBody={"required": True, "content": _BYTES},
        responses={
            "200": {"description": "stored", "content": outcome},
            "404": {"description": "no such task", "content": refused},
            "409": {"description": "no longer the holder", "content": refused},
            **problems(400, 401, 403, 413, 429, 500, 503),
        },
    )  # fmt: skip


def _get_artifact() -> Operation:
    number = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
    generation = {"name": "generation", "in": "query", "schema": number}
    return _operation(
        "get_artifact", "Download an artifact, or a Range of it.", "tasks", "viewer",
        parameters=[
            *path_parameters(ARTIFACT), generation,
            _header("Range", "`bytes=FROM-TO`, one range"), _header("If-None-Match", "the ETag of a copy"),
        ],
        responses={
            "200": {"description": "the whole artifact", "content": _ANY_BYTES},
            "206": {"description": "the requested range", "content": _ANY_BYTES},
            "304": {"description": "not modified"},
            "416": {"description": "invalid range", "content": {PROBLEM: {"schema": ref("Problem")}}},
            **problems(*_ANY),
        },
    )  # fmt: skip


_ANY_BYTES: Schema = {"*/*": {"schema": {"type": "string", "format": "binary"}}}


def _delivery() -> Operation:
    """The sender defines the body; signature headers replace the key."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature", "x-github-delivery", "x-hub-signature-256")
    headers = [{"name": name, "in": "header", "schema": {"type": "string"}} for name in names]
    outcome = {JSON: {"schema": ref("Outcome")}}
    answers = {
        "200": {"description": "accepted before, or filtered out", "content": outcome},
        "201": {"description": "accepted", "content": outcome},
        "409": {"description": "the trigger is paused", "content": outcome},
        "422": {"description": "the trigger's template cannot create its tasks", "content": outcome},
    }
    return _operation(
        "take_delivery", "Deliver a signed webhook to a trigger.", "triggers", None,
        parameters=[*path_parameters(DELIVERIES), *headers],
        requestBody={"required": True, "content": {JSON: {"schema": {"type": "object"}}}},
        responses={**answers, **problems(400, 401, 403, 413, 429, 500, 503)},
    )  # fmt: skip


def _recover() -> Operation:
    return _view(
        "coordinator_recover", "Settle all due tasks now, in one project or all.", ref("RecoveredView"),
        "admin", requestBody={"required": False, "content": {JSON: {"schema": ref("RecoverBody")}}},
    )  # fmt: skip


def _logs() -> Operation:
    asked = {
        "level": {"type": "string", "enum": list(LEVELS), "default": "info"},
        "limit": {"type": "integer", "minimum": 0, "maximum": MOST_LOGGED, "default": 100},
        "since": ASKED,
    }
    items = {"type": "array", "items": {"anyOf": [ref("EventView"), ref("NoteView")]}}
    return _view(
        "coordinator_logs", "The coordinator's log: events that time caused.", page(items, {"type": "null"}), "admin",
        parameters=[{"name": name, "in": "query", "schema": schema} for name, schema in asked.items()],
    )  # fmt: skip


def _probe(id: str, summary: str, schema: Schema, *statuses: int) -> Operation:
    responses = {"200": {"description": "ok", "content": {JSON: {"schema": schema}}}, **problems(*statuses, 500)}
    return _operation(id, summary, "server", None, responses=responses)


def _login() -> Operation:
    made = _probe(
        "login", "Exchange a key for the dashboard's cookie.", ref("PrincipalView"), 400, 401, 403, 413, 429, 503
    )
    return {**made, "requestBody": {"required": True, "content": {JSON: {"schema": ref("LoginBody")}}}}


def _coordinator_health() -> Operation:
    made = _probe("coordinator_health", "The store has a leader.", ref("CoordinatorHealth"), 503)
    content = {JSON: {"schema": ref("CoordinatorHealth")}, PROBLEM: {"schema": ref("Problem")}}
    made["responses"]["503"] = {"description": "no process leads, or the store is unavailable", "content": content}
    return made


def _metrics() -> Operation:
    text = {"text/plain": {"schema": {"type": "string"}}}
    return _operation(
        "metrics", "Metrics for Prometheus.", "server", "viewer",
        responses={
            "200": {"description": "the Prometheus text format", "content": text}, **problems(401, 403, 429, 500, 503)
        },
    )  # fmt: skip

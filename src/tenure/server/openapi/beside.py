"""The operations beside the table, which have shapes of their own."""

from __future__ import annotations

from typing import Any

from tenure.client.routes import ARTIFACT, BATCH, DELIVERIES, NEWS, PREFIX, PREVIEW
from tenure.core import inputs, roles
from tenure.core.events import LEVELS
from tenure.engine.reads.coordinator_status import MOST_LOGGED
from tenure.server.openapi import examples
from tenure.server.openapi.bounds import Schema
from tenure.server.openapi.operations import JSON, PROBLEM, Operation, page, parameter, path_parameters, problems
from tenure.server.openapi.schemas import ASKED, ref

_ANY = (400, 401, 403, 404, 413, 429, 500, 503)


_SOME = {"type": ["string", "null"]}
ME: Schema = {
    "type": "object",
    "properties": {
        "role": {"type": "string", "enum": list(roles.ROLES)}, "user": _SOME, "agent": _SOME,
        "projects": {"type": "array", "items": {"type": "string"}, "description": "where it may act; none: everywhere"},
        "key": {**_SOME, "description": "by which it signed in"},
    },
    "required": ["role", "user", "agent", "projects", "key"],
}  # fmt: skip


def paths() -> dict[str, dict[str, Operation]]:
    """Path → method → operation."""
    return {
        PREFIX + BATCH: {"post": _batch("batch", "Many commands in one transaction, one answer each.")},
        PREFIX + PREVIEW: {"post": _batch("preview", "What a batch would answer now; nothing is written.")},
        PREFIX + NEWS: {"get": _news()},
        PREFIX + ARTIFACT: {"put": _put_artifact(), "get": _get_artifact()},
        PREFIX + "/coordinator/status": {
            "get": _look("coordinator_status", "Who leads, and how it gets on.", ref("CoordinatorView"))
        },
        PREFIX + "/coordinator/recover": {"post": _recover()},
        PREFIX + "/coordinator/logs": {"get": _logs()},
        PREFIX + DELIVERIES: {"post": _delivery()},
        "/health": {
            "get": _probe("health", "The process answers.", _object(status={"const": "ok"}, version={"type": "string"}))
        },
        "/ready": {"get": _probe("readiness", "The store answers in time.", _object(status={"const": "ready"}), 503)},
        "/health/coordinator": {"get": _coordinator_health()},
        "/metrics": {"get": _metrics()},
        PREFIX + "/me": {"get": _look("me", "Who one is here, as the server sees it.", ME)},
        "/login": {"post": _login()},
        "/logout": {"post": _probe("logout", "The browser shall forget the key.", {"type": "object"}, 400, 403)},
        "/openapi.json": {"get": _probe("openapi", "This document.", {"type": "object"})},
    }


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _made(id: str, summary: str, theme: str, role: str | None, **more: Any) -> Operation:
    """`role` None: nobody has to be signed in."""
    made = {"operationId": id, "summary": summary, "tags": [theme], "x-tenure-role": role, **more}
    return made if role is not None else {**made, "security": []}


def _look(id: str, summary: str, schema: Schema, role: str = "viewer", **more: Any) -> Operation:
    told = {"200": {"description": "what is there", "content": {JSON: {"schema": schema}}}, **problems(*_ANY)}
    return _made(id, summary, "server", role, responses=told, **more)


def _batch(id: str, summary: str) -> Operation:
    """Each command in it needs the role of its own, and is refused in its place."""
    body = _object(commands={"type": "array", "items": ref("AnyCommand"), "maxItems": inputs.MOST_COMMANDS})
    body["properties"]["request_ids"] = {
        "type": ["array", "null"], "items": {"type": ["string", "null"], "maxLength": inputs.LONGEST_NAME},
        "description": "the Idempotency-Key of each command, or none at all",
    }  # fmt: skip
    body["additionalProperties"] = False
    answer = _object(outcomes={"type": "array", "items": {"anyOf": [ref("Outcome"), ref("Problem")]}})
    content = {"schema": body, "example": examples.BATCH}
    return _made(
        id, summary, "projects", "viewer",
        parameters=[*path_parameters(BATCH), parameter("traceparent")],
        requestBody={"required": True, "content": {JSON: content}},
        responses={
            "200": {"description": "one answer for each, in their order", "content": {JSON: {"schema": answer}}},
            **problems(*_ANY),
        },
    )  # fmt: skip


def _news() -> Operation:
    mark = {"name": "mark", "in": "query", "schema": {"type": "number", "minimum": 0, "default": 0}}
    made = _look(
        "news", "Waits until the log has grown beyond `mark`.", _object(mark={"type": "integer"}),
        parameters=[*path_parameters(NEWS), mark, parameter("wait")],
    )  # fmt: skip
    return {**made, "tags": ["log"]}


_BYTES: Schema = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def _header(name: str, description: str, *, required: bool = False) -> Schema:
    schema = {"type": "string"}
    return {"name": name, "in": "header", "required": required, "description": description, "schema": schema}


def _put_artifact() -> Operation:
    """The slashes of a name may stand as they are."""
    outcome = {JSON: {"schema": ref("Outcome")}}
    refused = {**outcome, PROBLEM: {"schema": ref("Problem")}}
    return _made(
        "put_artifact", "Keep the body as a named output of the claim, and hand it on.", "tasks", "agent",
        parameters=[
            *path_parameters(ARTIFACT),
            _header("Tenure-Receipt", "what the claim gave", required=True),
            _header("Content-Digest", "RFC 9530, `sha-256=:…:`; what has another digest is refused"),
            parameter("traceparent"),
        ],
        requestBody={"required": True, "content": _BYTES},
        responses={
            "200": {"description": "it is kept", "content": outcome},
            "404": {"description": "no such task", "content": refused},
            "409": {"description": "no longer the holder", "content": refused},
            **problems(400, 401, 403, 413, 429, 500, 503),
        },
    )  # fmt: skip


def _get_artifact() -> Operation:
    number = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
    generation = {"name": "generation", "in": "query", "schema": number}
    return _made(
        "get_artifact", "The bytes of an artifact, or a Range of them: for saving, not for showing.", "tasks", "viewer",
        parameters=[
            *path_parameters(ARTIFACT), generation,
            _header("Range", "`bytes=FROM-TO`, one part"), _header("If-None-Match", "the ETag of what one has"),
        ],
        responses={
            "200": {"description": "all of it", "content": _ANY_BYTES},
            "206": {"description": "the part that was asked for", "content": _ANY_BYTES},
            "304": {"description": "it is the same"},
            "416": {"description": "it has no such bytes", "content": {PROBLEM: {"schema": ref("Problem")}}},
            **problems(*_ANY),
        },
    )  # fmt: skip


_ANY_BYTES: Schema = {"*/*": {"schema": {"type": "string", "format": "binary"}}}


def _delivery() -> Operation:
    """The body is the sender's own; the headers of its signature take the place of a key."""
    names = ("webhook-id", "webhook-timestamp", "webhook-signature", "x-github-delivery", "x-hub-signature-256")
    headers = [{"name": name, "in": "header", "schema": {"type": "string"}} for name in names]
    outcome = {JSON: {"schema": ref("Outcome")}}
    answers = {
        "200": {"description": "taken before, or it does not fit", "content": outcome},
        "201": {"description": "taken", "content": outcome},
        "409": {"description": "the trigger is paused", "content": outcome},
        "422": {"description": "what it asks for cannot be made", "content": outcome},
    }
    return _made(
        "take_delivery", "A signed delivery for a webhook, as its sender sends it.", "triggers", None,
        parameters=[*path_parameters(DELIVERIES), *headers],
        requestBody={"required": True, "content": {JSON: {"schema": {"type": "object"}}}},
        responses={**answers, **problems(400, 401, 403, 413, 429, 500, 503)},
    )  # fmt: skip


def _recover() -> Operation:
    body = {"type": "object", "properties": {"project": {"type": ["string", "null"]}}, "additionalProperties": False}
    return _look(
        "coordinator_recover", "Settle everything that is due now, in one project or all.", ref("RecoveredView"),
        "admin", requestBody={"required": False, "content": {JSON: {"schema": body}}},
    )  # fmt: skip


def _logs() -> Operation:
    asked = {
        "level": {"type": "string", "enum": list(LEVELS), "default": "info"},
        "limit": {"type": "integer", "minimum": 0, "maximum": MOST_LOGGED, "default": 100},
        "since": ASKED,
    }
    items = {"type": "array", "items": {"anyOf": [ref("EventView"), ref("NoteView")]}}
    return _look(
        "coordinator_logs", "What time has brought, in all projects.", page(items, {"type": "null"}), "admin",
        parameters=[{"name": name, "in": "query", "schema": schema} for name, schema in asked.items()],
    )  # fmt: skip


def _probe(id: str, summary: str, schema: Schema, *away: int) -> Operation:
    told = {"200": {"description": "so it is", "content": {JSON: {"schema": schema}}}, **problems(*away, 500)}
    return _made(id, summary, "server", None, responses=told)


def _login() -> Operation:
    body = {**_object(key={"type": "string"}), "additionalProperties": False}
    made = _probe("login", "Take a key for the dashboard's cookie.", ME, 400, 401, 403, 413, 429, 503)
    return {**made, "requestBody": {"required": True, "content": {JSON: {"schema": body}}}}


def _coordinator_health() -> Operation:
    made = _probe("coordinator_health", "Somebody leads, whichever server it is.", ref("CoordinatorHealth"), 503)
    content = {JSON: {"schema": ref("CoordinatorHealth")}, PROBLEM: {"schema": ref("Problem")}}
    made["responses"]["503"] = {"description": "nobody leads, or the store is away", "content": content}
    return made


def _metrics() -> Operation:
    text = {"text/plain": {"schema": {"type": "string"}}}
    return _made(
        "metrics", "For Prometheus.", "server", "viewer",
        responses={
            "200": {"description": "as Prometheus reads it", "content": text}, **problems(401, 403, 429, 500, 503)
        },
    )  # fmt: skip

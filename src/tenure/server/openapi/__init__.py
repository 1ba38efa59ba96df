"""The OpenAPI 3.1 document of the API, generated from the table of routes and the types on the wire.

`schemas.py` has the components, `operations.py` one operation for each route, `other_operations.py` those of endpoints
outside of the table, `bounds.py` the bounds of values, `examples.py` a body for each of the main verbs. A route in
`client/routes.py` is in the document automatically; an endpoint that is added to the app by hand needs a line in
`other_operations.py`, and a test compares the two.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tenure import __version__
from tenure.client.routes import COMMANDS, PREFIX, QUERIES
from tenure.server.openapi import other_operations
from tenure.server.openapi.operations import THEMES, in_paths, operation, responses
from tenure.server.openapi.schemas import components

ABOUT = """\
Tenure coordinates agents that share tasks: who works on what, and whose result counts.

Every write returns an *outcome*, with an HTTP status for its kind: 2xx done, 409 refused, 404 no such task. Errors are
problem details (RFC 9457). Lists are pages: `items`, and `next`, the value of `after` for the next page, which is
opaque. Instants are RFC 3339 in UTC; an instant that a program acts on comes with a duration in seconds. A view has an
ETag: sent back in `If-None-Match` the answer is 304 while nothing has changed; that of a task in `If-Match` guards an
edit, which is refused with 412 if the task has changed since. Bodies are JSON. Long responses are compressed for
clients that accept gzip.

A granted claim has a *receipt*. It is the only proof of the claim: every write of a holder sends it.

Requests carry `Authorization: Bearer KEY`. A server on a loopback address also accepts the token of its start, which is
in a file of the user who started it; `tenure serve` with `serve.auth = "open"` needs neither. `Tenure-Agent`,
`Tenure-Session` and `Tenure-User` then name the caller. `Tenure-Role` lowers the caller's role and never raises it.
The credential decides the tenant; `Tenure-Tenant`, or a path below `/t/NAME`, names it where somebody has several. A
tenant that is not the caller's is not found, whether it exists or not.
`x-tenure-role` is the lowest role that an operation needs: viewer, agent, member, admin, owner; `nobody` may use it
over HTTP where only a process on the store's own host may. Agents also need the capability in `x-tenure-capability`.
"""

IF_MATCH = '^((W/)?"[0-9]{1,18}(-[0-9a-f]{1,32})?"|\\*)$'
PARAMETERS: dict[str, Any] = {
    "Idempotency-Key": {
        "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        "description": "makes a repeat safe: the same key and content return the first outcome",
    },
    "If-Match": {
        "name": "If-Match", "in": "header", "schema": {"type": "string", "pattern": IF_MATCH},
        "description": "the ETag of the task, or its version in quotes: refused if the task has changed since",
    },
    "If-None-Match": {
        "name": "If-None-Match", "in": "header", "schema": {"type": "string"},
        "description": "the ETag of a copy: 304 without a body if it is still the same",
    },
    "stale": {
        "name": "stale", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 1},
        "description": "1: any server of the deployment may answer, with data whose age is in Tenure-Age",
    },
    "traceparent": {
        "name": "traceparent", "in": "header", "schema": {"type": "string"}, "description": "W3C trace context",
    },
    "wait": {
        "name": "wait", "in": "query", "schema": {"type": "number", "minimum": 0, "maximum": 60, "default": 0},
        "description": "seconds to wait for a task or event",
    },
}  # fmt: skip
_TEXT = {"type": "string"}
HEADERS: dict[str, Any] = {
    "ETag": {"description": "changes with the view; that of a task begins with its version", "schema": _TEXT},
    "Location": {"description": "the path of the created row, where it can be read", "schema": _TEXT},
    "Retry-After": {"description": "seconds", "schema": {"type": "integer"}},
    "Tenure-Home": {"description": "the server of the tenant's region, where this one knows it", "schema": _TEXT},
    "Tenure-Age": {
        "description": "with `stale=1`: the age of the data in seconds, at most; `unknown` before the first replay",
        "schema": _TEXT,
    },
}
SECURITY: dict[str, Any] = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "an API key of this server, or a JWT of the configured issuer",
    }
}


@cache
def document() -> dict[str, Any]:
    """The whole document. The same object each time: do not modify it."""
    paths: dict[str, dict[str, Any]] = {}
    for route in (*QUERIES, *COMMANDS):
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = operation(route)
    for path, operations in other_operations.paths().items():
        paths.setdefault(path, {}).update(operations)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "tenure", "version": __version__, "description": ABOUT,
            "contact": {"name": "tenure"},
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "this server"}],
        "tags": [{"name": name, "description": meaning} for name, meaning in THEMES.items()],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": components(), "responses": responses(), "parameters": in_paths() | PARAMETERS,
            "headers": HEADERS, "securitySchemes": SECURITY,
        },
    }  # fmt: skip

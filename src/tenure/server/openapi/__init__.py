"""What the API says of itself: OpenAPI 3.1, made from the table of routes and the types that go over the wire.

`schemas.py` has the components, `operations.py` one operation for each route, `beside.py` those beside the table,
`bounds.py` what values may be, `examples.py` a body for each of the main verbs. A route that is added to
`client/routes.py` is in the document by itself; one that is added to the app by hand needs a line in `beside.py`, and
a test that compares the two says so.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tenure import __version__
from tenure.client.routes import COMMANDS, PREFIX, QUERIES
from tenure.server.openapi import beside
from tenure.server.openapi.operations import in_paths, operation, responses
from tenure.server.openapi.schemas import components

ABOUT = """\
Tenure coordinates agents that share one body of work: who works on what, and whose result counts.

Every write is answered by an *outcome*, with the status of what it means: 2xx it was done, 409 it was refused, 404
there is no such task. Errors are problem details (RFC 9457). Lists are pages: `items`, and `next`, which is `after` of
the next one. Instants are RFC 3339 in UTC; beside one that a program acts on stands a duration in seconds.

A granted claim carries a *receipt*. It is the only proof of the claim: every write of a holder presents it.

On a loopback address a server may be open: then nobody needs a key, and `Tenure-Agent`, `Tenure-Session` and
`Tenure-User` say who speaks. `Tenure-Role` lowers the role of whoever asks, and never lifts it.
`x-tenure-role` is the least role that an operation needs: viewer, agent, member, admin, owner.
"""

PARAMETERS: dict[str, Any] = {
    "Idempotency-Key": {
        "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "minLength": 1, "maxLength": 255},
        "description": "makes a repeat harmless: the same key and content get the same answer, once done",
    },
    "If-Match": {
        "name": "If-Match", "in": "header", "schema": {"type": "string", "pattern": '^("[0-9]{1,18}"|\\*)$'},
        "description": "the ETag that the task was read with: refused if it has changed since",
    },
    "traceparent": {
        "name": "traceparent", "in": "header", "schema": {"type": "string"}, "description": "W3C trace context",
    },
    "wait": {
        "name": "wait", "in": "query", "schema": {"type": "number", "minimum": 0, "maximum": 60, "default": 0},
        "description": "seconds to stay for something to come",
    },
}  # fmt: skip
HEADERS: dict[str, Any] = {
    "ETag": {"description": "the task's version", "schema": {"type": "string"}},
    "Retry-After": {"description": "seconds", "schema": {"type": "integer"}},
}
SECURITY: dict[str, Any] = {
    "key": {"type": "http", "scheme": "bearer", "description": "an API key of this server, or a JWT of its issuer"},
}


@cache
def document() -> dict[str, Any]:
    """The whole document. The same object each time: not to be changed."""
    paths: dict[str, dict[str, Any]] = {}
    for route in (*QUERIES, *COMMANDS):
        paths.setdefault(PREFIX + route.path, {})[route.method.lower()] = operation(route)
    for path, operations in beside.paths().items():
        paths.setdefault(path, {}).update(operations)
    return {
        "openapi": "3.1.0",
        "info": {"title": "tenure", "version": __version__, "description": ABOUT, "license": {"name": "Apache-2.0"}},
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": components(), "responses": responses(), "parameters": in_paths() | PARAMETERS,
            "headers": HEADERS, "securitySchemes": SECURITY,
        },
    }  # fmt: skip

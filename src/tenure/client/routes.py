"""The HTTP API as one table: each route with the command or query that it carries.

Server, OpenAPI page and HTTP client are derived from it. Words in braces are fields of the command or query; the other
fields are the JSON body of a command, and of a query by POST, or the query string of a query by GET. `{task}` of a
holder's verb must agree with the receipt, which names the task too.
"""

from __future__ import annotations

from typing import NamedTuple

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.commands.command import PROJECT, TASK

PREFIX = "/api/v1"
APART = frozenset({"project", "request_id", "trace_id"})  # of a command: in the path and the headers, not in the body
# Pairs, which a query string carries as JSON.
AS_JSON = {"priority_range": "from and to, as in `[0, 20]`"}
# Other names that a query string may use for a field.
ALIASES: dict[type[q.Query], dict[str, str]] = {q.Tasks: {"status": "state", "sort": "order"}}


class Route(NamedTuple):
    method: str
    path: str  # below PREFIX
    asks: type[c.Command] | type[q.Query]


P, T = PROJECT, TASK

COMMANDS = tuple(Route(d.method, d.path, kind) for kind in c.ALL if (d := kind.declaration).path)
QUERIES = tuple(Route(d.method, d.path, kind) for kind in q.ALL if (d := kind.declaration).path)

# Not in the table, because of their shapes:
#   POST  /projects/{project}/batch     {"commands": [{"command": "submit", …}, …]} → {"outcomes": […]}
#   POST  /projects/{project}/preview   the same, decided but not written
#   GET   /projects/{project}/events    with Accept: text/event-stream it is live, from Last-Event-ID or ?after=
#   POST  /projects/{project}/triggers/{trigger}/deliveries   a webhook's body unchanged; its signature is the sign-in
#   GET   /projects/{project}/news      ?mark=N&wait=SECONDS: {"mark": M}, as soon as M > N, or after the wait
#   PUT   /projects/{project}/tasks/{task}/artifacts/{name}   the bytes, with Tenure-Receipt; GET gives them, or a Range
#   GET   /projects/{project}/tasks/{task}/transcript   ?generation=N&after=BYTES: the lines of an agent of `tenure run`
#   POST  /projects/{project}/plan-files    {"text": …, "path": …} → {"plans": […], "findings": […]}; creates nothing
#   GET   /coordinator/status, POST /coordinator/recover, GET /coordinator/logs
#   GET   /health, /health/coordinator, /ready, /metrics, /openapi.json
BATCH = P + "/batch"
PREVIEW = P + "/preview"
NEWS = P + "/news"
ARTIFACT = T + "/artifacts/{name}"  # the rest of the path: names may have slashes
TRANSCRIPT = T + "/transcript"
PLAN_FILES = P + "/plan-files"
DELIVERIES = P + "/triggers/{trigger}/deliveries"

ROUTES = {route.asks: route for route in (*COMMANDS, *QUERIES)}


OF_KIND = {"ok": 200, "nothing": 200, "missing": 404, "held": 409, "stale": 409, "denied": 409, "invalid": 422}
OF_OUTCOME = {"CREATED": 201, "VALIDATING": 202, "VERSION_CONFLICT": 409}  # other than their kind's
CONDITION_FAILED = 412  # VERSION_CONFLICT where the version came in If-Match

OF_ERROR = {
    "INVALID_INPUT": 400,
    "CYCLE": 400,
    "REQUEST_ID_REUSED": 409,
    "TOO_LARGE": 413,
    "UNSUPPORTED_TYPE": 415,
    "NOT_SIGNED_IN": 401,
    "AUTH_UNAVAILABLE": 503,
    "SECRETS_OFF": 409,
    "SECRET_UNREADABLE": 409,
    "NOT_ALLOWED": 403,
    "NOT_FOUND": 404,
    "HISTORY_PRUNED": 404,
    "NO_ROUTE": 404,
    "NO_METHOD": 405,
    "AMBIGUOUS": 409,
    "LIMIT_REACHED": 409,
    "COPY_REFUSED": 409,
    "MOVE_REFUSED": 409,
    "NOT_HOME": 421,
    "TENANT_MOVING": 503,
    "RATE_LIMITED": 429,
    "ANSWER_REFUSED": 503,  # which no server sends: it is of clients
    "OVERLOADED": 503,
    "STORE_UNAVAILABLE": 503,
    "NO_STORE": 503,
    "STORE_ERROR": 503,
    "CLOCK_JUMP": 503,
    "CONFLICT": 503,
    "OUTCOME_UNKNOWN": 503,
    "SCHEMA_MISMATCH": 503,
    "STORE_CORRUPT": 503,
    "UNSAFE_ROLE": 503,
    "ARTIFACT_CORRUPT": 503,
    "UNDECIDED": 503,
    "SINK_UNAVAILABLE": 503,
    "BUG": 500,
}

"""The HTTP API as one table: each route with the command or query that it carries.

Server, OpenAPI page and remote client are made from it. Words in braces are fields of the command or query; the
other fields are the JSON body of a command, or the query string of a look. `{task}` of a holder's verb, which
a receipt names already, must agree with the receipt.
"""

from __future__ import annotations

from typing import NamedTuple

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.declaration import PROJECT, TASK

PREFIX = "/api/v1"
APART = frozenset({"project", "request_id", "trace_id"})  # of a command: in the path and the headers, not in the body
# Pairs, which a query string carries as JSON.
AS_JSON = {"after": "`next` of the page before", "priority_range": "from and to, as in `[0, 20]`"}


class Route(NamedTuple):
    method: str
    path: str  # below PREFIX
    asks: type[c.Command] | type[q.Query]


P, T = PROJECT, TASK

COMMANDS = tuple(Route(d.method, d.path, kind) for kind in c.ALL if (d := kind.declaration).path)
LOOKS = tuple(Route(d.method, d.path, kind) for kind in q.ALL if (d := kind.declaration).path)

# Beside the table, with shapes of their own:
#   POST  /projects/{project}/batch     {"commands": [{"command": "submit", …}, …]} → {"outcomes": […]}
#   POST  /projects/{project}/preview   the same, decided and never written
#   GET   /projects/{project}/events    with Accept: text/event-stream it is live, from Last-Event-ID or ?after=
#   POST  /projects/{project}/triggers/{trigger}/deliveries   a webhook's body as it came; its signature signs it in
#   GET   /projects/{project}/news      ?mark=N&wait=SECONDS: {"mark": M}, as soon as M > N, or when the time is over
#   PUT   /projects/{project}/tasks/{task}/artifacts/{name}   the bytes, with Tenure-Receipt; GET gives them, or a Range
#   GET   /coordinator/status, POST /coordinator/recover, GET /coordinator/logs
#   GET   /health, /health/coordinator, /ready, /metrics, /openapi.json
BATCH = P + "/batch"
PREVIEW = P + "/preview"
NEWS = P + "/news"
ARTIFACT = T + "/artifacts/{name}"  # the rest of the path: names may have slashes
DELIVERIES = P + "/triggers/{trigger}/deliveries"

_OF = {route.asks: route for route in (*COMMANDS, *LOOKS)}


def route_of(asks: type[c.Command] | type[q.Query]) -> Route:
    """The route that carries commands or queries of this kind."""
    return _OF[asks]

"""The HTTP API as one table: each route with the command or query that it carries.

Server, OpenAPI page and remote client are made from it. Words in braces are fields of the command or query; the
other fields are the JSON body of a command, or the query string of a look. `{task}` of a holder's verb, which
a receipt names already, must agree with the receipt.
"""

from __future__ import annotations

from typing import NamedTuple

from tenure.core import commands as c
from tenure.core import queries as q

PREFIX = "/api/v1"
APART = frozenset({"project", "request_id", "trace_id"})  # of a command: in the path and the headers, not in the body
# Pairs, which a query string carries as JSON.
AS_JSON = {"after": "`next` of the page before", "priority_range": "from and to, as in `[0, 20]`"}


class Route(NamedTuple):
    method: str
    path: str  # below PREFIX
    asks: type[c.Command] | type[q.Query]


P = "/projects/{project}"
T = P + "/tasks/{task}"

LOOKS = (
    Route("GET", "/projects", q.Projects),
    Route("GET", P, q.Status),
    Route("GET", P + "/overview", q.Overview),
    Route("GET", P + "/tracks", q.Tracks),
    Route("GET", P + "/tasks", q.Tasks),
    Route("GET", T, q.Show),
    Route("GET", T + "/history", q.History),
    Route("GET", T + "/results", q.Results),
    Route("GET", T + "/why", q.Why),
    Route("GET", P + "/ready", q.Ready),
    Route("GET", P + "/next", q.Next),
    Route("GET", P + "/states", q.States),
    Route("GET", P + "/dags", q.Dags),
    Route("GET", P + "/dags/{dag}", q.Dag),
    Route("GET", P + "/plans", q.Plans),
    Route("GET", P + "/dead-letters", q.DeadLetters),
    Route("GET", P + "/agents", q.Agents),
    Route("GET", P + "/agents/{agent}/inbox", q.Inbox),
    Route("GET", P + "/messages", q.Messages),
    Route("GET", P + "/sessions", q.Sessions),
    Route("GET", P + "/sessions/{session}", q.Session),
    Route("GET", P + "/reservations", q.Reservations),
    Route("GET", P + "/usage", q.Spent),
    Route("GET", P + "/processes", q.Processes),
    Route("GET", P + "/events", q.Log),
    Route("GET", "/keys", q.Keys),
)

COMMANDS = (
    # The hot ones first. `claims` takes ?wait=SECONDS.
    Route("POST", P + "/claims", c.ClaimNext),
    Route("POST", T + "/submit", c.Submit),
    Route("POST", T + "/renew", c.Renew),
    Route("POST", T + "/claim", c.Claim),
    Route("POST", T + "/start", c.Start),
    Route("POST", T + "/progress", c.Progress),
    Route("POST", T + "/checkpoint", c.Checkpoint),
    Route("POST", T + "/usage", c.Usage),
    Route("POST", T + "/land", c.Land),
    Route("POST", T + "/fail", c.Fail),
    Route("POST", T + "/release", c.Release),
    Route("POST", T + "/ask", c.Ask),
    Route("POST", T + "/spawn", c.Spawn),
    Route("POST", T + "/wait", c.Wait),
    Route("PUT", P, c.DefineProject),
    Route("PUT", P + "/tracks/{code}", c.DefineTrack),
    Route("POST", P + "/stop", c.StopLine),
    Route("POST", P + "/go", c.StartLine),
    Route("POST", P + "/undo", c.Undo),
    Route("POST", P + "/tasks", c.Add),
    Route("POST", P + "/dags", c.Plan),
    Route("POST", P + "/publish", c.Publish),
    Route("PATCH", T, c.Edit),
    Route("POST", T + "/link", c.Link),
    Route("POST", T + "/unlink", c.Unlink),
    Route("POST", T + "/pause", c.Pause),
    Route("POST", T + "/resume", c.Resume),
    Route("POST", T + "/answer", c.Answer),
    Route("POST", T + "/cancel", c.Cancel),
    Route("POST", T + "/retry", c.Retry),
    Route("POST", T + "/reset", c.Reset),
    Route("POST", T + "/adopt", c.Adopt),
    Route("POST", T + "/archive", c.Archive),
    Route("POST", T + "/assign", c.Assign),
    Route("POST", T + "/reassign", c.Reassign),
    Route("POST", T + "/recover", c.Recover),
    Route("POST", T + "/abort", c.Abort),
    Route("POST", T + "/note", c.Note),
    Route("PUT", P + "/agents/{agent}", c.Register),
    Route("POST", P + "/agents/{agent}/heartbeat", c.Heartbeat),
    Route("POST", P + "/agents/{agent}/drain", c.Drain),
    Route("POST", P + "/agents/{agent}/terminate", c.Terminate),
    Route("POST", P + "/agents/{agent}/read", c.Read),
    Route("POST", P + "/sessions/{session}/leave", c.Leave),
    Route("POST", P + "/messages", c.Send),
    Route("POST", P + "/reservations", c.Reserve),
    Route("POST", P + "/reservations/renew", c.RenewReservation),
    Route("POST", P + "/reservations/release", c.Unreserve),
    Route("POST", P + "/gone", c.Gone),
    Route("POST", P + "/leader", c.Lead),
    Route("POST", P + "/leader/step-down", c.StepDown),
    Route("POST", "/keys", c.CreateKey),
    Route("POST", "/keys/{key}/rotate", c.RotateKey),
    Route("POST", "/keys/{key}/revoke", c.RevokeKey),
)

# Beside the table, with shapes of their own:
#   POST  /projects/{project}/batch     {"commands": [{"command": "submit", …}, …]} → {"outcomes": […]}
#   POST  /projects/{project}/preview   the same, decided and never written
#   GET   /projects/{project}/events    with Accept: text/event-stream it is live, from Last-Event-ID or ?after=
#   GET   /projects/{project}/news      ?mark=N&wait=SECONDS: {"mark": M}, as soon as M > N, or when the time is over
#   GET   /coordinator/status, POST /coordinator/recover, GET /coordinator/logs
#   GET   /health, /health/coordinator, /ready, /metrics, /openapi.json
BATCH = P + "/batch"
PREVIEW = P + "/preview"
NEWS = P + "/news"

_OF = {route.asks: route for route in (*COMMANDS, *LOOKS)}


def route_of(asks: type[c.Command] | type[q.Query]) -> Route:
    """The route that carries commands or queries of this kind."""
    return _OF[asks]

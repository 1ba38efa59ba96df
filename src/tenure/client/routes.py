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
    Route("GET", T + "/artifacts", q.Artifacts),
    Route("GET", T + "/why", q.Why),
    Route("GET", P + "/ready", q.Ready),
    Route("GET", P + "/next", q.Next),
    Route("GET", P + "/states", q.States),
    Route("GET", P + "/dags", q.Dags),
    Route("GET", P + "/dags/{dag}", q.ShowDag),
    Route("GET", P + "/plans", q.Plans),
    Route("GET", P + "/dead-letters", q.DeadLetters),
    Route("GET", P + "/agents", q.Agents),
    Route("GET", P + "/agents/{agent}/inbox", q.Inbox),
    Route("GET", P + "/messages", q.Messages),
    Route("GET", P + "/sessions", q.Sessions),
    Route("GET", P + "/sessions/{session}", q.ShowSession),
    Route("GET", P + "/sessions/{session}/claims", q.OwnClaims),
    Route("GET", P + "/validations", q.Validations),
    Route("GET", P + "/reservations", q.Reservations),
    Route("GET", P + "/usage", q.ShowSpending),
    Route("GET", P + "/budgets", q.Budgets),
    Route("GET", P + "/budgets/{scope}", q.ShowBudget),
    Route("GET", P + "/budgets/{scope}/projection", q.ShowProjection),
    Route("GET", P + "/alerts", q.Alerts),
    Route("GET", P + "/agents/{agent}/headroom", q.Headroom),
    Route("GET", P + "/savings", q.ShowSavings),
    Route("GET", P + "/estimates", q.Estimates),
    Route("GET", P + "/models", q.Models),
    Route("GET", P + "/processes", q.Processes),
    Route("GET", P + "/events", q.Log),
    Route("GET", P + "/schedules", q.Schedules),
    Route("GET", P + "/schedules/{schedule}", q.ShowSchedule),
    Route("GET", P + "/triggers", q.Triggers),
    Route("GET", P + "/triggers/{trigger}", q.ShowTrigger),
    Route("GET", P + "/watch", q.Watched),
    Route("GET", "/keys", q.Keys),
)

COMMANDS = (
    # The hot ones first. `claims` takes ?wait=SECONDS.
    Route("POST", P + "/claims", c.ClaimNext),
    Route("POST", T + "/submit", c.Submit),
    Route("POST", T + "/renew", c.Renew),
    Route("POST", T + "/claim", c.ClaimTask),
    Route("POST", T + "/start", c.Start),
    Route("POST", T + "/progress", c.Progress),
    Route("POST", T + "/checkpoint", c.SaveCheckpoint),
    Route("POST", T + "/usage", c.ReportUsage),
    Route("POST", T + "/land", c.Land),
    Route("POST", T + "/fail", c.Fail),
    Route("POST", T + "/release", c.Release),
    Route("POST", T + "/ask", c.Ask),
    Route("POST", T + "/spawn", c.Spawn),
    Route("POST", T + "/wait", c.Wait),
    Route("PUT", P, c.DefineProject),
    Route("PUT", P + "/tracks/{code}", c.DefineTrack),
    Route("PUT", P + "/budgets/{scope}", c.SetBudget),
    Route("POST", P + "/budgets/{scope}/remove", c.RemoveBudget),
    Route("POST", P + "/move-budget", c.MoveBudget),
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
    Route("POST", T + "/approve", c.Approve),
    Route("POST", T + "/reject", c.Reject),
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
    Route("POST", P + "/agents/{agent}/resume", c.ResumeAgent),
    Route("POST", P + "/agents/{agent}/read", c.Read),
    Route("POST", P + "/sessions/{session}/leave", c.Leave),
    Route("POST", P + "/messages", c.Send),
    Route("POST", P + "/validations", c.TakeValidation),
    Route("POST", P + "/validations/renew", c.RenewValidation),
    Route("POST", P + "/validations/judge", c.Judge),
    Route("POST", P + "/validations/undecided", c.Undecide),
    Route("POST", P + "/reservations", c.Reserve),
    Route("POST", P + "/reservations/renew", c.RenewReservation),
    Route("POST", P + "/reservations/release", c.Unreserve),
    Route("POST", P + "/gone", c.Gone),
    Route("POST", P + "/leader", c.Lead),
    Route("POST", P + "/leader/step-down", c.StepDown),
    Route("PUT", P + "/schedules/{schedule}", c.SetSchedule),
    Route("POST", P + "/schedules/{schedule}/pause", c.PauseSchedule),
    Route("POST", P + "/schedules/{schedule}/resume", c.ResumeSchedule),
    Route("POST", P + "/schedules/{schedule}/remove", c.RemoveSchedule),
    Route("POST", P + "/schedules/{schedule}/run", c.RunSchedule),
    Route("PUT", P + "/triggers/{trigger}", c.SetTrigger),
    Route("POST", P + "/triggers/{trigger}/pause", c.PauseTrigger),
    Route("POST", P + "/triggers/{trigger}/resume", c.ResumeTrigger),
    Route("POST", P + "/triggers/{trigger}/remove", c.RemoveTrigger),
    Route("POST", P + "/triggers/{trigger}/rotate", c.RotateSecret),
    Route("POST", P + "/triggers/{trigger}/try", c.TryTrigger),
    Route("POST", P + "/triggers/{trigger}/deliver", c.Deliver),
    Route("PUT", P + "/watch", c.SetWatch),
    Route("POST", "/keys", c.CreateKey),
    Route("POST", "/keys/{key}/rotate", c.RotateKey),
    Route("POST", "/keys/{key}/revoke", c.RevokeKey),
)

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

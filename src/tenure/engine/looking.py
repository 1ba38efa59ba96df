"""Which function answers which query: the one table. A module is loaded with its first look: a start stays cheap."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec.structs import fields

from tenure.core import queries as q
from tenure.core import roles
from tenure.core.commands import OWNER, Principal
from tenure.core.queries import Query

if TYPE_CHECKING:
    from tenure.engine.engine import Engine

PLACES: dict[type[Query], str] = {
    q.Projects: "upkeep:projects_seen",
    q.Status: "reading:status",
    q.Overview: "overview:overview",
    q.Gauges: "gauges:gauges",
    q.Tasks: "reading:tasks",
    q.Show: "reading:show",
    q.Ready: "previewing:ready",
    q.Next: "previewing:next_for",
    q.States: "reading:states",
    q.History: "reading:history",
    q.Results: "reading:results",
    q.Artifacts: "artifacts.putting:artifacts",
    q.Why: "explaining:why",
    q.Dags: "reading:dags",
    q.Dag: "reading:dag",
    q.Plans: "describing:plans",
    q.Tracks: "describing:tracks",
    q.DeadLetters: "reading:dead_letters",
    q.Agents: "reading:agents",
    q.Inbox: "reading:inbox",
    q.Messages: "reading:messages",
    q.Validations: "checks.validations:validations",
    q.Reservations: "reading:reservations",
    q.Sessions: "reading:sessions",
    q.Session: "reading:session",
    q.OwnClaims: "own_claims:own_claims",
    q.Spent: "reading:usage",
    q.Savings: "models.modelling:savings_seen",
    q.Estimates: "models.modelling:estimates_seen",
    q.Models: "models.modelling:models",
    q.Budgets: "budgets.accounting:all_seen",
    q.Budget: "budgets.accounting:seen",
    q.Alerts: "budgets.accounting:alerts",
    q.Projection: "budgets.accounting:projection",
    q.Headroom: "budgets.accounting:headroom",
    q.Processes: "reading:processes",
    q.Log: "reading:log",
    q.Keys: "keys:keys_seen",
    q.Schedules: "sources.scheduling:schedules",
    q.Schedule: "sources.scheduling:schedule",
    q.Triggers: "sources.triggering:triggers",
    q.Trigger: "sources.triggering:trigger",
    q.Watched: "sources.watching:watched",
}


def look(engine: Engine, query: Query, principal: Principal = OWNER) -> Any:
    """What the query asks for, of rows brought up to `now`; nothing is written."""
    roles.check_look(principal, query)
    function, required, optional = _reading(type(query))
    follows = isinstance(query, q.Log) and not query.last
    with engine.reading((query.project,) if query.project else (), follows=follows) as work:
        work.begin_command(principal, None)  # what there is to see may depend on who looks
        arguments = [getattr(query, name) for name in required]
        return function(work, query.project, *arguments, **{name: getattr(query, name) for name in optional})


@cache
def _reading(kind: type[Query]) -> tuple[Callable[..., Any], list[str], list[str]]:
    module, _, name = PLACES[kind].partition(":")
    own = [field for field in fields(kind) if field.name != "project"]
    required = [field.name for field in own if field.required]
    function: Callable[..., Any] = getattr(import_module(f"tenure.engine.{module}"), name)
    return function, required, [field.name for field in own if not field.required]

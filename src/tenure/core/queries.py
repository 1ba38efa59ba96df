"""The queries: one struct each, the same for HTTP and SDK. Commands change; queries only read.

Fields without a default come first in the method's arguments, the others go by name. Durations are seconds and instants
microseconds UTC, as in commands. `at` asks about the past: it names a moment as text (core/moments.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tenure.core import limits
from tenure.core.commands.command import PROJECT, TASK, Declaration
from tenure.core.commands.graph_commands import NewTask, NewTrack
from tenure.core.query import AT, Attest, AuditHead, AuditPage, EventQuery, Page, Query, VerifyAudit

__all__ = ["AT", "Attest", "AuditHead", "AuditPage", "Page", "Query", "VerifyAudit"]


class Projects(Query, frozen=True, kw_only=True):
    """The names of all projects."""

    declaration: ClassVar = Declaration("projects", "viewer", "GET", "/projects")


class Status(Query, frozen=True, kw_only=True):
    """One screen: who leads, who works, the progress of each track, tasks by state."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", PROJECT)

    at: str | None = None  # as it was at this instant, or after the event with this sequence


class ShowProject(Query, frozen=True, kw_only=True):
    """The settings of the project."""

    declaration: ClassVar = Declaration("project_view", "viewer", "GET", PROJECT + "/settings")


class Overview(Query, frozen=True, kw_only=True):
    """The flow of work in the last minutes: throughput, depth, waits, what each agent did."""

    declaration: ClassVar = Declaration("overview", "viewer", "GET", PROJECT + "/overview")

    minutes: int = 60

    @property
    def is_costly(self) -> bool:
        return self.minutes > limits.OVERVIEW_SHORT


class Gauges(Query, frozen=True, kw_only=True):
    """Tasks by state in every project, for metrics: the `most` oldest projects, the others together."""

    declaration: ClassVar = Declaration("gauges", "viewer")

    most: int = 100


class Spending(Query, frozen=True, kw_only=True):
    """Tokens and cost by agent and model, the rest of budgets, how busy agents are, for metrics."""

    declaration: ClassVar = Declaration("spending", "viewer")

    most: int = 100


class Tasks(Query, frozen=True, kw_only=True):
    """A page of tasks. `order` is descending with a leading minus.

    Each word of `text` is searched for in key, title, description, tags, agent and last error. Of several tags a task
    must have all. With `fields` each task has only these.
    """

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", PROJECT + "/tasks")
    largest: ClassVar = limits.LISTED

    state: tuple[str, ...] | None = None
    track: tuple[str, ...] | None = None
    type: tuple[str, ...] | None = None
    agent: tuple[str, ...] | None = None
    session: str | None = None
    dag: str | None = None
    parent: str | None = None
    idempotency_key: str | None = None
    tag: tuple[str, ...] | None = None
    text: str | None = None
    priority_range: tuple[int, int] | None = None
    priority_min: int | None = None
    priority_max: int | None = None
    created_from: int | None = None
    created_until: int | None = None
    archived: bool = False
    order: str = "created_at"
    after: tuple[Any, str] | None = None
    limit: int = 50
    fields: tuple[str, ...] = ()
    at: str | None = None  # as it was at this instant, or after the event with this sequence

    @property
    def is_costly(self) -> bool:
        return self.text is not None or self.at is not None  # a search reads tasks until it has found a page

    def cursor(self, last: Mapping[str, Any]) -> tuple[Any, str]:
        return last.get(self.order.lstrip("-")), last["id"]


class Show(Query, frozen=True, kw_only=True):
    """Everything about one task except its log."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", TASK)

    task: str
    at: str | None = None  # as it was at this instant, or after the event with this sequence


class Ready(Query, frozen=True, kw_only=True):
    """Claimable tasks, best first."""

    declaration: ClassVar = Declaration("preview", "viewer", "GET", PROJECT + "/ready")
    largest: ClassVar = limits.LISTED

    track: str | None = None
    limit: int = 50


class Next(Query, frozen=True, kw_only=True):
    """What a claim of this agent would take now, without taking it."""

    declaration: ClassVar = Declaration("preview", "viewer", "GET", PROJECT + "/next")

    agent: str
    session: str
    capabilities: tuple[str, ...] | None = None
    tracks: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    region: str | None = None


class States(Query, frozen=True, kw_only=True):
    """The state of each named task, or that there is none."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", PROJECT + "/states")

    tasks: tuple[str, ...]


class History(Query, frozen=True, kw_only=True):
    """The lineage of a task: one entry per generation, with every refused submit under it."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", TASK + "/history")

    task: str
    at: str | None = None  # as it was at this instant, or after the event with this sequence


class TaskLog(EventQuery, frozen=True, kw_only=True, tag="task_logs"):
    """The events of one task, oldest first, with the stack traces of its failures: the newest `limit`, or with `last`
    off the first behind `after`. `level` is the lowest that is wanted.
    """

    declaration: ClassVar = Declaration("event_log", "viewer", "GET", TASK + "/logs")

    task: str
    since: int | None = None
    kind: tuple[str, ...] | None = None
    level: str | None = None


class Results(Query, frozen=True, kw_only=True):
    """All results of a task, accepted and refused."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", TASK + "/results")

    task: str


class Artifacts(Query, frozen=True, kw_only=True):
    """Artifacts of a task's claims, by name; of one name the last generation's first."""

    declaration: ClassVar = Declaration("artifacts", "viewer", "GET", TASK + "/artifacts")

    task: str
    generation: int | None = None


class Why(Query, frozen=True, kw_only=True):
    """Why a task is in its state."""

    declaration: ClassVar = Declaration("why", "viewer", "GET", TASK + "/why")

    task: str


class Briefing(Query, frozen=True, kw_only=True):
    """What the next holder of a task must know: its text and author, inputs, checkpoint, last failure, notes."""

    declaration: ClassVar = Declaration("briefing", "viewer", "GET", TASK + "/briefing")

    task: str
    at: str | None = None  # as it was at this instant, or after the event with this sequence


class AgentNews(Query, frozen=True, kw_only=True):
    """What an agent should hear now: unread mail, and what its operator or its tasks ask of it."""

    declaration: ClassVar = Declaration("briefing", "agent", "GET", PROJECT + "/agents/{agent}/news")

    agent: str


class Todo(Query, frozen=True, kw_only=True):
    """Everything that waits for a person: questions, reviews, dead letters, pauses; the longest wait first."""

    declaration: ClassVar = Declaration("todo", "viewer", "GET", PROJECT + "/todo")
    largest: ClassVar = limits.LISTED

    limit: int = 100


class Dags(Query, frozen=True, kw_only=True):
    """All dags, with their tasks by state."""

    declaration: ClassVar = Declaration("dags", "viewer", "GET", PROJECT + "/dags")


class ShowDag(Query, frozen=True, kw_only=True, tag="dag"):
    """A dag with its tasks, edges, counts and critical path, its budget and what it has cost."""

    declaration: ClassVar = Declaration("dags", "viewer", "GET", PROJECT + "/dags/{dag}")

    dag: str


class Plans(Query, frozen=True, kw_only=True):
    """The tasks of a dag, of a named plan, or all, as input."""

    declaration: ClassVar = Declaration("plan_export", "viewer", "GET", PROJECT + "/plans", costly=True)

    dag: str | None = None
    plan: str | None = None
    open_only: bool = False


class Limits(Query, frozen=True, kw_only=True):
    """The project's limits: their values, where each comes from, and how much of it is used."""

    declaration: ClassVar = Declaration("project_view", "viewer", "GET", PROJECT + "/limits")


class Tracks(Query, frozen=True, kw_only=True):
    """The project's tracks."""

    declaration: ClassVar = Declaration("project_view", "viewer", "GET", PROJECT + "/tracks")


class DeadLetters(Query, frozen=True, kw_only=True):
    """Tasks that are not tried again and wait for a person; with `resolved` those that no longer wait."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", PROJECT + "/dead-letters")

    resolved: bool = False


class Agents(Query, frozen=True, kw_only=True):
    """Agents, and what each holds; with `managed` only those that a program looks after, or only the others."""

    declaration: ClassVar = Declaration("team", "viewer", "GET", PROJECT + "/agents")

    managed: bool | None = None
    status: tuple[str, ...] | None = None


class ShowAgent(Query, frozen=True, kw_only=True, tag="agent"):
    """One agent: what it does now, when its next heartbeat is due, its memory and CPU in the last hour."""

    declaration: ClassVar = Declaration("team", "viewer", "GET", PROJECT + "/agents/{agent}")

    agent: str


class AgentHealth(Query, frozen=True, kw_only=True, tag="agent_health"):
    """How an agent is: what it reported, when its next heartbeat is due, its memory and CPU in the last hour."""

    declaration: ClassVar = Declaration("team", "viewer", "GET", PROJECT + "/agents/{agent}/health")

    agent: str


class AgentTasks(Query, frozen=True, kw_only=True, tag="agent_tasks"):
    """The tasks that an agent holds now, the first claimed first; with `state` those in one of these states."""

    declaration: ClassVar = Declaration("team", "viewer", "GET", PROJECT + "/agents/{agent}/tasks")

    agent: str
    state: tuple[str, ...] | None = None


class Inbox(Query, frozen=True, kw_only=True):
    """Mail of one agent, oldest first."""

    declaration: ClassVar = Declaration("tasks", "agent", "GET", PROJECT + "/agents/{agent}/inbox")
    largest: ClassVar = limits.LISTED

    agent: str
    unread: bool = True
    sender: str | None = None
    after: str | None = None  # the id of the last message of the previous page
    limit: int = limits.LISTED

    def cursor(self, last: Mapping[str, Any]) -> str:
        return str(last["id"])


class Messages(Query, frozen=True, kw_only=True):
    """All mail of the project, newest first, one entry per message with who has read it."""

    declaration: ClassVar = Declaration("tasks", "member", "GET", PROJECT + "/messages")
    largest: ClassVar = limits.LISTED

    limit: int = 100


class Validations(Query, frozen=True, kw_only=True):
    """Results that wait for a verdict or to be landed, longest first: for which validator or branch, who has taken
    them, how often."""

    declaration: ClassVar = Declaration("validations", "viewer", "GET", PROJECT + "/validations")
    largest: ClassVar = limits.LISTED

    limit: int = 100


class Reservations(Query, frozen=True, kw_only=True):
    """Reservations, and their owners."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", PROJECT + "/reservations")


class Sessions(Query, frozen=True, kw_only=True):
    """Sessions, the most recently active first."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", PROJECT + "/sessions")
    largest: ClassVar = limits.LISTED

    agent: str | None = None
    limit: int = 100


class ShowSession(Query, frozen=True, kw_only=True, tag="session"):
    """What a session claimed, did and lost."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", PROJECT + "/sessions/{session}")

    session: str


class OwnClaims(Query, frozen=True, kw_only=True):
    """A session's claims: live ones, and those that expired or were paused while held in the last day.

    Without `agent` those of all agents in it.
    """

    declaration: ClassVar = Declaration("own_claims", "viewer", "GET", PROJECT + "/sessions/{session}/claims")

    session: str
    agent: str | None = None


class ShowSpending(Query, frozen=True, kw_only=True, tag="spent"):
    """Spending by task, agent, model, operation, session, type, dag or track, most expensive first."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", PROJECT + "/usage")
    largest: ClassVar = limits.LISTED

    by: str = "task"
    limit: int = 100


class ShowSavings(Query, frozen=True, kw_only=True, tag="savings"):
    """What routing by tier has saved compared with the middle tier for all tasks, at the table's prices."""

    declaration: ClassVar = Declaration("models", "viewer", "GET", PROJECT + "/savings", costly=True)


class Estimates(Query, frozen=True, kw_only=True):
    """How close estimates came to actual usage, by type."""

    declaration: ClassVar = Declaration("models", "viewer", "GET", PROJECT + "/estimates", costly=True)


class Models(Query, frozen=True, kw_only=True):
    """Which models exist for which tier, what they cost, and which are rate limited."""

    declaration: ClassVar = Declaration("models", "viewer", "GET", PROJECT + "/models")


class Budgets(Query, frozen=True, kw_only=True):
    """Budgets of the project, and the tenant's; only of `scope`, if given. Those of tasks only on request."""

    declaration: ClassVar = Declaration("budgets", "viewer", "GET", PROJECT + "/budgets")
    largest: ClassVar = limits.LISTED

    scope: str | None = None
    after: str | None = None  # the id of the last one of the previous page
    limit: int = 100
    at: str | None = None  # as it was at this instant, or after the event with this sequence

    def cursor(self, last: Mapping[str, Any]) -> str:
        return str(last["id"])


class ShowBudget(Query, frozen=True, kw_only=True, tag="budget"):
    """One budget, with its spending by hour in the last week."""

    declaration: ClassVar = Declaration("budgets", "viewer", "GET", PROJECT + "/budgets/{scope}")

    scope: str
    at: str | None = None  # as it was at this instant, or after the event with this sequence


class Alerts(Query, frozen=True, kw_only=True):
    """Budgets of which 50, 90 or 100 per cent are spent, the worst first."""

    declaration: ClassVar = Declaration("budgets", "viewer", "GET", PROJECT + "/alerts")


class ShowProjection(Query, frozen=True, kw_only=True, tag="projection"):
    """The projection of a budget: burn rate, days left, when it is used up; and what all open tasks will take of it."""

    declaration: ClassVar = Declaration("budgets", "viewer", "GET", PROJECT + "/budgets/{scope}/projection")

    scope: str = "project"


class Headroom(Query, frozen=True, kw_only=True):
    """What the agent could still reserve, in each budget that all of its claims count in; with a task, in each that its
    claim counts in."""

    declaration: ClassVar = Declaration("budgets", "viewer", "GET", PROJECT + "/agents/{agent}/headroom")

    agent: str
    task: str | None = None


class Forecast(Query, frozen=True, kw_only=True):
    """When the open tasks end and what they cost: their graph, played many times with attempts of finished tasks.

    With `tasks` (a plan's) they are added on rows that are never saved, and the forecast is about them; with `dag`
    about that dag. Without `agents` or `pool` the agents that work now are counted.
    """

    declaration: ClassVar = Declaration("forecast", "viewer", "POST", PROJECT + "/forecast", costly=True)

    agents: int | None = None
    pool: str | None = None
    dag: str | None = None
    runs: int = 200
    seed: int = 0
    tasks: tuple[NewTask, ...] = ()
    tracks: tuple[NewTrack, ...] = ()
    name: str | None = None  # of the plan, if it was applied before
    budget: str | None = None  # the plan's, in dollars


class Processes(Query, frozen=True, kw_only=True):
    """The processes that hold claims now."""

    declaration: ClassVar = Declaration("tasks", "viewer", "GET", PROJECT + "/processes")


class Log(EventQuery, frozen=True, kw_only=True):
    """Events, oldest first: the newest `limit`, or with `last` off the first behind `after`.

    A `kind` is one kind of event, or a noun for all kinds of it: `task`. `level` is the lowest that is wanted. With
    `store` also events of sinks and leaders, which belong to no project, and for admins those of keys, members and
    tenants, which a live stream leaves out; a caller for some projects gets none of them.
    """

    declaration: ClassVar = Declaration("event_log", "viewer", "GET", PROJECT + "/events")

    since: int | None = None
    task: str | None = None
    kind: tuple[str, ...] | None = None
    level: str | None = None
    agent: str | None = None
    session: str | None = None
    store: bool = False


class Keys(Query, frozen=True, kw_only=True):
    """The store's API keys, without their secrets; with `ended` also those no longer valid."""

    declaration: ClassVar = Declaration("api_keys", "admin", "GET", "/keys")

    ended: bool = False


class Tenants(Query, frozen=True, kw_only=True):
    """The tenants of the deployment, by name; with `closed` also closed ones."""

    declaration: ClassVar = Declaration("tenants", "owner", "GET", "/tenants")

    closed: bool = False


class ShowTenant(Query, frozen=True, kw_only=True, tag="tenant"):
    """One tenant."""

    declaration: ClassVar = Declaration("tenants", "owner", "GET", "/tenants/{tenant}")

    tenant: str


class Members(Query, frozen=True, kw_only=True):
    """The members of the tenant, by name; with `left` also former ones."""

    declaration: ClassVar = Declaration("members", "admin", "GET", "/members")

    left: bool = False


class Schedules(Query, frozen=True, kw_only=True):
    """Schedules, by name."""

    declaration: ClassVar = Declaration("schedules", "viewer", "GET", PROJECT + "/schedules")


class ShowSchedule(Query, frozen=True, kw_only=True, tag="schedule"):
    """One schedule with its template, and its next ticks."""

    declaration: ClassVar = Declaration("schedules", "viewer", "GET", PROJECT + "/schedules/{schedule}")

    schedule: str
    ticks: int = 5


class Triggers(Query, frozen=True, kw_only=True):
    """Triggers, by name, without their secrets."""

    declaration: ClassVar = Declaration("triggers", "viewer", "GET", PROJECT + "/triggers")


class ShowTrigger(Query, frozen=True, kw_only=True, tag="trigger"):
    """One trigger with its template, without its secret."""

    declaration: ClassVar = Declaration("triggers", "viewer", "GET", PROJECT + "/triggers/{trigger}")

    trigger: str


class Watched(Query, frozen=True, kw_only=True):
    """The settings of the failure watch, and failure rates, the worst first."""

    declaration: ClassVar = Declaration("failure_watch", "viewer", "GET", PROJECT + "/watch")


class Relays(Query, frozen=True, kw_only=True):
    """The sinks with their places in the log, by name."""

    declaration: ClassVar = Declaration("relays", "viewer", "GET", "/relays")


class Webhooks(Query, frozen=True, kw_only=True):
    """Webhooks, by name, without their secrets."""

    declaration: ClassVar = Declaration("webhooks", "viewer", "GET", PROJECT + "/webhooks")


class ShowWebhook(Query, frozen=True, kw_only=True, tag="webhook"):
    """One webhook, without its secret."""

    declaration: ClassVar = Declaration("webhooks", "viewer", "GET", PROJECT + "/webhooks/{webhook}")

    webhook: str


class Deliveries(Query, frozen=True, kw_only=True):
    """The delivery log of a webhook, the newest first; parked deliveries are in it too."""

    declaration: ClassVar = Declaration("webhooks", "viewer", "GET", PROJECT + "/webhooks/{webhook}/deliveries")
    largest: ClassVar = limits.WEBHOOK_LOG

    webhook: str
    state: str | None = None
    limit: int = 100


class Pools(Query, frozen=True, kw_only=True):
    """Pools, by name, each with its live processes."""

    declaration: ClassVar = Declaration("pools", "viewer", "GET", PROJECT + "/pools")


class ShowPool(Query, frozen=True, kw_only=True, tag="pool"):
    """One pool with its live processes."""

    declaration: ClassVar = Declaration("pools", "viewer", "GET", PROJECT + "/pools/{pool}")

    pool: str


class Spawns(Query, frozen=True, kw_only=True):
    """Processes that pools have started, the newest first; ended ones are kept for a while."""

    declaration: ClassVar = Declaration("pools", "viewer", "GET", PROJECT + "/spawns")
    largest: ClassVar = limits.LISTED

    pool: str | None = None
    state: tuple[str, ...] | None = None
    limit: int = 100


_KINDS = (*Query.__subclasses__(), *EventQuery.__subclasses__())
ALL: tuple[type[Query], ...] = tuple(kind for kind in _KINDS if kind is not EventQuery)

"""Everything that can be looked at: one struct a look, the same for HTTP and SDK. Commands change; queries only read.

Fields without a default come first in the reading's own arguments, the others go by name. Durations are seconds and
instants microseconds UTC, as in commands.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Query(msgspec.Struct, frozen=True, kw_only=True, tag_field="query", tag=str.lower, forbid_unknown_fields=True):
    """`project` says where; the looks at the store as a whole are of the project ""."""

    project: str = ""


class Projects(Query, frozen=True, kw_only=True):
    """The names of all projects."""


class Status(Query, frozen=True, kw_only=True):
    """One screen: who leads, who works, how far each track is, how many tasks stand where."""


class Overview(Query, frozen=True, kw_only=True):
    """How the work has flowed in the last minutes: throughput, depth, waits, what each agent did."""

    minutes: int = 60


class Gauges(Query, frozen=True, kw_only=True):
    """How much stands where in every project, for metrics: the first `most` that were made, the others together."""

    most: int = 100


class Tasks(Query, frozen=True, kw_only=True):
    """A page of tasks. `text` is looked for in title and key; `order` falls with a leading minus."""

    state: tuple[str, ...] | None = None
    track: tuple[str, ...] | None = None
    type: tuple[str, ...] | None = None
    agent: tuple[str, ...] | None = None
    session: str | None = None
    dag: str | None = None
    parent: str | None = None
    tag: str | None = None
    text: str | None = None
    priority_range: tuple[int, int] | None = None
    created_from: int | None = None
    created_until: int | None = None
    archived: bool = False
    order: str = "created_at"
    after: tuple[Any, str] | None = None
    limit: int = 50


class Show(Query, frozen=True, kw_only=True):
    """Everything about one task but its log."""

    task: str


class Ready(Query, frozen=True, kw_only=True):
    """Claimable tasks, best first."""

    track: str | None = None
    limit: int = 50


class Next(Query, frozen=True, kw_only=True):
    """What a claim of this agent would take now, without taking it."""

    agent: str
    session: str
    capabilities: tuple[str, ...] | None = None
    tracks: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    region: str | None = None


class States(Query, frozen=True, kw_only=True):
    """Where each of the named tasks stands, or that there is none."""

    tasks: tuple[str, ...]


class History(Query, frozen=True, kw_only=True):
    """The lineage of a task: one entry a generation, with every refused submission under it."""

    task: str


class Results(Query, frozen=True, kw_only=True):
    """All results of a task, accepted and refused."""

    task: str


class Artifacts(Query, frozen=True, kw_only=True):
    """What claims of a task have put, by name; of one name the last generation's first."""

    task: str
    generation: int | None = None


class Why(Query, frozen=True, kw_only=True):
    """Why a task stands where it does."""

    task: str


class Dags(Query, frozen=True, kw_only=True):
    """All dags, with counts of where their tasks stand."""


class ShowDag(Query, frozen=True, kw_only=True):
    """A dag with its tasks, edges, counts and critical path."""

    dag: str


class Plans(Query, frozen=True, kw_only=True):
    """The tasks of a dag, of a named plan, or all, as they were asked for."""

    dag: str | None = None
    plan: str | None = None
    open_only: bool = False


class Tracks(Query, frozen=True, kw_only=True):
    """The project's tracks."""


class DeadLetters(Query, frozen=True, kw_only=True):
    """Tasks that ran out of attempts and wait for a person; with `resolved` those that no longer wait."""

    resolved: bool = False


class Agents(Query, frozen=True, kw_only=True):
    """Who is there, and what each holds."""


class Inbox(Query, frozen=True, kw_only=True):
    """Mail of one agent."""

    agent: str
    unread: bool = True
    sender: str | None = None


class Messages(Query, frozen=True, kw_only=True):
    """All mail of the project, newest first, one entry a message with who has read it."""

    limit: int = 100


class Validations(Query, frozen=True, kw_only=True):
    """Results that wait for a verdict, the longest first: by which validator, who checks them, how often."""

    limit: int = 100


class Reservations(Query, frozen=True, kw_only=True):
    """What is reserved, and by whom."""


class Sessions(Query, frozen=True, kw_only=True):
    """Sessions, the most recently active first."""

    agent: str | None = None
    limit: int = 100


class ShowSession(Query, frozen=True, kw_only=True):
    """What a session claimed, did and lost."""

    session: str


class OwnClaims(Query, frozen=True, kw_only=True):
    """An agent's claims in one session: those that live, and those that ended in the last day without its word."""

    session: str
    agent: str


class ShowSpending(Query, frozen=True, kw_only=True):
    """What was spent for each task, agent, model or session, the dearest first."""

    by: str = "task"
    limit: int = 100


class ShowSavings(Query, frozen=True, kw_only=True):
    """What choosing models by tier has saved against all of it in the middle tier, at the table's prices."""


class Estimates(Query, frozen=True, kw_only=True):
    """How near estimates came to what tasks took, by type."""


class Models(Query, frozen=True, kw_only=True):
    """Which models there are for what, what they cost, and which are rate limited."""


class Budgets(Query, frozen=True, kw_only=True):
    """Budgets of the project, and the tenant's; of `scope` only, if that is named. Those of tasks only if asked for."""

    scope: str | None = None
    after: str | None = None  # the id of the last one of the page before
    limit: int = 100


class ShowBudget(Query, frozen=True, kw_only=True):
    """One budget, with what was spent hour by hour in the last week."""

    scope: str


class Alerts(Query, frozen=True, kw_only=True):
    """Budgets of which 50, 90 or 100 per cent are spent, the worst first."""


class ShowProjection(Query, frozen=True, kw_only=True):
    """Where a budget leads: burn rate, days left, when it is used up; and what all open tasks will take of it."""

    scope: str = "project"


class Headroom(Query, frozen=True, kw_only=True):
    """What the agent could still reserve here, in each budget that all of its claims count in."""

    agent: str


class Processes(Query, frozen=True, kw_only=True):
    """The processes that hold claims now."""


class Log(Query, frozen=True, kw_only=True):
    """Events, oldest first: the newest `limit`, or with `last` off the first behind `after`."""

    after: int = 0
    limit: int = 100
    last: bool = True
    since: int | None = None
    task: str | None = None
    kind: tuple[str, ...] | None = None
    level: tuple[str, ...] | None = None
    agent: str | None = None
    session: str | None = None


class Keys(Query, frozen=True, kw_only=True):
    """The store's API keys, without their secrets; with `ended` also those that open nothing any more."""

    ended: bool = False


class Schedules(Query, frozen=True, kw_only=True):
    """Schedules, by name."""


class ShowSchedule(Query, frozen=True, kw_only=True):
    """One schedule with its template, and its next ticks."""

    schedule: str
    ticks: int = 5


class Triggers(Query, frozen=True, kw_only=True):
    """Triggers, by name, without their secrets."""


class ShowTrigger(Query, frozen=True, kw_only=True):
    """One trigger with its template, without its secret."""

    trigger: str


class Watched(Query, frozen=True, kw_only=True):
    """What the self-improvement watch goes by, and how much fails of what, the worst first."""


AnyQuery = (
    Projects
    | Status
    | Overview
    | Gauges
    | Tasks
    | Show
    | Ready
    | Next
    | States
    | History
    | Results
    | Why
    | Dags
    | ShowDag
    | Artifacts
    | Plans
    | Tracks
    | DeadLetters
    | Agents
    | Inbox
    | Messages
    | Reservations
    | Sessions
    | ShowSession
    | ShowSpending
    | Validations
    | Processes
    | Log
    | Keys
    | Schedules
    | ShowSchedule
    | Triggers
    | ShowTrigger
    | Watched
    | ShowSavings
    | Estimates
    | Models
    | OwnClaims
    | Budgets
    | ShowBudget
    | Alerts
    | ShowProjection
    | Headroom
)

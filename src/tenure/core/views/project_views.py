"""The project as a whole: tracks, status, log, the flow of work; the coordinator's status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from tenure.core import priority
from tenure.core.events import KINDS, LEVELS
from tenure.core.store_health import DATABASES
from tenure.core.views.budget_views import BudgetView
from tenure.core.views.task_views import Instant, State, TotalsView, ValidationCounts
from tenure.core.views.team_views import AgentView, TrackProgress


class AssignedView(TypedDict):
    """An agent that a track is assigned to."""

    agent: str
    since: Instant
    pinned: Annotated[bool, Meta(description="assigned by a person, until released")]
    until: Annotated[Instant | None, Meta(description="when it ends unless the agent claims there again")]


class ProjectView(TypedDict):
    """The settings of a project."""

    project: str
    default_track: str
    boost: Annotated[float, Meta(description="points a minute")]
    agents_may_operate: bool
    review_other_person: Annotated[bool, Meta(description="a review is for another person than the claim's")]
    limits: dict[str, int]
    routing: Annotated[bool, Meta(description="claims recommend a model")]
    router: Annotated[bool, Meta(description="tracks are assigned to agents")]
    order: Annotated[str, Meta(extra_json_schema={"enum": list(priority.ORDERS)})]
    lead: Annotated[str, Meta(description="auto, off or default: whether an agent leads by being first")]
    audited_at: Annotated[Instant | None, Meta(description="since when its log is sealed; null: it is not")]
    compliance: Annotated[str | None, Meta(description="the retention preset: soc2, pci, hipaa")]
    created_at: Instant


class LimitView(TypedDict):
    """A limit of a project."""

    name: str
    meaning: str
    value: Annotated[int | None, Meta(description="null: no limit")]
    source: Annotated[str, Meta(extra_json_schema={"enum": ["default", "tenant", "project", "preset"]})]
    used: Annotated[int | None, Meta(description="null: it is not counted")]


class TrackView(TypedDict):
    """A parallel stream of work in a project."""

    code: str
    name: str
    purpose: str
    last_sequence: int
    max_agents: Annotated[int, Meta(description="agents that may work there at once, with the project's router")]
    assigned: Annotated[Sequence[AssignedView], Meta(description="agents that it is assigned to")]


class LeaderView(TypedDict):
    """Who leads, with which term; `name` is the holder."""

    name: str
    holder: str
    term: int
    since: Instant
    until: Instant


class StatusView(TypedDict):
    """One screen: who leads, who works, the progress of each track, tasks by state."""

    project: str
    leader: LeaderView | None
    coordinator: LeaderView | None
    agents: Sequence[AgentView]
    tracks: dict[str, TrackProgress]
    tasks: Annotated[dict[str, int], Meta(description="state → how many tasks")]
    usage: TotalsView
    budgets: Annotated[Sequence[BudgetView], Meta(description="of all tasks, and those of dags and agents")]
    validations: Annotated[
        dict[str, ValidationCounts],
        Meta(description="validator → results that wait for it, or are being checked; `land` → those to be landed"),
    ]
    stopped: Annotated[dict[str, str], Meta(description="scope → why claiming is stopped")]
    sources: Annotated[
        dict[str, int], Meta(description="schedules, triggers and watch that are on, and need a coordinator to fire")
    ]
    now: Instant


class EventView(TypedDict):
    """One event of the log. Unset fields are left out."""

    sequence: int
    id: str
    time: Instant
    kind: Annotated[str, Meta(extra_json_schema={"enum": list(KINDS)})]
    level: Annotated[str, Meta(extra_json_schema={"enum": list(LEVELS)})]
    text: Annotated[str, Meta(description="the event as one sentence")]
    tenant: str
    project: NotRequired[str]
    task: NotRequired[str]
    key: NotRequired[str]
    version: NotRequired[int]
    track: NotRequired[str]
    generation: NotRequired[int]
    agent: NotRequired[str]
    session: NotRequired[str]
    user: NotRequired[str]
    address: NotRequired[str]
    previous_state: NotRequired[str]
    new_state: NotRequired[str]
    message: NotRequired[str]
    details: NotRequired[dict[str, Any]]
    trace_id: NotRequired[Annotated[str, Meta(description="the task's, from its creation to its end")]]
    request_trace_id: NotRequired[Annotated[str, Meta(description="of the request that caused it")]]
    causation_id: NotRequired[str]
    lease: NotRequired[Annotated[float, Meta(description="of a claim: seconds")]]
    previous_claim: NotRequired[
        Annotated[str, Meta(description="of a claim: how that of the generation before ended; not in live streams")]
    ]
    stack_trace: NotRequired[Annotated[str, Meta(description="of a failure, without secrets")]]
    notice: NotRequired[Annotated[str, Meta(description="the kind of notice to people that it is, if any")]]


class DepthView(TypedDict):
    """Tasks by state."""

    waiting: int
    ready: int
    held: int
    paused: int
    dead: int


class StepView(TypedDict):
    """What happened in one step, and the tasks by state at its end."""

    at: Instant
    depth: DepthView
    created: int
    claimed: int
    completed: int
    failed: int
    dead_lettered: int
    lost: int


class SpreadView(TypedDict):
    """Seconds: median, 95th percentile and maximum."""

    count: int
    median: float
    p95: float
    longest: float


class OldestView(TypedDict):
    """The task that has been in a state for longest."""

    state: State
    key: str
    created_at: Instant
    since: Instant


class BusyView(TypedDict):
    """What an agent did; `busy` is the average number of tasks held."""

    agent: str
    busy: float
    claimed: int
    completed: int
    failed: int
    lost: int


class OverviewView(TypedDict):
    """The flow of work. Where the log is too long to be read as far back as requested, `is_whole` is false."""

    project: str
    now: Instant
    since: Instant
    is_whole: bool
    step: Annotated[float, Meta(description="seconds of each step")]
    steps: Sequence[StepView]
    waits: SpreadView | None
    durations: SpreadView | None
    oldest: Sequence[OldestView]
    agents: Sequence[BusyView]


class MoneyView(TypedDict):
    """A project's budget, in whole dollars or tokens and their parts."""

    currency: str
    allocated: float
    spent: float
    reserved: float


class GaugesView(TypedDict):
    """Tasks by state in one project, or in all others together."""

    project: str
    depth: Annotated[dict[str, dict[str, int]], Meta(description="state → tier → how many tasks")]
    completed: int
    overdue: int
    overdue_retries: int
    oldest_ready: Annotated[float, Meta(description="seconds")]
    clock_behind: Annotated[float, Meta(description="seconds by which the clock is behind the store's time")]
    agents: Annotated[dict[str, int], Meta(description="status → how many agents")]
    pools: Annotated[
        dict[str, dict[str, int]], Meta(description="pool → its size (0: paused), and its spawns that start or run")
    ]
    budget: Annotated[MoneyView | None, Meta(description="the project's own; None where it has none")]
    readers: Annotated[
        dict[str, float],
        Meta(
            description="reader of the log → seconds since the first event that it has not passed; 0: it has passed all"
        ),
    ]
    unsealed: Annotated[int | None, Meta(description="events younger than the last seal; None: the log is not sealed")]


class SpentBy(TypedDict):
    """What one agent has used of one model, as reported; `other` stands for all agents or models beyond the first."""

    agent: str
    model: str
    fresh: int
    cached: int
    written: int
    output: int
    cost_usd: float


class BudgetLeft(TypedDict):
    """The rest of a budget in dollars; `name` is empty for the project's and the tenant's."""

    scope: str
    name: str
    remaining_usd: float


class SpendingView(TypedDict):
    """A project's spending, for metrics."""

    project: str
    used: Sequence[SpentBy]
    today_usd: Annotated[float, Meta(description="cost of the claims that reported usage since midnight UTC")]
    budgets: Sequence[BudgetLeft]
    busy: Annotated[
        dict[str, float], Meta(description="agent → the part of its places that it used in the last 15 minutes")
    ]


class CycleError(TypedDict):
    """The last error of a cycle."""

    message: str
    at: Instant | None


class Here(TypedDict):
    """The server that was asked; the deployment's owner also sees its instance."""

    instance: str | None
    leads: bool


class CoordinatorView(TypedDict):
    """Who leads, how its cycles go, and how much waits and runs."""

    active: bool
    instance: str | None
    term: int
    since: Instant | None
    leads_for: Annotated[float, Meta(description="seconds")] | None
    last_heartbeat_at: Instant | None
    lease: Annotated[float, Meta(description="seconds left")] | None
    cycles: int
    last_cycle_at: Instant | None
    last_error: CycleError | None
    projects: Sequence[str]
    pending_tasks: int
    running_tasks: int
    healthy_agents: int
    stale_agents: int
    overdue_tasks: int
    here: Here | None
    now: Instant


class SinkHealth(TypedDict):
    """How far a sink is behind."""

    name: str
    state: str
    lag: Annotated[float, Meta(description="seconds since the oldest event that is not sent")]
    lag_events: int


class SpawnerHealth(TypedDict):
    """A spawner that pools use."""

    name: str
    state: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "failing", "paused"]})]
    pools: int


class CoordinatorHealth(TypedDict):
    """Whether a process leads, on any server, and what it depends on."""

    status: Annotated[str, Meta(extra_json_schema={"enum": ["healthy", "degraded"]})]
    database: Annotated[str, Meta(extra_json_schema={"enum": [*DATABASES]})]
    reason: str | None
    active: bool
    term: int
    since: Instant | None
    last_heartbeat_at: Instant | None
    last_cycle_at: Instant | None
    cycles: int
    lease: float | None
    store: str
    here: bool
    sinks: Sequence[SinkHealth]
    spawners: Sequence[SpawnerHealth]


class RecoveredProject(TypedDict):
    """The result in one project."""

    project: str
    settled: int
    events: Annotated[dict[str, int], Meta(description="kind of event → how many")]
    failed: Annotated[dict[str, str], Meta(description="row → error")]


class RecoveredView(TypedDict):
    """What `recover` has done."""

    settled: int
    projects: Sequence[RecoveredProject]


class NoteView(TypedDict):
    """A note of a server's own cycles; kept only by that server, between the events."""

    time: Instant
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["coordinator.note"]})]
    level: Annotated[str, Meta(extra_json_schema={"enum": list(LEVELS)})]
    message: str

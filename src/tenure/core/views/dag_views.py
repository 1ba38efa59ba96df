"""Dags, plans and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from tenure.core import graph
from tenure.core.views.budget_views import BudgetView
from tenure.core.views.task_views import Instant, OnFailure, State, UsageView


class DagEntry(TypedDict):
    """A dag with its tasks by state."""

    project: str
    id: str
    title: str
    plan: str | None
    run: int
    status: Annotated[
        str,
        Meta(extra_json_schema={"enum": list(graph.STATUSES)}, description="running: something is held or checked"),
    ]
    total: int
    live: int
    blocked: int
    completed: int
    cancelled: int
    dead: int
    fired: Sequence[str]
    created_by: str
    created_at: Instant
    ended_at: Instant | None
    on_end: Annotated[dict[str, Any], Meta(description="status → template created at its end")]


class DagTask(TypedDict):
    """A node of a dag."""

    id: str
    key: str
    state: State
    title: str
    agent: str | None


class DagEdge(TypedDict):
    """`task` waits for `needs`."""

    task: str
    needs: str
    on_failure: OnFailure


class DagView(DagEntry):
    """A dag with its tasks, edges and critical path, its budget and what it has cost."""

    budget: Annotated[BudgetView | None, Meta(description="None where it has none")]
    usage: Annotated[UsageView | None, Meta(description="what its tasks have cost; None before anything is reported")]
    roots: Sequence[str]
    leaves: Sequence[str]
    tasks: Sequence[DagTask]
    edges: Sequence[DagEdge]
    critical_path: Sequence[str]


class PlannedNeed(TypedDict):
    """A dependency, as a plan states it."""

    id: str
    key: str
    on_failure: OnFailure
    subtask: bool
    is_met: bool


class PlannedTask(TypedDict):
    """A task as input; `fields` are those of a new task."""

    id: str
    key: str
    track: str
    state: State
    parent: str | None
    parent_key: str | None
    name: str | None
    fields: dict[str, Any]
    depends_on: Sequence[PlannedNeed]


class PlanView(TypedDict):
    """A group of tasks that can be written to a file and applied again."""

    id: str | None
    title: str
    plan: str | None
    on_end: Annotated[dict[str, Any], Meta(description="status → template created at the dag's end")]
    budget: Annotated[str | None, Meta(description="the dag's budget in dollars")]
    tasks: Sequence[PlannedTask]


class FailedAttempt(TypedDict):
    """One attempt, as shown in its dead letter."""

    generation: int
    attempt: int
    agent: str
    session: str
    reason: str | None
    error_class: str | None
    error: str | None
    counted: bool
    duration: Annotated[float, Meta(description="seconds")]
    usage: UsageView | None


class DeadLetterView(TypedDict):
    """A task that is not tried again, with all of its attempts."""

    project: str
    id: str
    task: str
    key: str | None
    ref: str | None
    title: str | None
    blocks: Annotated[int, Meta(description="how many unfinished tasks wait behind it")]
    waiting: Annotated[Sequence[str], Meta(description="the keys of the first of them")]
    run: int
    dag: str
    error_class: str
    error: str
    history: Sequence[FailedAttempt]
    usage: Annotated[UsageView | None, Meta(description="of all these attempts")]
    poison_pill: bool
    dead_lettered_at: Instant
    reviewed_by: str | None
    reviewed_at: Instant | None
    resolution: str | None
    note: str | None
    why: NotRequired[Annotated[str, Meta(description="why it is not tried again, while it waits")]]

"""The project as a whole: tracks, status, log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from tenure.core.events import KINDS, LEVELS
from tenure.core.views.budget_views import BudgetView
from tenure.core.views.team_views import AgentView, TrackProgress
from tenure.core.views.usage_views import TotalsView
from tenure.core.views.validation_views import ValidationCounts
from tenure.core.views.view_values import Instant


class TrackView(TypedDict):
    """A parallel stream of work in a project."""

    code: str
    name: str
    purpose: str
    last_sequence: int


class LeaderView(TypedDict):
    """Who leads, with which term."""

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
        dict[str, ValidationCounts], Meta(description="validator → results that wait for it, or are being checked")
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
    trace_id: NotRequired[str]
    causation_id: NotRequired[str]

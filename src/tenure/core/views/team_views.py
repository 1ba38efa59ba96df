"""Agents, mail, API keys, reservations, processes and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from tenure.core import limits, reservations, roles, team
from tenure.core.views.budget_views import RoomView
from tenure.core.views.task_views import Instant


class PrincipalView(TypedDict):
    """Who sent the request."""

    tenant: str
    role: Annotated[str, Meta(extra_json_schema={"enum": list(roles.ROLES)})]
    user: str | None
    agent: str | None
    projects: Annotated[Sequence[str], Meta(description="its projects; empty: all")]
    key: Annotated[str, Meta(description="the id of its API key")] | None
    tenants: Annotated[
        Sequence[str],
        Meta(description=f"by name, those that it may name with the same credentials; at most {limits.LISTED_TENANTS}"),
    ]
    manages_tenants: Annotated[bool, Meta(description="whether it is the deployment's owner, in the home tenant")]
    grants: Annotated[Sequence[str], Meta(description="the roles that it may give to members and take away")]


Status = Annotated[str, Meta(extra_json_schema={"enum": list(team.STATUSES)})]


class AgentView(TypedDict):
    """A worker, and what it holds."""

    name: str
    type: str
    status: Status
    capabilities: Sequence[str]
    models: Sequence[str]
    tracks: Sequence[str]
    region: str | None
    max_concurrent_tasks: int | None
    health: Annotated[str, Meta(extra_json_schema={"enum": list(team.HEALTH)})]
    tasks: Sequence[str]
    last_seen: Instant
    registered_at: Instant
    cool_until: Instant | None
    host: str | None
    pid: int | None
    draining: bool
    terminated_at: Instant | None
    terminated_for: str | None
    managed: Annotated[bool, Meta(description="a program looks after it: a runner, a worker, a pool")]
    task: Annotated[str | None, Meta(description="the key of the task it works on")]
    step: str | None
    percent: int | None
    expected_at: Annotated[Instant | None, Meta(description="when it expects to complete the task")]
    memory_mb: Annotated[int | None, Meta(description="of its processes, by its last heartbeat")]
    cpu_percent: Annotated[int | None, Meta(description="of one core, of all its processes")]
    next_heartbeat_at: Annotated[Instant | None, Meta(description="when the next is due, of a managed agent")]
    metadata: dict[str, Any]


class MinuteView(TypedDict):
    """An agent's health in one minute."""

    at: Instant
    health: Annotated[str, Meta(extra_json_schema={"enum": list(team.HEALTH)})]
    memory_mb: int | None
    cpu_percent: int | None
    percent: int | None


class AgentInFull(AgentView):
    """One agent with its last hour."""

    heartbeat: Annotated[float, Meta(description="seconds between its heartbeats")]
    stale_after: Annotated[float, Meta(description="seconds of silence after which it is stale")]
    budgets: Annotated[Sequence[RoomView], Meta(description="what its claims could still reserve in each")]
    minutes: Annotated[
        Sequence[MinuteView], Meta(description="oldest first, at most one for each minute of the last hour")
    ]


class HealthView(TypedDict):
    """How an agent is."""

    name: str
    status: Status
    health: Annotated[str, Meta(extra_json_schema={"enum": list(team.HEALTH)}, description="its own word")]
    last_seen: Instant
    silent_for: Annotated[float, Meta(description="seconds since its last sign of life")]
    heartbeat: Annotated[float, Meta(description="seconds between its heartbeats")]
    stale_after: Annotated[float, Meta(description="seconds of silence after which it is stale")]
    next_heartbeat_at: Annotated[Instant | None, Meta(description="when the next is due, of a managed agent")]
    task: Annotated[str | None, Meta(description="the key of the task it works on")]
    step: str | None
    percent: int | None
    expected_at: Annotated[Instant | None, Meta(description="when it expects to complete the task")]
    memory_mb: int | None
    cpu_percent: int | None
    metadata: dict[str, Any]
    minutes: Annotated[
        Sequence[MinuteView], Meta(description="oldest first, at most one for each minute of the last hour")
    ]


# `from` is a keyword, and cannot be a field of a class.
_Mail = TypedDict(
    "_Mail",
    {
        "id": str,
        "from": str,
        "to": str,
        "type": Annotated[str, Meta(extra_json_schema={"enum": list(team.MESSAGE_TYPES)})],
        "text": str,
        "action": Annotated[str | None, Meta(description="of a command for programs")],
        "expires_at": Instant | None,
        "reply_to": str | None,
        "sent_at": Instant,
    },
)


class MessageView(_Mail):
    """A message as one recipient sees it."""

    read_at: Instant | None


class MessageEntry(_Mail):
    """A message with all its recipients, and who has read it."""

    recipients: Sequence[str]
    read_by: Sequence[str]


class DirectiveView(TypedDict):
    """A directive for an agent; with a task, for the holder of that task."""

    directive: str
    text: str
    task: NotRequired[str]


class AgentNewsView(TypedDict):
    """What an agent should hear now."""

    mail: Annotated[int, Meta(description="unread messages")]
    directives: Sequence[DirectiveView]


class KeyView(TypedDict):
    """An API key, without its secret. Until `previous_until` the previous secret is valid too."""

    id: str
    name: str
    role: Annotated[str, Meta(extra_json_schema={"enum": list(roles.ROLES)})]
    status: Annotated[str, Meta(extra_json_schema={"enum": ["live", "expired", "revoked"]})]
    user: str | None
    agent: str | None
    projects: Sequence[str]
    capabilities: Sequence[str]
    created_at: Instant
    created_by: str
    used_at: Instant | None
    rotated_at: Instant | None
    previous_until: Instant | None
    expires_at: Instant | None
    revoked_at: Instant | None


class ReservationView(TypedDict):
    """A reservation of something other than a task. With a claim it has the claim's lease."""

    id: str
    pattern: str
    mode: Annotated[str, Meta(extra_json_schema={"enum": list(reservations.MODES)})]
    agent: str
    session: str
    task: str | None
    until: Instant | None


class ProcessView(TypedDict):
    """A process that holds claims, and the keys of their tasks."""

    host: str
    boot: str
    pid: int
    start: int
    tasks: Sequence[str]


class SessionEntry(TypedDict):
    """A session; it has ended if it has an end."""

    id: str
    agent: str
    user: str | None
    created_at: Instant
    last_activity: Instant
    ended_at: Instant | None


class OwnClaim(TypedDict):
    """A claim of a session: live, or expired or paused while held."""

    task: str
    key: str
    ref: str
    agent: str
    generation: int
    state: str
    reason: str | None
    released_at: Instant | None


class Remembered(TypedDict):
    """A line of a session's history."""

    event: str
    time: Annotated[Instant, Meta(description="of renewals, of the last one; of a claim that has ended, its end")]
    task: str | None
    track: str | None
    sequence: Annotated[int | None, Meta(description="the task's, in its track")]
    generation: int | None
    agent: str | None
    outcome: NotRequired[Annotated[str | None, Meta(description="of a submitted result: ACCEPTED or REJECTED")]]
    work_product: NotRequired[str | None]
    details: NotRequired[dict[str, Any]]
    count: NotRequired[int]


class TrackProgress(TypedDict):
    """The progress of a track."""

    completed: int
    in_progress: int
    pending: int
    assigned: NotRequired[Annotated[Sequence[str], Meta(description="agents that it is assigned to, by the router")]]


class ActiveClaim(TypedDict):
    """A task that the session holds."""

    key: str
    track: str
    generation: int
    agent: str
    lease_until: Instant


class SessionView(SessionEntry):
    """What a session claimed, did and lost."""

    tenant: str
    project: str
    is_over: bool
    task_log: Sequence[Remembered]
    more: Annotated[bool, Meta(description="whether `task_log` leaves out older entries")]
    active_claims: Sequence[ActiveClaim]
    completed: Sequence[str]
    track_assignments: Annotated[
        dict[str, str],
        Meta(description="track → agent: those it registered, holds tasks of, or got from the router"),
    ]
    track_progress: dict[str, TrackProgress]

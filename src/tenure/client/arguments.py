"""The keyword arguments of verbs that take many: for type checkers and editors, from the fields of the commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tenure.client.times import Duration, Instant, When
    from tenure.core.commands import Dependency
    from tenure.core.records import RetryPolicy


class TaskChanges(TypedDict, total=False):
    """Fields of a task that can be edited."""

    title: str
    description: str
    type: str
    tags: Iterable[str]
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    constraints: Mapping[str, Any]
    output: Mapping[str, Any]
    priority: int | str
    boost: float | None
    deadline: Instant | None
    not_before: Instant | None
    max_attempts: int
    retry: RetryPolicy | Mapping[str, Any]
    touches: Iterable[str]
    on_lost: str


class TaskOptions(TypedDict, total=False):
    """Fields of a new task, beside its title, type and spec."""

    after: Iterable[str | Dependency]  # its dependencies
    key: str | None
    track: str | None
    description: str
    tags: Iterable[str]
    metadata: Mapping[str, Any]
    constraints: Mapping[str, Any]
    output: Mapping[str, Any]
    priority: int | str
    boost: float | None  # points a minute; None: the project's
    deadline: When | None
    deadline_in: Duration | None
    not_before: When | None
    not_before_in: Duration | None
    parent: str | None
    max_attempts: int
    retry: RetryPolicy
    touches: Iterable[str]
    on_lost: str
    idempotency_key: str | None
    draft: bool


class CallOptions(TaskOptions, total=False):
    """Fields of the tasks that call a worker's function."""

    title: str  # the function's name where none is given


class TaskFields(TaskOptions, total=False):
    """Fields of a new task."""

    type: str
    spec: Mapping[str, Any]


class ClaimOptions(TypedDict, total=False):
    """What a claim may be limited to; `capabilities` defaults to those that the agent registered."""

    capabilities: Iterable[str] | None
    tracks: Iterable[str]
    types: Iterable[str]
    tags: Iterable[str]
    region: str | None
    without: Iterable[str]


class ProjectSettings(TypedDict, total=False):
    default_track: str | None
    boost: float | None
    agents_may_operate: bool | None
    limits: Mapping[str, int] | None
    change_limits: Mapping[str, int | None] | None
    routing: bool | None
    router: bool | None
    order: str | None
    lead: str | None
    compliance: str | None


class BudgetFields(TypedDict, total=False):
    period: str | None  # day, week, month; once
    zone: str | None
    begins_at: Instant | None
    ends_at: Instant | None
    throttle: bool | None


class AgentFields(TypedDict, total=False):
    user: str | None
    type: str
    capabilities: Iterable[str]
    models: Iterable[str]
    region: str | None
    tracks: Iterable[str]
    max_concurrent_tasks: int | None
    heartbeat: Duration
    stale_after: Duration
    host: str | None
    boot: str | None
    pid: int | None
    pid_start: int | None
    managed: bool
    public_key: str | None


class Health(TypedDict, total=False):
    health: str | None
    task: str | None
    percent: int | None
    metadata: Mapping[str, Any] | None
    step: str | None
    memory_mb: int | None
    cpu_percent: int | None

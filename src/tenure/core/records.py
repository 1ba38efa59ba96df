"""The rows that a store keeps, one frozen struct per kind; those of a task are in `task_records.py`.

`KINDS` is what stores read: the table's name, and the fields that are left out of events (`unlogged`: presence,
renewals and derived fields). A row is identified by (tenant, project, id); the tenant is the transaction's.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from tenure.core import limits
from tenure.core.lifecycle import Cancelled, PauseCause
from tenure.core.messaging_records import DataKey, Delivery, Sink, Webhook
from tenure.core.pool_records import Pool, Spawn
from tenure.core.task_records import (
    Answered,
    Artifact,
    Body,
    Brief,
    Checkpoint,
    Claim,
    Content,
    Dag,
    DeadLetter,
    Edge,
    Landing,
    LastError,
    Result,
    RetryPolicy,
    RetryWords,
    Row,
    Signature,
    Task,
    Usage,
    Validation,
)
from tenure.core.tenant_records import ClaimShare, Member, Tenant

STORE = ""  # the project of rows and events that belong to no project, as tenants, members, keys and leaders


class Track(Row, frozen=True, kw_only=True):
    """The last counts are of tasks without rows: archived, or deleted from the archive."""

    name: str
    purpose: str = ""
    last_sequence: int = 0
    completed: int = 0
    cancelled: int = 0
    pruned: int = 0  # of these: deleted from the archive
    gone: tuple[tuple[int, int], ...] = ()  # their sequences, from and to: a key is never reused
    # With the project's router: see core/tracks.py.
    max_agents: int = 1
    assigned: dict[str, int] = {}  # agent → since when
    pinned: tuple[str, ...] = ()  # of these: assigned by a person, until released
    idle_since: dict[str, int] = {}  # of these: agents that hold nothing there → since when


class Project(Row, frozen=True, kw_only=True):
    """Its id and its project are its name."""

    default_track: str = "A"
    boost: int = 10
    agents_may_operate: bool = False
    stopped: dict[str, str] = {}  # "track:B" → why; "project:" stops all
    limits: dict[str, int] = {}
    watch: Watch | None = None
    created_at: int = 0
    routing: bool = True  # claims recommend a model
    router: bool = False  # a track is worked on by the agents assigned to it
    ordering: str = "priority"  # or shortest: of tasks that are created from now on
    order_turn: int = 0  # grows by one with each change of the order
    signs: bool = False  # a session has a public key: claims take no fast path
    sealed: bool = False  # a task has had secrets: what holders write is searched for theirs
    audited_at: int = 0  # since when its log is sealed; 0: it is not
    compliance: str = ""  # the retention preset: see core/compliance.py
    lead: str = "default"  # auto: an agent leads; off: none does; default: auto in a store without a server
    review_other_person: bool = False  # a review is for a person other than those behind the claim
    # Repeated here from rows that a claim would otherwise have to read:
    limited: tuple[str, ...] = ()  # models in trouble, each a Model
    typical: dict[str, tuple[int, int | None]] = {}  # of each LikeTasks with enough tasks: median tokens and cost
    funded: tuple[str, ...] = ()  # scopes with a budget here; a task knows its own
    set_aside: dict[str, int] = {}  # keys of budgets with tasks set aside → the lowest price


class Agent(Row, frozen=True, kw_only=True):
    """A worker; its id is its name, since sessions that share a name are one agent."""

    type: str = "generic"
    capabilities: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    region: str | None = None
    tracks: tuple[str, ...] = ()
    max_concurrent_tasks: int | None = None
    draining: bool = False
    terminated_at: int | None = None  # terminated by an operator: it claims nothing until resumed
    terminated_for: str | None = None  # the operator's reason
    left_at: int | None = None
    health: str = "ok"
    host: str | None = None
    boot: str | None = None
    pid: int | None = None
    pid_start: int | None = None
    heartbeat: int = 30_000_000
    stale_after: int = round(limits.AGENT_STALE) * 1_000_000
    registered_at: int
    last_seen: int
    stale: bool = False  # its staleness has been announced
    memory_mb: int | None = None
    cpu_percent: int | None = None
    step: str | None = None
    troubles: int = 0  # its own failures in a row
    cool_until: int | None = None
    managed: bool = False  # a program looks after it: a runner, a worker, a pool; not a person's shell
    task: str | None = None  # the task that its last heartbeat named
    percent: int | None = None  # of its work, by its last heartbeat
    metadata: dict[str, Any] = {}


class HealthMinute(Row, frozen=True, kw_only=True):
    """What an agent used in one minute, at most. Its id is `AGENT@MINUTE` of the hour: the next hour overwrites it."""

    agent: str
    at: int  # the beginning of the minute
    health: str = "ok"
    memory_mb: int | None = None
    cpu_percent: int | None = None
    percent: int | None = None


class Session(Row, frozen=True, kw_only=True):
    agent: str
    user: str | None = None
    created_at: int
    last_activity: int
    ended_at: int | None = None
    public_key: str | None = None  # its results must be signed with this key


class Message(Row, frozen=True, kw_only=True):
    """One row per recipient; its id is `MESSAGE_ID:RECIPIENT`."""

    message: str
    sender: str
    recipient: str
    address: str
    type: str = "chat"
    text: str
    action: str | None = None  # of a command for programs
    expires_at: int | None = None
    reply_to: str | None = None
    sent_at: int
    read_at: int | None = None


class Reservation(Row, frozen=True, kw_only=True):
    """A fenced reservation of a pattern. With a claim it lasts as long as that; alone it has a lease and a nonce."""

    pattern: str
    mode: str = "exclusive"
    task: str | None = None
    generation: int = 1
    nonce: bytes = b""
    epoch: str = ""
    agent: str
    session: str
    created_at: int
    lease: int | None = None
    until: int | None = None


class Cycles(msgspec.Struct, frozen=True, kw_only=True):
    """A coordinator's progress, as reported with its last renewal."""

    count: int = 0  # since it was elected
    last_at: int | None = None
    error: str | None = None  # the last one
    error_at: int | None = None


class Leader(Row, frozen=True, kw_only=True):
    """Who leads: project "" and id "coordinator" for the store's duties, id "agent" for a project's @leader."""

    holder: str
    term: int
    elected_at: int
    lease: int
    until: int
    process: str | None = None  # of an agent elected by its command: its end ends the term
    is_auto: bool = False  # elected by a command of the agent, and renewed by its commands
    is_lost: bool = False  # the end of its lease has been announced
    duties_begun: dict[str, int] = {}  # of the coordinator: duty → the time of its last start, under any leader
    cycles: Cycles = Cycles()
    store_term: int | None = None  # of a tenant beside the home tenant: the store's term under which it was taken


class Request(Row, frozen=True, kw_only=True):
    """The answer of a command that has no other row to keep it."""

    digest: str
    outcome: dict[str, Any]
    at: int


class Archived(Row, frozen=True, kw_only=True):
    """A finished task with all its rows and its log, as one row; its id is the task's.

    The fields are those by which tasks are named, listed and counted. A row that is `out` was brought back because the
    task changed: it holds only the older part of the log.
    """

    key: str
    ref: str
    track: str
    type: str
    dag: str | None = None  # None for a single task's, which has no row
    parent: str | None = None
    root: str | None = None  # of a lineage, which moves as a whole; None for a task without subtasks
    idempotency_key: str | None = None
    state: str
    priority: int
    tags: tuple[str, ...] = ()
    deadline: int | None = None
    created_at: int
    updated_at: int
    completed_at: int | None = None
    archived_at: int
    out: bool = False
    events: int  # number of the task's events in the document
    size: int  # of the uncompressed document
    document: bytes


class Budget(Row, frozen=True, kw_only=True):
    """What a scope may spend. Its id is `project`, `dag:ID`, `task:ID` or `agent:NAME`; the tenant's is `tenant`, in
    the project "".

    Amounts are nano-dollars or tokens. The last fields are counted in the transaction that books, reserves or returns,
    and have no events.
    """

    scope: str  # tenant, project, dag, task, agent
    currency: str  # usd, tokens
    allocated: int
    default_estimate: int  # what a task of unknown size reserves
    task: str | None = None  # of a task's budget
    period: str | None = None  # day, week, month: it starts over with each; None: once
    zone: str = "UTC"
    begins_at: int | None = None  # without a period: nothing is reserved before or after
    ends_at: int | None = None
    throttle: bool = False  # space claims out while it would be used up within a week
    created_at: int
    created_by: str
    priced_at: int = 0  # when `default_estimate` was last set

    consumed: int = 0  # in this period
    reserved: int = 0  # by live claims
    earlier: int = 0  # spent in the scope before this period
    since: int = 0  # when this period began
    until: int | None = None  # when the next one begins
    alerts: dict[str, int] = msgspec.field(default_factory=dict)  # crossed thresholds → since when
    burn: tuple[tuple[int, int], ...] = ()  # (hour, spent in it) of the last week, oldest first
    next_claim_at: int | None = None  # throttled: nothing is reserved before this time


# Fields that follow from claims, usage and time.
COUNTED = frozenset({"consumed", "reserved", "earlier", "since", "until", "alerts", "burn", "next_claim_at"})


class Model(Row, frozen=True, kw_only=True):
    """A rate-limited model, by name; deleted at its next success."""

    troubles: int = 0
    cool_until: int | None = None
    tried_by: str | None = None  # half-open: the claim that tries it; while it is live no other does


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A finished task and its usage."""

    task: str
    estimate: int | None  # expected tokens; None: no estimate
    tokens: int
    cost: int | None  # nano-dollars; None: not known


class LikeTasks(Row, frozen=True, kw_only=True):
    """Usage of the last tasks of one type and size; its id is `TYPE|SIZE`. Rows of both are bounded."""

    type: str
    size: str  # as in core/models.py
    finished: tuple[Finished, ...] = ()  # oldest first


class ApiKey(Row, frozen=True, kw_only=True):
    """An API key, with project ""; its id is the public part. Only a digest of the secret is kept."""

    name: str
    role: str
    user: str | None = None
    agent: str | None = None  # of an agent's key: the one agent that it may act for
    projects: tuple[str, ...] = ()  # empty: all
    digest: bytes = b""
    previous: bytes = b""  # the digest before the last rotation
    previous_until: int | None = None
    created_at: int
    created_by: str  # who had its secret first: of a rotated key, who rotated it
    rotated_at: int | None = None
    expires_at: int | None = None
    revoked_at: int | None = None
    request_id: str | None = None  # of its creation or last rotation
    request_hash: str | None = None
    capabilities: tuple[str, ...] = ()  # beyond its role, as in `checker`
    used_at: int | None = None  # when it was last used, to the minute


class WebSession(Row, frozen=True, kw_only=True):
    """A sign-in to the dashboard, with project "". Its id is the digest of the browser's token."""

    key: str  # the API key used; the session ends with it
    key_digest: bytes  # the digest of its secret at sign-in: a rotation ends the session
    created_at: int
    expires_at: int


class Schedule(Row, frozen=True, kw_only=True):
    """A schedule; its id is its name."""

    cron: str
    zone: str = "UTC"
    misfire: str = "once"  # policy for missed ticks: skip, once, all
    template: dict[str, Any]
    enabled: bool = True
    reason: str | None = None  # why it is paused
    next_at: int | None = None  # the next tick; None while it is paused
    last_at: int | None = None  # the last handled tick
    last_made: str | None = None  # the key of the last task, or the id of the last dag
    last_error: str | None = None
    fired: int = 0
    missed: int = 0  # how often ticks were skipped
    failed: int = 0  # ticks whose tasks could not be created
    created_by: str = "human:"
    created_at: int
    changed_at: int


class Trigger(Row, frozen=True, kw_only=True):
    """A trigger, on an event or a signed delivery from outside; its id is its name."""

    kind: str  # of event, a pattern of kinds, or `webhook`
    filter: dict[str, Any]  # path → required value
    template: dict[str, Any]
    enabled: bool = True
    behind: int = 0  # only events after this sequence concern it
    most: int = 100  # firings per hour
    hour_at: int | None = None  # when the hour began that `hour` counts in
    hour: int = 0
    fired: int = 0
    failed: int = 0
    held_back: int = 0  # suppressed by the hourly limit or the chain depth
    reported_at: int | None = None  # when that was last reported
    last_at: int | None = None
    last_made: str | None = None
    last_error: str | None = None
    signature: str | None = None  # of a webhook: standard, github
    secret: bytes = b""
    previous: bytes = b""  # the secret before the last rotation
    previous_until: int | None = None
    request_id: str | None = None  # that created the secret
    request_hash: str | None = None
    created_by: str = "human:"
    created_at: int
    changed_at: int


class Cursor(Row, frozen=True, kw_only=True):
    """How far a reader of the log has come in a project; its id is the reader's name.

    Within a project sequences follow the order of commits, so nothing can appear behind a cursor that moves over the
    events of one project. It is created with the first trigger or end template.
    """

    sequence: int


class Watch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a project investigates failures: for any tag, type or track of which enough recent attempts failed."""

    window: float = 24 * 3600.0  # seconds
    threshold: float = 0.5  # of attempts
    least: int = 10  # attempts before the rate counts
    by: tuple[str, ...] = ("tag", "type", "track")
    track: str | None = None  # where its tasks go; None: the project's default
    priority: int = 20


class Seal(Row, frozen=True, kw_only=True):
    """A range of a project's log, sealed; its id is its number, which sorts as text.

    A seal with `last` 0 covers documents that were in the archive when the audit began. One without leaves joins the
    log of a copy to the seals of its source, whose sequences count no more.
    """

    number: int  # 1, 2, …: without a gap, also across copies
    first: int  # the sequence of the first event; 0: of the archive, or a joint
    last: int
    count: int
    leaves: bytes  # 32 bytes for each event, in order of sequence
    sequences: bytes  # 8 bytes for each; 0: the leaf is that of a whole document
    previous: bytes  # the head of the seal before
    head: bytes
    sealed_at: int
    form: int  # of the leaves: see `log_seals.leaf`


class PrunedLeaves(Row, frozen=True, kw_only=True):
    """The leaves of events that retention has deleted; its id is that of the event `archive.pruned`, which has their
    digest."""

    leaves: bytes
    at: int


class Kind(msgspec.Struct, frozen=True):
    """How a store keeps one kind of row."""

    table: str
    unlogged: frozenset[str] = frozenset()
    logged: bool = True  # False: it has no events, and replay does not restore it


# Derived from other rows: replay computes it instead of reading it.
_STAMPED = frozenset({"lane", "band", "rank", "due_at", "plain", "set_aside_for", "price"})
_FROM_GRAPH = frozenset({"height", "waits_on", "unmet", "dependents", "children", "lineage"})
_RENEWALS = frozenset({"lease", "lease_until", "renewals", "presented_at"})
_TRIES = frozenset(
    {
        "secret", "previous", "sequence", "since", "parked", "delivered", "failed", "tries", "failing_since",
        "down_since", "up_at", "wait_until", "success_at", "failure_at", "status", "error",
    }
)  # fmt: skip
_STARTS = frozenset({"spawned", "failures", "wait_until", "error", "error_at"})
_COUNTS = frozenset({"status", "total", "live", "blocked", "completed", "cancelled", "dead"})

KINDS: dict[type[Row], Kind] = {
    Task: Kind("task", _STAMPED | _FROM_GRAPH | _RENEWALS | {"metered", "capped", "funded", "reserved", "losses"}),
    Brief: Kind("brief"),
    Claim: Kind("claim", frozenset({"nonce", "process", "funds", "requests", "key"})),
    Result: Kind("result"),
    Signature: Kind("signature"),
    Validation: Kind("validation", frozenset({"nonce", "lease", "until"})),
    Checkpoint: Kind("checkpoint"),
    Usage: Kind("usage", logged=False),
    Budget: Kind("budget", COUNTED),
    Landing: Kind("landing"),
    Artifact: Kind("artifact"),
    Content: Kind("content", logged=False),
    Body: Kind("body", logged=False),
    Edge: Kind("edge"),
    Dag: Kind("dag", _COUNTS),
    DeadLetter: Kind("dead_letter"),
    Track: Kind("track", frozenset({"idle_since"})),
    Project: Kind("project", frozenset({"limited", "typical", "funded", "set_aside", "sealed"})),
    Agent: Kind(
        "agent",
        frozenset(
            {
                "last_seen",
                "health",
                "memory_mb",
                "cpu_percent",
                "step",
                "troubles",
                "cool_until",
                "task",
                "percent",
                "metadata",
            }
        ),
    ),
    HealthMinute: Kind("health_minute", logged=False),
    Session: Kind("session", frozenset({"last_activity"})),
    Model: Kind("model", logged=False),
    LikeTasks: Kind("like_tasks", logged=False),
    Message: Kind("message", frozenset({"read_at"})),
    Reservation: Kind("reservation", frozenset({"nonce", "until", "lease"})),
    Leader: Kind("leader", frozenset({"until", "lease", "duties_begun", "cycles", "process"})),
    Request: Kind("request", logged=False),
    Archived: Kind("archived", logged=False),
    ApiKey: Kind("api_key", frozenset({"digest", "previous", "used_at"})),
    WebSession: Kind("web_session", logged=False),
    Schedule: Kind("schedule"),
    Trigger: Kind("trigger", frozenset({"secret", "previous", "held_back", "reported_at", "behind"})),
    Cursor: Kind("log_cursor", logged=False),
    Sink: Kind("sink", logged=False),
    Webhook: Kind("webhook", _TRIES),
    Delivery: Kind("delivery", logged=False),
    DataKey: Kind("data_key", logged=False),
    Pool: Kind("pool", _STARTS),
    Spawn: Kind("spawn", logged=False),
    Tenant: Kind("tenant"),
    Member: Kind("member"),
    ClaimShare: Kind("claim_share", logged=False),
    Seal: Kind("seal", logged=False),
    PrunedLeaves: Kind("pruned_leaves", logged=False),
}

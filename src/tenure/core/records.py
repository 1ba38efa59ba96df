"""The rows that a store keeps, one frozen struct a kind.

Each field is a column: scalars as they are, everything else as JSON. The rules make new versions of rows with
`replace`; they never change one in place. Times are integer microseconds UTC, durations integer microseconds.

`KINDS` is what stores read: the table's name, which fields are left out of events (`unlogged`: presence, renewals
and what core derives again). A row is known by (tenant, project, id); the tenant is the transaction's.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from tenure.core import limits
from tenure.core.artifact_rows import Artifact, Content
from tenure.core.budget_rows import COUNTED, Budget
from tenure.core.causes import Cancelled, PauseCause, reason_of
from tenure.core.key_rows import ApiKey, WebSession
from tenure.core.model_rows import Finished, LikeTasks, Model
from tenure.core.row import Row
from tenure.core.source_rows import Cursor, Schedule, Trigger, Watch

__all__ = [
    "KINDS", "ApiKey", "Artifact", "Budget", "Cancelled", "Content", "Cursor", "Finished", "Kind", "LikeTasks", "Model",
    "PauseCause", "Row", "Schedule", "Trigger", "Watch", "WebSession", "replace",
]  # fmt: skip


class LastError(msgspec.Struct, frozen=True, kw_only=True):
    error_class: str
    message: str
    generation: int
    at: int


class Task(Row, frozen=True, kw_only=True):
    """The hot row: where a task stands and who holds it. What was asked for is in its Brief."""

    key: str
    ref: str
    track: str
    sequence: int
    type: str = "code"
    dag: str
    parent: str | None = None
    local_name: str | None = None  # of a spawned subtask: (parent, run, name) is its key
    parent_run: int = 0
    depth: int = 0
    root: str | None = None  # the first ancestor, for the bound on a lineage
    lineage: int = 1  # on a root: tasks in its lineage, itself included
    children: int = 0
    idempotency_key: str | None = None

    state: str
    state_before: str | None = None  # of a paused or cancelled task
    pauses: tuple[PauseCause, ...] = ()  # what holds it back; while held or validating: once it comes to rest
    cancelled: Cancelled | None = None
    answers: tuple[dict[str, Any], ...] = ()  # what people have answered to its holders' questions
    run: int = 1
    generation: int = 0
    attempts: int = 0
    given_back: int = 0
    max_attempts: int = 3
    retry_at: int | None = None
    last_error: LastError | None = None
    troubled: tuple[str, ...] = ()  # agents that met trouble of their own here, in this run
    failures: tuple[str, ...] = ()  # agents of the counted failures of this run, oldest first
    cool_offs: dict[str, int] = {}  # agent → until when it is not offered this task

    priority: int = 50
    boost: int = 10  # hundredths of a point a minute
    deadline: int | None = None
    not_before: int | None = None
    missed: bool = False  # the deadline's event has been written
    height: int = 0  # longest path of dependents below, at most priority.DEEPEST
    waits_on: int = 0  # dependencies in all
    unmet: int = 0  # of which are not met
    dependents: int = 0
    requires: tuple[str, ...] = ()  # capabilities, sorted
    region: str | None = None
    tags: tuple[str, ...] = ()
    guarded: bool = False  # has touches or needs: a claim takes reservations
    capped: bool = False  # it, or a task above it, has a budget of its own
    checked: bool = False  # its output contract names a validator
    brief_number: int = 1  # grows by one with each new description
    models: tuple[str, ...] = ()
    fallback_models: tuple[str, ...] = ()
    metered: bool = False  # a holder has told what it spent: its end is learnt from

    agent: str | None = None  # the holder, while held
    session: str | None = None
    claimed_at: int | None = None
    lease: int | None = None
    lease_until: int | None = None
    renewals: int = 0
    presented_at: int | None = None  # when a command last presented the receipt
    claim_epoch: str | None = None
    answerable: bool = False  # the last claim ended without its holder's word and may still submit
    wanted: str | None = None  # a directive for the holder: pause, or warn
    percent: int | None = None
    step: str | None = None
    progress_at: int | None = None
    done_by: int | None = None  # estimated completion, as the holder said
    warned_at: int | None = None  # hung: when it was warned
    funded: bool = False  # its claim holds money of budgets
    reserved: bool = False  # its claim has reservations
    unseen_since: int | None = None  # the brief number that its holder last saw, while there is a newer one
    max_duration: int | None = None
    artifacts: int = 0  # put by its claims so far: most tasks have none, and nobody needs to look

    offer_to: str | None = None
    offer_until: int | None = None
    parked: str | None = None  # under the task whose reservations it would overlap, or a budget: `$` and parking's key
    price: int | None = None  # parked under a budget: what that could not pay

    work_product: str | None = None
    created_by: str = "human:"
    trace_id: str | None = None
    created_at: int
    updated_at: int
    ready_at: int | None = None
    started_at: int | None = None
    completed_at: int | None = None
    failed_at: int | None = None
    dead_lettered_at: int | None = None
    archived_at: int | None = None
    version: int = 0

    # derived by settle.stamp whenever the row is written
    lane: str | None = None  # set while it can be claimed
    band: int = 1
    rank: int = 0
    due_at: int | None = None  # when settle next has something to do
    plain: bool = False  # a store may claim, renew and complete it by itself: see core/plain_tasks.py

    @property
    def reason(self) -> str | None:
        """Why it is paused or cancelled, in one text for people."""
        return reason_of(self.pauses, self.cancelled)


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Kept as it was said, its delays in seconds."""

    strategy: str = "exponential"  # exponential, fixed, immediate
    initial_delay: float = 10.0
    multiplier: float = 2.0
    cap: float = 300.0
    jitter: float = 0.5
    retry_on: tuple[str, ...] = ()  # empty: every class
    no_retry_on: tuple[str, ...] = ()
    poison: int = 3  # so many counted failures by at least two agents are the last; 0: no such end


class RetryWords(RetryPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy as it may be said: also in the words of other queues. It is kept and shown as a RetryPolicy."""

    jitter: float | bool = 0.5  # true: as usual; false: none
    initial_delay_sec: float | None = None
    backoff_multiplier: float | None = None
    max_delay_sec: float | None = None


class Brief(Row, frozen=True, kw_only=True):
    """The wide row: what was asked for. Its id is the task's."""

    title: str
    description: str | dict[str, str] = ""
    seen: str | dict[str, str] | None = None  # the description that a holder saw last, while Task.unseen_since is set
    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}  # prompt, context_refs, context
    constraints: dict[str, Any] = {}
    output: dict[str, Any] = {}
    retry: RetryPolicy = RetryPolicy()
    touches: tuple[str, ...] = ()
    on_lost: str = "retry"


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the holder of a claim has sent, and the answer that it got."""

    id: str
    verb: str
    digest: str
    outcome: dict[str, Any]


class Claim(Row, frozen=True, kw_only=True):
    """One row a generation: the lineage. Its id is `TASK_ID@GENERATION`."""

    task: str
    generation: int
    run: int
    attempt: int
    nonce: bytes
    epoch: str
    agent: str
    session: str
    user: str | None = None
    acquired_at: int
    lease: int
    state: str = "active"  # active, released, expired, superseded, error
    reason: str | None = None
    released_at: int | None = None
    renewals: int = 0
    counted: bool = True  # False when its attempt was given back
    continues: bool = False  # took up its own session's expired claim: the same attempt
    result_accepted: bool | None = None
    work_product: str | None = None
    error_class: str | None = None
    error: str | None = None
    model: str | None = None
    refused: int = 0  # refused results kept under this generation
    invalid: int = 0  # outputs that were not what the contract asks for
    metadata: dict[str, Any] = {}  # what the claimer said of itself
    process: str | None = None  # while it lives: the process whose end proves the holder gone
    funds: dict[str, int] | None = None  # while it lives: budget → what is left of what it reserved there
    request_id: str | None = None
    request_hash: str | None = None
    requests: tuple[Answered, ...] = ()  # the last that its holder has sent with an id, oldest first
    key: str | None = None  # the API key or token it was made with, over HTTP: its author cannot judge its result


class Result(Row, frozen=True, kw_only=True):
    task: str
    run: int
    generation: int
    session: str
    agent: str
    user: str | None = None
    submitted_at: int
    accepted: bool
    reason: str
    data: Any = None
    summary: str = ""
    size: int = 0
    digest: str = ""
    processing: int | None = None
    work_product: str | None = None
    work_lost: bool = False
    late: bool = False
    request_id: str | None = None
    artifacts: tuple[str, ...] = ()  # ids of those that are handed on with it


class Validation(Row, frozen=True, kw_only=True):
    """The check of one submission, after it: one a (task, generation), and its id is the claim's.

    It has a generation, a nonce and a lease of its own, by which the verdicts of its takers are fenced.
    """

    task: str
    claimed: int  # the task's generation
    run: int
    result: str
    validator: str
    state: str = "open"  # open, passed, refused, withdrawn
    generation: int = 0  # grows by one with each taker
    nonce: bytes = b""
    epoch: str = ""
    holder: str | None = None  # who has taken it
    agent: str | None = None  # by whose principal: an agent that is proven has nothing of another's
    taken_at: int | None = None
    lease: int = 0
    until: int = 0
    tries: int = 0  # takers since a person last let it go on
    retry_at: int | None = None  # undecided: not before then
    note: str | None = None  # why it is undecided so far
    held_back: str | None = None  # of rows from before 0.2: why the task is paused if the output is refused
    reasons: tuple[str, ...] = ()  # of the verdict
    details: dict[str, Any] = {}
    created_at: int
    decided_at: int | None = None
    decided_by: str | None = None
    request_id: str | None = None


class Checkpoint(Row, frozen=True, kw_only=True):
    """The last checkpoint of a task; its id is the task's."""

    data: dict[str, Any]
    generation: int
    agent: str
    session: str
    at: int


class Usage(Row, frozen=True, kw_only=True):
    """What one model has cost under one claim: running totals. Its id is `CLAIM_ID:MODEL`, then `|late`.

    What came with a stale receipt is a row of its own: it was paid, but does not count against the task.
    """

    task: str
    generation: int
    agent: str
    session: str
    model: str
    late: bool = False
    fresh: int = 0  # input tokens that no cache had
    cached: int = 0
    written: int = 0  # input tokens put into a cache
    output: int = 0
    cost: int | None = None  # nano-dollars; None: nobody has said
    computed: bool = False  # the cost is by the table of prices
    duration: int = 0
    at: int  # when it last grew
    pairs: int = 1  # of claims and models that it stands for: more where those of archived tasks are added up


class Landing(Row, frozen=True, kw_only=True):
    """What a claim was about to put on a branch; git says whether it came to that.

    The id of a claim's first landing is the claim's; those after it have `#0002` and so on behind it.
    """

    task: str
    generation: int
    run: int
    agent: str
    branch: str
    old: str
    new: str
    at: int


class Body(Row, frozen=True, kw_only=True):
    """A large value, named by the hash of its content; rows refer to it as `{"$body": id}`."""

    content: bytes
    uses: int = 1  # at least as many tasks as refer to it; one that is archived takes a copy along


class Edge(Row, frozen=True, kw_only=True):
    """`task` waits for `needs`. Its id is `TASK>NEEDS`."""

    task: str
    needs: str
    on_failure: str = "block"  # block, cancel, ignore
    subtask: bool = False


class Dag(Row, frozen=True, kw_only=True):
    """A group of tasks with counts of where they stand. A lone task's dag has no row: its task says it all."""

    title: str = ""
    plan: str | None = None  # name of the plan it came from
    run: int = 1
    status: str = "open"
    total: int = 0
    live: int = 0  # can run, or waits for a time or a person's word
    blocked: int = 0  # pending on others, or a draft
    completed: int = 0
    cancelled: int = 0
    dead: int = 0
    fired: tuple[str, ...] = ()  # "run:status" whose end was announced
    created_by: str = "human:"
    created_at: int
    ended_at: int | None = None
    on_end: dict[str, Any] = {}  # status → template of what its end triggers


class DeadLetter(Row, frozen=True, kw_only=True):
    """One a (task, run); its id is `TASK_ID#RUN`."""

    task: str
    run: int
    dag: str
    error_class: str
    error: str
    history: tuple[dict[str, Any], ...] = ()
    poison_pill: bool = False
    dead_lettered_at: int
    reviewed_by: str | None = None
    reviewed_at: int | None = None
    resolution: str | None = None
    note: str | None = None


class Track(Row, frozen=True, kw_only=True):
    """The counts at its end are of tasks that are no longer rows of their own: archived, or gone from there too."""

    name: str
    purpose: str = ""
    last_sequence: int = 0
    completed: int = 0
    cancelled: int = 0
    pruned: int = 0  # of these: gone from the archive as well
    gone: tuple[tuple[int, int], ...] = ()  # sequences of those, from and to: a key is never used again


class Project(Row, frozen=True, kw_only=True):
    """Its id is its own name, and so is its project."""

    default_track: str = "A"
    boost: int = 10
    agents_may_operate: bool = False
    stopped: dict[str, str] = {}  # "track:B" → why; "project:" stops all
    limits: dict[str, int] = {}
    watch: Watch | None = None
    created_at: int = 0
    routing: bool = True  # claims tell which model to use
    # Repeated here from rows that a claim would else have to read:
    limited: tuple[str, ...] = ()  # models in trouble, each a Model
    typical: dict[str, tuple[int, int | None]] = {}  # of each LikeTasks that has enough: median tokens and cost
    funded: tuple[str, ...] = ()  # scopes of which there is a budget here; a task's own is known by the task
    parked: dict[str, int] = {}  # keys of budgets under which tasks are parked → the least of their prices


class Agent(Row, frozen=True, kw_only=True):
    """A worker; its id is its name, since sessions that share a name are one agent."""

    type: str = "generic"
    capabilities: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    region: str | None = None
    tracks: tuple[str, ...] = ()
    max_concurrent_tasks: int | None = None
    draining: bool = False
    terminated_at: int | None = None  # an operator ended it: it claims nothing until one lets it go on
    terminated_for: str | None = None  # why, as the operator said
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
    troubles: int = 0  # failures of its own in a row
    cool_until: int | None = None


class Session(Row, frozen=True, kw_only=True):
    agent: str
    user: str | None = None
    created_at: int
    last_activity: int
    ended_at: int | None = None


class Message(Row, frozen=True, kw_only=True):
    """One row a recipient; its id is `MESSAGE_ID:RECIPIENT`."""

    message: str
    sender: str
    recipient: str
    address: str
    type: str = "chat"
    text: str
    reply_to: str | None = None
    sent_at: int
    read_at: int | None = None


class Reservation(Row, frozen=True, kw_only=True):
    """A fenced hold on a pattern. With a claim it has the claim's life; alone it has a lease and nonce of its own."""

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
    """How a coordinator gets on, as it told with its last renewal."""

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
    ticks: dict[str, int] = {}  # of the coordinator: duty → the last tick of it that was begun, whoever led then
    cycles: Cycles = Cycles()


class Request(Row, frozen=True, kw_only=True):
    """A remembered answer of a command that has no other row to remember it by."""

    digest: str
    outcome: dict[str, Any]
    at: int


class Archived(Row, frozen=True, kw_only=True):
    """A finished task with all that belongs to it, its log included, as one row; its id is the task's.

    The fields are those that tasks are named, listed and counted by. One that is `out` was brought back, since
    something was done with the task: it holds nothing but the older part of the log.
    """

    key: str
    ref: str
    track: str
    type: str
    dag: str | None = None  # None for a lone task's, which has no row
    parent: str | None = None
    root: str | None = None  # of a lineage, which is archived and brought back whole; None for a task without subtasks
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
    events: int  # how many of the task's events are in the document
    size: int  # of the document before it was compressed
    document: bytes


class Kind(msgspec.Struct, frozen=True):
    """How a store keeps one kind of row."""

    table: str
    unlogged: frozenset[str] = frozenset()
    logged: bool = True  # False: no event ever speaks of it, replay does not bring it back


# What follows from other rows: replay works it out again instead of reading it.
_STAMPED = frozenset({"lane", "band", "rank", "due_at", "plain", "parked", "price"})
_FROM_GRAPH = frozenset({"height", "waits_on", "unmet", "dependents", "children", "lineage"})
_RENEWALS = frozenset({"lease", "lease_until", "renewals", "presented_at"})
_COUNTS = frozenset({"status", "total", "live", "blocked", "completed", "cancelled", "dead"})

KINDS: dict[type[Row], Kind] = {
    Task: Kind("task", _STAMPED | _FROM_GRAPH | _RENEWALS | {"metered", "capped", "funded", "reserved"}),
    Brief: Kind("brief"),
    Claim: Kind("claim", frozenset({"nonce", "process", "funds", "requests", "key"})),
    Result: Kind("result"),
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
    Track: Kind("track"),
    Project: Kind("project", frozenset({"limited", "typical", "funded", "parked"})),
    Agent: Kind(
        "agent", frozenset({"last_seen", "health", "memory_mb", "cpu_percent", "step", "troubles", "cool_until"})
    ),
    Session: Kind("session", frozenset({"last_activity"})),
    Model: Kind("model", logged=False),
    LikeTasks: Kind("like_tasks", logged=False),
    Message: Kind("message", frozenset({"read_at"})),
    Reservation: Kind("reservation", frozenset({"nonce", "until", "lease"})),
    Leader: Kind("leader", frozenset({"until", "lease", "ticks", "cycles"})),
    Request: Kind("request", logged=False),
    Archived: Kind("archived", logged=False),
    ApiKey: Kind("api_key", frozenset({"digest", "previous", "used_at"})),
    WebSession: Kind("web_session", logged=False),
    Schedule: Kind("schedule"),
    Trigger: Kind("trigger", frozenset({"secret", "previous", "held_back", "told_at", "behind"})),
    Cursor: Kind("log_cursor", logged=False),
}

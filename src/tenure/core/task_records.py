"""The rows of a task: its state, content, claims, results, usage and dependencies. `records.py` has all other rows.

Each field is a column: scalars as they are, everything else as JSON. The rules make new versions of rows with
`replace`; they never change one in place. Times are integer microseconds UTC, durations integer microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tenure.core.land_request import LandRequest
from tenure.core.lifecycle import Cancelled, PauseCause, reason_of


class Row(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A row is identified by (tenant, project, id); the tenant is the transaction's."""

    project: str
    id: str


class LastError(msgspec.Struct, frozen=True, kw_only=True):
    error_class: str
    message: str
    generation: int
    at: int


class Task(Row, frozen=True, kw_only=True):
    """The hot row: a task's state and holder. Its content is in its Brief."""

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
    root: str | None = None  # the first ancestor, for the limit on a lineage
    lineage: int = 1  # on a root: tasks in its lineage, itself included
    children: int = 0
    idempotency_key: str | None = None

    state: str
    state_before: str | None = None  # of a paused or cancelled task
    pauses: tuple[PauseCause, ...] = ()  # causes of its pause; while held or validating: applied when that ends
    cancelled: Cancelled | None = None
    answers: tuple[dict[str, Any], ...] = ()  # people's answers to its holders' questions
    run: int = 1
    generation: int = 0
    attempts: int = 0
    given_back: int = 0
    max_attempts: int = 3
    retry_at: int | None = None
    last_error: LastError | None = None
    troubled: tuple[str, ...] = ()  # agents that failed for their own reasons in this run
    failures: tuple[str, ...] = ()  # agents of the counted failures of this run, oldest first
    losses: int = 0  # times in a row that its holder lost it, since that session's last sign of work
    cool_offs: dict[str, int] = {}  # agent → until when it is not offered this task

    priority: int = 50
    boost: int = 10  # hundredths of a point per minute
    estimate: int | None = None  # constraints.estimated_duration: for hung work and the lease `auto`
    length: int | None = None  # in the order `shortest`: fixed when the task is created or reordered
    order_turn: int = 0  # the project's at that moment: tasks of an earlier turn go first
    deadline: int | None = None
    not_before: int | None = None
    missed: bool = False  # the deadline's event has been written
    height: int = 0  # longest path of dependents below, at most priority.DEEPEST
    waits_on: int = 0  # dependencies in all
    unmet: int = 0  # unmet dependencies
    dependents: int = 0
    requires: tuple[str, ...] = ()  # capabilities, sorted
    region: str | None = None
    agent_type: str | None = None  # only agents of this type may claim it
    tags: tuple[str, ...] = ()
    guarded: bool = False  # has touches or needs: a claim takes reservations
    capped: bool = False  # it, or a task above it, has a cost cap
    checked: bool = False  # its output contract names a validator
    sealed: bool = False  # its spec or metadata has sealed values: no fast path
    brief_number: int = 1  # grows by one with each new description
    models: tuple[str, ...] = ()
    fallback_models: tuple[str, ...] = ()
    metered: bool = False  # a holder has reported usage: estimates learn from its end

    agent: str | None = None  # the holder, while held
    session: str | None = None
    claimed_at: int | None = None
    lease: int | None = None
    lease_until: int | None = None
    renewals: int = 0
    presented_at: int | None = None  # when a command last presented the receipt
    claim_epoch: str | None = None
    late_submit_open: bool = False  # the last claim expired or was paused while held; its holder may still submit
    wanted: str | None = None  # a directive for the holder: pause, or warn
    percent: int | None = None
    step: str | None = None
    progress_at: int | None = None
    done_by: int | None = None  # completion estimated by the holder
    warned_at: int | None = None  # hung: when it was warned
    funded: bool = False  # its claim has reserved money in budgets
    reserved: bool = False  # its claim has reservations, or its session signs: no fast path
    unseen_since: int | None = None  # the brief number that its holder last read, while there is a newer one
    max_duration: int | None = None
    artifacts: int = 0  # number put by its claims: saves a query for the many tasks without

    offer_to: str | None = None
    offer_until: int | None = None
    offer_term: int | None = None  # the term of the leader that made the offer
    set_aside_for: str | None = (
        None  # claims skip it: the task whose reservations it overlaps, or `$` and a budget's key
    )
    price: int | None = None  # set aside for a budget: the price it could not cover

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
    plain: bool = False  # it may take the fast path: see core/settle.py

    @property
    def reason(self) -> str | None:
        """Why it is paused or cancelled, in one text for people."""
        return reason_of(self.pauses, self.cancelled)


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """As given, its delays in seconds."""

    strategy: str = "exponential"  # exponential, fixed, immediate
    initial_delay: float = 10.0
    multiplier: float = 2.0
    cap: float = 300.0
    jitter: float = 0.5
    retry_on: tuple[str, ...] = ()  # empty: every class
    no_retry_on: tuple[str, ...] = ()
    poison: int = 3  # this many counted failures by at least two agents dead-letter it; 0: never


class RetryWords(RetryPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy as input: also in the terms of other queues. It is kept and shown as a RetryPolicy."""

    jitter: float | bool = 0.5  # true: the default; false: none
    initial_delay_sec: float | None = None
    backoff_multiplier: float | None = None
    max_delay_sec: float | None = None


class Brief(Row, frozen=True, kw_only=True):
    """The wide row: the content of a task. Its id is the task's."""

    title: str
    description: str | dict[str, str] = ""
    seen: str | dict[str, str] | None = None  # the description last read by the holder, while Task.unseen_since is set
    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}  # prompt, context_refs, context
    constraints: dict[str, Any] = {}
    output: dict[str, Any] = {}
    retry: RetryPolicy = RetryPolicy()
    touches: tuple[str, ...] = ()
    on_lost: str = "retry"


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A request sent by the holder of a claim, and its answer."""

    id: str
    verb: str
    digest: str
    outcome: dict[str, Any]


class Claim(Row, frozen=True, kw_only=True):
    """One row per generation: the lineage. Its id is `TASK_ID@GENERATION`."""

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
    continues: bool = False  # continues its own session's expired claim: the same attempt
    result_accepted: bool | None = None
    work_product: str | None = None
    error_class: str | None = None
    error: str | None = None
    model: str | None = None
    refused: int = 0  # refused results kept under this generation
    invalid: int = 0  # outputs that did not meet the contract
    metadata: dict[str, Any] = {}  # about the claimant; with the stack trace of its failure (core/redaction.py)
    process: str | None = None  # while live: the process whose end proves the holder gone
    funds: dict[str, int] | None = None  # while live: budget → the rest of its reservation
    request_id: str | None = None
    request_hash: str | None = None
    requests: tuple[Answered, ...] = ()  # the holder's last requests with an id, oldest first
    key: str | None = None  # the API key or token of the claimant, over HTTP: it may not judge the result
    term: int | None = None  # claimed from an offer of a leader: its term
    lease_why: str | None = None  # of the lease `auto`: where its length comes from


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
    artifacts: tuple[str, ...] = ()  # ids of those passed on with it


class Signature(Row, frozen=True, kw_only=True):
    """The signature of a result; its id is the result's."""

    task: str
    generation: int
    session: str
    public_key: str
    value: str
    request_id: str | None = None
    at: int


class Validation(Row, frozen=True, kw_only=True):
    """The validation of one submitted result: one per (task, generation); its id is the claim's.

    It has its own generation, nonce and lease, which fence the verdicts of its takers.
    """

    task: str
    claimed: int  # the task's generation
    run: int
    result: str
    validator: str
    state: str = "open"  # open, passed, refused, withdrawn
    phase: str = "judge"  # then land, where `land` says what; landing: a taker may have moved the branch
    land: LandRequest | None = None
    generation: int = 0  # grows by one with each taker
    nonce: bytes = b""
    epoch: str = ""
    holder: str | None = None  # its taker
    agent: str | None = None  # of the taker's principal: a proven agent may not touch another's
    taken_at: int | None = None
    lease: int = 0
    until: int = 0
    tries: int = 0  # takers since a person last restarted it
    retry_at: int | None = None  # undecided: not before then
    note: str | None = None  # why it is undecided
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
    """Usage of one model under one claim: running totals. Its id is `CLAIM_ID:MODEL`, then `|operation=NAME`, `|late`.

    Usage reported with a stale receipt is a separate row: it was paid, but does not count against the task.
    """

    task: str
    generation: int
    agent: str
    session: str
    model: str
    late: bool = False
    fresh: int = 0  # uncached input tokens
    cached: int = 0
    written: int = 0  # input tokens written to a cache
    output: int = 0
    cost: int | None = None  # nano-dollars; None: not reported
    computed: bool = False  # the cost comes from the price table
    duration: int = 0
    at: int  # when it last grew
    pairs: int = 1  # number of claim-model pairs: more where archived usage is summed
    operation: str = ""  # what it was for, as `review`; "": not named
    doubtful: int | None = None  # of the cost: no budget counts it until a person confirms it
    confirmed: int = 0  # of the cost: was doubtful, and counts
    rejected: int = 0  # reported beside the cost: a person says that it was not spent


class Landing(Row, frozen=True, kw_only=True):
    """A commit that a claim was about to put on a branch; git knows whether it did.

    The id of a claim's first landing is the claim's; later ones have `#0002` and so on after it.
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
    uses: int = 1  # at least the number of tasks that refer to it; an archived one takes a copy


class Edge(Row, frozen=True, kw_only=True):
    """`task` waits for `needs`. Its id is `TASK>NEEDS`."""

    task: str
    needs: str
    on_failure: str = "block"  # block, cancel, ignore
    subtask: bool = False


class Dag(Row, frozen=True, kw_only=True):
    """A group of tasks with counts by state. A single task's dag has no row."""

    title: str = ""
    plan: str | None = None  # name of the plan it came from
    run: int = 1
    status: str = "open"
    total: int = 0
    live: int = 0  # can run, or waits for a time or a person
    blocked: int = 0  # pending on others, or a draft
    completed: int = 0
    cancelled: int = 0
    dead: int = 0
    fired: tuple[str, ...] = ()  # "run:status" whose end was announced
    created_by: str = "human:"
    created_at: int
    ended_at: int | None = None
    on_end: dict[str, Any] = {}  # status → template created at its end


class DeadLetter(Row, frozen=True, kw_only=True):
    """One per (task, run); its id is `TASK_ID#RUN`."""

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


class Artifact(Row, frozen=True, kw_only=True):
    """A named output of a claim; its id is `CLAIM_ID:NAME`. Its bytes are in the artifact store, by digest."""

    task: str
    generation: int
    run: int
    agent: str
    name: str
    type: str = "application/octet-stream"
    digest: str
    size: int
    at: int


class Content(Row, frozen=True, kw_only=True):
    """Bytes that artifacts of a project refer to; its id is their digest. The artifact store knows where they are."""

    size: int
    uses: int = 0  # artifacts that refer to it, archived ones included
    idle_at: int | None = None  # since when it has no references
    dropped_at: int | None = None  # when a sweep last marked it for deletion
    gone: bool = False  # it was deleted


# --- large values: rows refer to one as `{"$body": HASH}` ---------------------------------------------------

REF = "$body"
# Where a reference may be.
HOLDERS: dict[type[Row], tuple[str, ...]] = {
    Brief: ("description", "spec"),
    Result: ("data",),
    Checkpoint: ("data",),
    Validation: ("details",),
}


def is_reference(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and REF in value


def referred(rows: Iterable[Row]) -> list[str]:
    """The names of the bodies that these rows refer to, each once."""
    values = (getattr(row, field) for row in rows for field in HOLDERS.get(type(row), ()))
    return list(dict.fromkeys(str(value[REF]) for value in values if is_reference(value)))

"""Tasks: results, lineage, usage, validations, and why a task is in its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from tenure.core import graph, inputs, lifecycle, priority

Instant = int  # microseconds in rows and views; the wire spells them, by the rule of client/wire.py
State = Annotated[str, Meta(extra_json_schema={"enum": list(lifecycle.STATES)})]
Tier = Annotated[str, Meta(extra_json_schema={"enum": list(priority.TIERS)})]
OnFailure = Annotated[str, Meta(extra_json_schema={"enum": list(graph.ON_FAILURE)})]
OnLost = Annotated[str, Meta(extra_json_schema={"enum": list(inputs.ON_LOST)})]
Usd = Annotated[str, Meta(description="dollars, exact, as a decimal text")]


class SumsView(TypedDict):
    """Tokens, money and time. `cost_usd` is the known part of the cost; `unpriced` reports came without one."""

    fresh: int
    cached: int
    written: int
    output: int
    cost_usd: Usd | None
    unpriced: int
    computed_usd: NotRequired[Annotated[Usd, Meta(description="the part computed from the price table")]]
    doubtful_usd: NotRequired[
        Annotated[Usd, Meta(description="the part that no budget counts until a person confirms it")]
    ]
    rejected_usd: NotRequired[Annotated[Usd, Meta(description="reported besides; a person says it was not spent")]]
    duration: Annotated[float, Meta(description="seconds of compute")]


class UsageView(SumsView):
    """Usage of claims; `late` is the part that does not count against the task."""

    models: Sequence[str]
    operations: NotRequired[Annotated[Sequence[str], Meta(description="those that were named")]]
    reported_at: Instant
    late: NotRequired[SumsView]


class TotalsView(SumsView):
    """A project's total usage."""

    late: NotRequired[SumsView]


class SpentView(TotalsView):
    """Spending of one task, agent, model, operation, session, type, dag or track, under the requested name."""

    task: NotRequired[str]
    agent: NotRequired[str]
    model: NotRequired[str]
    operation: NotRequired[Annotated[str, Meta(description="empty: what no operation was named for")]]
    session: NotRequired[str]
    type: NotRequired[str]
    dag: NotRequired[str]
    track: NotRequired[str]


States = Annotated[
    str, Meta(extra_json_schema={"enum": ["waiting", "review", "running", "landing", "passed", "refused", "withdrawn"]})
]


class LandView(TypedDict):
    """A commit that is to be on a branch."""

    commit: str
    onto: str


class ValidationView(TypedDict):
    """The validation of one result: by which validator, who runs it, the verdict."""

    id: str
    key: str
    generation: Annotated[int, Meta(description="the task's, of the submitted result")]
    run: int
    validator: str
    phase: Annotated[str, Meta(extra_json_schema={"enum": ["judge", "land", "landing"]})]
    land: Annotated[
        LandView | None, Meta(description="the commit, and the branch that must have it before the result counts")
    ]
    state: States
    since: Instant
    holder: Annotated[str | None, Meta(description="who validates or lands it now")]
    taken_at: Instant | None
    until: Instant | None
    tries: Annotated[int, Meta(description="how often it was taken without a verdict, this time included")]
    retry_at: Instant | None
    note: Annotated[str | None, Meta(description="why it is undecided, or what keeps it from being landed")]
    result: str
    reasons: Sequence[str]
    details: dict[str, Any]
    decided_at: Instant | None
    decided_by: str | None


class WaitingView(ValidationView):
    """An open one, with its contract."""

    task: str
    settings: dict[str, Any]


class CheckView(ValidationView):
    """One that was taken: with its contract and output."""

    settings: NotRequired[dict[str, Any]]
    data: NotRequired[Any]
    summary: NotRequired[str]


class ValidationCounts(TypedDict):
    """How many results wait for a validator, or to be landed, and how many have been taken for it."""

    waiting: int
    running: int


class LastErrorView(TypedDict):
    """The error of the last failed attempt."""

    error_class: str
    message: str
    generation: int
    at: Instant


class AnswerView(TypedDict):
    """A person's answer to a holder's question."""

    question: str | None
    answer: str
    by: str
    at: Instant


class PauseView(TypedDict):
    """One cause of a pause: person, budget, question, review, drain or lost."""

    cause: str
    reason: str
    at: NotRequired[Instant]
    by: NotRequired[str]
    source: NotRequired[Annotated[str, Meta(description="of a budget: its id")]]
    until: NotRequired[Instant]


class CancelledView(TypedDict):
    """Why it was cancelled: person, cascade, parent, undo or prune."""

    cause: str
    reason: str
    by: NotRequired[str]
    source: NotRequired[Annotated[str, Meta(description="of a cascade or a parent: that task's id")]]


class TaskView(TypedDict):
    """The current task. Unset fields are left out."""

    id: str
    key: str
    ref: str
    title: str
    description: NotRequired[str]
    track: str
    type: str
    state: State
    dag: str
    parent: NotRequired[str]
    run: int
    generation: int
    attempts: int
    max_attempts: int
    priority: Annotated[int, Meta(ge=0, le=100)]
    tier: Tier
    tags: NotRequired[Sequence[str]]
    agent: NotRequired[str]
    session: NotRequired[str]
    claimed_at: NotRequired[Instant]
    lease_until: NotRequired[Instant]
    percent: NotRequired[int]
    step: NotRequired[str]
    expected_at: NotRequired[Annotated[Instant, Meta(description="when its holder expects to complete it")]]
    reason: NotRequired[Annotated[str, Meta(description="why it is paused or cancelled, in one text")]]
    pauses: NotRequired[Annotated[tuple[PauseView, ...], Meta(description="each cause of its pause")]]
    cancelled: NotRequired[CancelledView]
    answers: NotRequired[Sequence[AnswerView]]
    retry_at: NotRequired[Instant]
    last_error: NotRequired[LastErrorView]
    deadline: NotRequired[Instant]
    not_before: NotRequired[Instant]
    offer_to: NotRequired[str]
    offer_until: NotRequired[Instant]
    offer_term: NotRequired[Annotated[int, Meta(description="the term of the leader that made the offer")]]
    unmet: Annotated[int, Meta(description="unmet dependencies")]
    work_product: NotRequired[str]
    metadata: NotRequired[dict[str, Any]]
    spec: NotRequired[dict[str, Any]]
    constraints: NotRequired[dict[str, Any]]
    output: NotRequired[dict[str, Any]]
    touches: NotRequired[Sequence[str]]
    created_by: str
    created_at: Instant
    updated_at: Instant
    ready_at: NotRequired[Instant]
    started_at: NotRequired[Instant]
    completed_at: NotRequired[Instant]
    completed_by: NotRequired[Annotated[str, Meta(description="in lists: the agent whose result was accepted")]]
    failed_at: NotRequired[Instant]
    dead_lettered_at: NotRequired[Instant]
    archived_at: NotRequired[Instant]
    version: Annotated[int, Meta(description="grows with every change; an update may name it in If-Match")]


class NeedView(TypedDict):
    """A task that another depends on."""

    key: str
    state: State
    on_failure: OnFailure
    met: bool


class RefusedView(TypedDict):
    """A submitted result, without its data."""

    id: str
    run: int
    generation: int
    session: str
    agent: str
    submitted_at: Instant
    accepted: bool
    reason: str
    summary: str
    size: int
    late: bool
    work_lost: bool
    work_product_ref: str | None


class ResultView(RefusedView):
    """A submitted result, accepted or refused."""

    data: Any


class SignatureView(TypedDict):
    """The signature of a result, which anybody can check with the public key."""

    result: str
    generation: int
    session: str
    public_key: str
    fingerprint: str
    signature: str
    request_id: str | None
    at: Instant


class CheckpointView(TypedDict):
    """A holder's checkpoint for the next one."""

    data: dict[str, Any]
    generation: int
    agent: str
    at: Instant


class LandingView(TypedDict):
    """A commit that a claim was about to put on a branch."""

    generation: int
    run: int
    agent: str
    branch: str
    old: str
    new: str
    at: Instant
    reported: bool  # by its holder alone: no runner that keeps the landing to itself recorded it


class ArtifactView(TypedDict):
    """A named output that a claim has put."""

    name: str
    type: str
    size: int
    digest: Annotated[str, Meta(description="SHA-256 of its bytes")]
    generation: int
    run: int
    agent: str
    at: Instant
    ref: Annotated[str, Meta(description="how `context_refs` name it: `artifact:TASK/NAME`")]


class RetryView(TypedDict, total=False):
    """What a task's retry policy has that differs from the default one; delays in seconds."""

    strategy: str
    initial_delay: float
    multiplier: float
    cap: float
    jitter: float
    retry_on: Sequence[str]
    no_retry_on: Sequence[str]
    poison: int


class TaskInFull(TaskView):
    """Everything about a task except its log."""

    retry: RetryView
    on_lost: OnLost
    trace_id: Annotated[str, Meta(description="shared by all of its events and messages, from its creation to its end")]
    depends_on: Sequence[NeedView]
    blocked_by: Sequence[str]
    blocks: Sequence[str]
    subtasks: Sequence[str]
    dead_letter: NotRequired[Annotated[str, Meta(description="why it is one, in one text")]]
    result: NotRequired[ResultView]
    checkpoint: NotRequired[CheckpointView]
    usage: NotRequired[UsageView]
    landings: NotRequired[Sequence[LandingView]]
    validation: NotRequired[ValidationView]
    artifacts: NotRequired[Sequence[ArtifactView]]


class TaskNoteView(TypedDict):
    """What a person or an agent wrote about a task."""

    by: str
    at: Instant
    text: str


class FailureView(LastErrorView):
    """How the last attempt failed, and whose it was."""

    agent: NotRequired[str]


class ReviewView(TypedDict):
    """Why a result was refused: by whom, and what to fix."""

    by: str
    at: Instant
    validator: str
    generation: Annotated[int, Meta(description="the task's, of the refused result")]
    reasons: Sequence[str]


class BriefingView(TypedDict):
    """What the next holder of a task must know. Others wrote all of it."""

    task: TaskView
    written_by: str
    edited_by: NotRequired[Annotated[str, Meta(description="who last changed title, description or spec")]]
    inputs: NotRequired[Annotated[dict[str, Any], Meta(description="by key: summary, data, artifacts, or the error")]]
    missing: NotRequired[Annotated[Sequence[str], Meta(description="`context_refs` that name nothing")]]
    artifacts: NotRequired[Annotated[Sequence[ArtifactView], Meta(description="of earlier claims of this run")]]
    checkpoint: NotRequired[CheckpointView]
    failure: NotRequired[FailureView]
    review: NotRequired[ReviewView]
    notes: NotRequired[Sequence[TaskNoteView]]
    retries: NotRequired[Annotated[Sequence[TaskNoteView], Meta(description="notes of those who retried it")]]
    releases: NotRequired[Annotated[Sequence[TaskNoteView], Meta(description="why earlier holders released it")]]


class TodoEntry(TypedDict):
    """Something that waits for a person, and the commands that end its wait."""

    what: Annotated[
        str,
        Meta(
            extra_json_schema={
                "enum": ["question", "review", "landing", "dead letter", "budget", "doubtful cost", "lost"]
            }
        ),
    ]
    task: str
    key: str
    ref: str
    title: str
    since: Instant
    text: Annotated[str, Meta(description="the question, the reason or the last error")]
    by: NotRequired[Annotated[str, Meta(description="who asked, submitted or paused")]]
    blocks: Annotated[int, Meta(description="how many unfinished tasks wait behind it")]
    do: Annotated[Sequence[str], Meta(description="the commands for it")]


class TaskLine(TypedDict):
    """A task that was created with many others."""

    id: str
    key: str
    ref: str
    title: str
    state: State


class StateLine(TypedDict):
    """The state of a named task; without a state there is none, and `outcome` shows why."""

    name: str
    outcome: str
    id: NotRequired[str]
    key: NotRequired[str]
    state: NotRequired[State]
    generation: NotRequired[int]
    agent: NotRequired[str | None]
    version: NotRequired[int]


class HistoryEntry(TypedDict):
    """One generation of a task: its holder, its end, and every refused submit."""

    generation: int
    run: int
    attempt: int
    session: str
    agent: str
    user: str | None
    opened_by: NotRequired[Annotated[str, Meta(description="who claimed it for this agent, if another did")]]
    submitted_by: NotRequired[Annotated[str, Meta(description="who submitted with its receipt, if another did")]]
    acquired_at: Instant
    released_at: Instant | None
    state: Annotated[str, Meta(extra_json_schema={"enum": ["active", "released", "expired", "superseded", "error"]})]
    release_reason: str | None
    renewals: int
    metadata: Annotated[dict[str, Any], Meta(description="about the claimant")]
    term: NotRequired[Annotated[int, Meta(description="claimed from an offer of the leader: its term")]]
    lease_why: NotRequired[Annotated[str, Meta(description="of the lease `auto`: where its length comes from")]]
    counted: bool
    result_accepted: bool | None
    work_product_ref: str | None
    error_class: str | None
    error: Annotated[str | None, Meta(description="how it failed, or why its holder released it")]
    trace: Annotated[str | None, Meta(description="the stack trace of its failure, without secrets")]
    refused: Sequence[RefusedView]
    usage: UsageView | None
    landings: Sequence[LandingView]  # newest first
    landing: LandingView | None  # the last of them
    validation: ValidationView | None
    artifacts: Sequence[ArtifactView]
    signatures: NotRequired[
        Annotated[Sequence[SignatureView], Meta(description="of its results, if its session signs")]
    ]


class PriorityView(TypedDict):
    """The parts of the effective priority; the smallest goes first. By length only that and the tier count."""

    length: NotRequired[Annotated[float, Meta(description="in the order `shortest`: seconds, at most four hours")]]
    base: int
    tier: Tier
    age_minutes: float
    boost: float
    urgency: int
    weight: int
    effective: float


class CouldTake(TypedDict):
    """Why an agent cannot claim the task; empty means that it can."""

    agent: str
    why_not: Sequence[str]


class WhyView(TypedDict):
    """Why a task is in its state, in sentences."""

    key: str
    state: State
    priority: PriorityView
    waits_for: NotRequired[Sequence[str]]
    agents: NotRequired[Sequence[CouldTake]]
    reasons: Sequence[str]

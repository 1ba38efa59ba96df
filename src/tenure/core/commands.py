"""Everything that can be asked of the engine: one struct a verb, the same for CLI, HTTP, MCP and SDK.

A task is named by id, key, short key (`B-003`) or an unambiguous beginning. Durations are seconds here, as people
and wires speak of them; rows keep microseconds. Instants are microseconds UTC. `core/inputs.py` checks the values.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core.records import RetryPolicy, Watch


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """On whose behalf a command runs. The role decides what may be asked; it never proves a holder."""

    role: str = "owner"
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    address: str | None = None
    projects: tuple[str, ...] = ()  # where it may act and look; empty: everywhere
    is_proven: bool = False  # its key or token says which agent it is; else the name is what it calls itself
    key: str | None = None  # by which it signed in: an API key's id, or a token's subject

    @property
    def name(self) -> str:
        return f"agent:{self.agent or ''}" if self.role == "agent" else f"human:{self.user or ''}"


OWNER = Principal()


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="command", tag=str.lower):
    """`project` says where; `request_id` makes a repeat harmless."""

    project: str
    request_id: str | None = None
    trace_id: str | None = None


# --- claims and their holders -------------------------------------------------------------------------------


class Process(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`host` and `boot` together name one process table; `start` is only ever compared for equality."""

    host: str
    boot: str
    pid: int
    start: int


class Claim(Command, frozen=True, kw_only=True, tag="claim"):
    """Take a task: granted with a receipt, the only proof of the claim, or denied with the reason."""

    task: str
    agent: str
    session: str
    lease: float | None = None
    user: str | None = None
    process: Process | None = None  # whose end proves the holder gone; none where the receipt will be handed on
    agent_type: str | None = None  # claude, codex …: for an agent that was not heard of before


class ClaimNext(Command, frozen=True, kw_only=True, tag="claim_next"):
    """Take the best tasks that the agent may have now, at most `n`."""

    agent: str
    session: str
    lease: float | None = None
    user: str | None = None
    process: Process | None = None
    agent_type: str | None = None
    n: int = 1
    capabilities: tuple[str, ...] | None = None  # None: what the agent registered
    tracks: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    region: str | None = None


class Renew(Command, frozen=True, kw_only=True, tag="renew"):
    """Lengthen the lease; brings back what the holder is asked to do, and how much mail waits."""

    receipt: str
    lease: float | None = None
    background: bool = False  # a hook or thread renews, nobody presented the receipt


class Start(Command, frozen=True, kw_only=True, tag="start"):
    """The holder begins."""

    receipt: str


class Progress(Command, frozen=True, kw_only=True, tag="progress"):
    """The holder tells how far it is."""

    receipt: str
    percent: int | None = None
    step: str | None = None
    done_in: float | None = None  # estimated seconds to completion


class Checkpoint(Command, frozen=True, kw_only=True, tag="checkpoint"):
    """The holder leaves a note for whoever goes on, be it itself."""

    receipt: str
    data: dict[str, Any]


class Totals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one model has cost under one claim so far: totals since the claim, never what was added."""

    model: str
    fresh: int = 0  # input tokens that no cache had
    cached: int = 0
    written: int = 0  # input tokens put into a cache
    output: int = 0
    cost_usd: str | None = None  # a decimal text; None: not known
    duration: float = 0.0  # seconds of compute


class Usage(Command, frozen=True, kw_only=True, tag="usage"):
    """Totals of one model since the claim. Booked as late where the receipt is genuine but stale."""

    receipt: str
    model: str
    fresh: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost_usd: str | None = None
    duration: float = 0.0


class Land(Command, frozen=True, kw_only=True, tag="land"):
    """The holder is about to move `branch` from `old` to `new`. The answer has what this task recorded before."""

    receipt: str
    branch: str
    old: str  # all zeros: the branch is to be made
    new: str


class PutArtifact(Command, frozen=True, kw_only=True, tag="put_artifact"):
    """The holder has put bytes in their place and gives them a name. For whoever has just put them: see `putting`."""

    receipt: str
    name: str
    digest: str  # SHA-256 of the bytes
    size: int
    type: str = "application/octet-stream"
    since: int  # the store's time before they were put: what was deleted later may be these


class Submit(Command, frozen=True, kw_only=True, tag="submit"):
    """Hand in the result. It counts if the receipt is the task's last; a refused one is kept."""

    receipt: str
    data: Any = None
    summary: str = ""
    usage: tuple[Totals, ...] = ()
    lines: int | None = None  # that the work has changed; None: nobody counted
    test_files: int = 0  # and how many of the files are tests
    artifacts: tuple[str, ...] | None = None  # names put under this claim; None: all that the task has in this run


class TakeValidation(Command, frozen=True, kw_only=True, tag="take_validation"):
    """Check a result that waits for a verdict: that of `task`, or the best one. Granted with a receipt of its own."""

    checker: str  # who it is, for people
    task: str | None = None
    validators: tuple[str, ...] = ()  # those that the taker can ask; empty: any
    lease: float | None = None


class RenewValidation(Command, frozen=True, kw_only=True, tag="renew_validation"):
    """Lengthen the lease of a check; refused once its verdict is not wanted any more."""

    receipt: str
    lease: float | None = None


class Judge(Command, frozen=True, kw_only=True, tag="judge"):
    """The verdict on a result, by the receipt of its check. A refused output is a failed attempt."""

    receipt: str
    ok: bool
    reasons: tuple[str, ...] = ()
    details: dict[str, Any] = {}


class Undecide(Command, frozen=True, kw_only=True, tag="undecide"):
    """Give a check up without a verdict; another try follows, and in the end a person is asked."""

    receipt: str
    reason: str
    retry_after: float | None = None


class Fail(Command, frozen=True, kw_only=True, tag="fail"):
    """The attempt failed; its class says whose trouble it was, and whether it counts."""

    receipt: str
    error_class: str = "task"
    message: str = ""
    retry_after: float | None = None
    model: str | None = None


class Release(Command, frozen=True, kw_only=True, tag="release"):
    """The holder gives the task back; the attempt does not count."""

    receipt: str
    reason: str = ""


class Ask(Command, frozen=True, kw_only=True, tag="ask"):
    """The holder asks a person; the task is paused until the answer."""

    receipt: str
    question: str


class Spawn(Command, frozen=True, kw_only=True, tag="spawn"):
    """The holder makes subtasks, each with a local name; with `wait` it comes back when all have ended."""

    receipt: str
    tasks: tuple[NewTask, ...]
    wait: bool = False


class Wait(Command, frozen=True, kw_only=True, tag="wait"):
    """The holder gives its claim back until the subtasks it has spawned in this run have ended."""

    receipt: str


# --- making work --------------------------------------------------------------------------------------------


class Dependency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task: str  # key, id, or a name in the same plan
    on_failure: str = "block"


class NewTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task to be made. `name` is its local name in a plan or spawn; `parent` makes it a subtask."""

    title: str
    name: str | None = None
    key: str | None = None
    track: str | None = None
    type: str = "code"
    description: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    constraints: dict[str, Any] = {}
    output: dict[str, Any] = {}
    priority: int | str = 50
    boost: float | None = None  # points a minute; None: the project's
    deadline: int | None = None
    not_before: int | None = None
    depends_on: tuple[Dependency | str, ...] = ()
    parent: str | None = None
    max_attempts: int = 3
    retry: RetryPolicy = RetryPolicy()
    touches: tuple[str, ...] = ()
    on_lost: str = "retry"
    idempotency_key: str | None = None
    draft: bool = False


class Add(Command, frozen=True, kw_only=True, tag="add"):
    """One task, in a dag of its own."""

    task: NewTask


class NewTrack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: str
    name: str
    purpose: str = ""


class Plan(Command, frozen=True, kw_only=True, tag="plan"):
    """A dag in one atomic operation; `name` makes it a plan that can be applied again."""

    tasks: tuple[NewTask, ...]
    title: str = ""
    name: str | None = None
    prune: bool = False
    tracks: tuple[NewTrack, ...] = ()  # made with the tasks where they are new; that part needs the role admin
    dry_run: bool = False  # say what would happen, and take it back
    on_end: dict[str, Template] = {}  # completed, failed, cancelled → what the dag's end makes
    budget: str | None = None  # dollars that the dag may cost; where it is new or another, that needs the role admin


class Link(Command, frozen=True, kw_only=True, tag="link"):
    """`task` shall wait for `needs`."""

    task: str
    needs: str
    on_failure: str = "block"


class Unlink(Command, frozen=True, kw_only=True, tag="unlink"):
    """`task` waits for `needs` no more."""

    task: str
    needs: str


class Publish(Command, frozen=True, kw_only=True, tag="publish"):
    """Put a draft, or all drafts of a dag, into the graph."""

    task: str | None = None
    dag: str | None = None


# --- persons' verbs -----------------------------------------------------------------------------------------


class Pause(Command, frozen=True, kw_only=True, tag="pause"):
    """Nobody may claim the task until it is resumed; a claim on it ends now."""

    task: str
    reason: str = ""
    drain: bool = False  # only ask the holder; no claim is ended


class Resume(Command, frozen=True, kw_only=True, tag="resume"):
    """A paused task goes on."""

    task: str


class Answer(Command, frozen=True, kw_only=True, tag="answer"):
    """Answer the question of a holder; the task goes on."""

    task: str
    text: str


class Cancel(Command, frozen=True, kw_only=True, tag="cancel"):
    """The task will not be done; a claim on it ends now."""

    task: str
    reason: str = ""


class Retry(Command, frozen=True, kw_only=True, tag="retry"):
    """Another run for a dead letter; `changes` makes it modify_and_retry."""

    task: str
    note: str = ""
    changes: dict[str, Any] | None = None


class Reset(Command, frozen=True, kw_only=True, tag="reset"):
    """Start a finished task over, in a new run; with `cascade` also what was made from its result."""

    task: str
    cascade: bool = False


class Adopt(Command, frozen=True, kw_only=True, tag="adopt"):
    """Take a kept result (by id; None: the newest) as the task's own."""

    task: str
    result: str | None = None
    supersede: bool = False
    note: str = ""


class Approve(Command, frozen=True, kw_only=True, tag="approve"):
    """The result that waits for a verdict is good: by a person, or for a review by another agent than its maker."""

    task: str
    note: str = ""


class Reject(Command, frozen=True, kw_only=True, tag="reject"):
    """It is not; the reason is for whoever tries again."""

    task: str
    reason: str


class Archive(Command, frozen=True, kw_only=True, tag="archive"):
    """Hide a finished task from lists."""

    task: str


class Edit(Command, frozen=True, kw_only=True, tag="edit"):
    """Change what is asked for; with `version` only if nobody has changed it since."""

    task: str
    changes: dict[str, Any]
    version: int | None = None
    supersede: bool = False


class Assign(Command, frozen=True, kw_only=True, tag="assign"):
    """Hold the task out to one agent for a while."""

    task: str
    agent: str
    seconds: float = 60.0


class Reassign(Command, frozen=True, kw_only=True, tag="reassign"):
    """End the claim and hold the task out to another agent."""

    task: str
    agent: str
    seconds: float = 60.0


class Recover(Command, frozen=True, kw_only=True, tag="recover"):
    """End a claim whose receipt is lost."""

    task: str
    reason: str = ""


class Abort(Command, frozen=True, kw_only=True, tag="abort"):
    """End a claim that hangs; counts as a timed-out attempt."""

    task: str
    reason: str = ""


class Note(Command, frozen=True, kw_only=True, tag="note"):
    """Leave a note in the task's log."""

    task: str
    text: str


class Undo(Command, frozen=True, kw_only=True, tag="undo"):
    """Write the opposite of an earlier command, by the id that its outcome carried."""

    command_id: str


class StopLine(Command, frozen=True, kw_only=True, tag="stop_line"):
    """Nothing more is claimed in `scope`: `project:`, `track:B`, `dag:ID`, `agent:NAME`, `type:NAME`."""

    scope: str
    reason: str = ""


class StartLine(Command, frozen=True, kw_only=True, tag="start_line"):
    """Claiming goes on in `scope`."""

    scope: str


class DefineProject(Command, frozen=True, kw_only=True, tag="define_project"):
    """Make a project, or change its settings."""

    default_track: str | None = None
    boost: float | None = None
    agents_may_operate: bool | None = None
    limits: dict[str, int] | None = None
    routing: bool | None = None  # do claims tell which model to use?


class DefineTrack(Command, frozen=True, kw_only=True, tag="define_track"):
    """Make a track, or change it."""

    code: str
    name: str
    purpose: str = ""


# --- where work comes from by itself ------------------------------------------------------------------------


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tasks with gaps in their texts, such as `{event.key}`; several become a dag of that title."""

    tasks: tuple[NewTask, ...]
    title: str = ""
    deadline_in: float | None = None  # seconds from the tick or event, for every task


class SetSchedule(Command, frozen=True, kw_only=True, tag="set_schedule"):
    """Make a schedule, or change all of it: tasks at the times that five fields of cron say, in a time zone."""

    schedule: str
    cron: str
    template: Template
    zone: str = "UTC"
    misfire: str = "once"  # ticks that nobody was there for: skip, once (the last one), all (at most a hundred)


class PauseSchedule(Command, frozen=True, kw_only=True, tag="pause_schedule"):
    """Its ticks make nothing until it is resumed."""

    schedule: str
    reason: str = ""


class ResumeSchedule(Command, frozen=True, kw_only=True, tag="resume_schedule"):
    """It goes on with its next tick; those in between are not made up for."""

    schedule: str


class RemoveSchedule(Command, frozen=True, kw_only=True, tag="remove_schedule"):
    """The schedule is gone; what it made stays."""

    schedule: str


class RunSchedule(Command, frozen=True, kw_only=True, tag="run_schedule"):
    """Make its tasks now, beside its ticks; a paused one too."""

    schedule: str


class SetTrigger(Command, frozen=True, kw_only=True, tag="set_trigger"):
    """Make a trigger, or change all of it: tasks whenever an event, or a signed delivery from outside, fits.

    The answer to making a webhook has its secret, which is shown only there.
    """

    trigger: str
    on: str  # a kind of event, a pattern such as `task.*`, or `webhook`
    template: Template
    where: dict[str, Any] = {}  # path → value, or {"prefix" | "glob" | "in" | "not": …}
    most: int = 100  # firings in an hour
    signature: str = "standard"  # of a webhook: standard (Standard Webhooks) or github
    secret: str | None = None  # of a webhook: the sender's own; None: one is made


class PauseTrigger(Command, frozen=True, kw_only=True, tag="pause_trigger"):
    """It makes nothing until it is resumed."""

    trigger: str


class ResumeTrigger(Command, frozen=True, kw_only=True, tag="resume_trigger"):
    """It hears what happens from now on."""

    trigger: str


class RemoveTrigger(Command, frozen=True, kw_only=True, tag="remove_trigger"):
    """The trigger is gone; what it made stays."""

    trigger: str


class RotateSecret(Command, frozen=True, kw_only=True, tag="rotate_secret"):
    """A new secret for a webhook; the one before is good for `grace` seconds more."""

    trigger: str
    secret: str | None = None
    grace: float = 24 * 3600.0


class TryTrigger(Command, frozen=True, kw_only=True, tag="try_trigger"):
    """What the trigger would make of a sample, or of the last event that it would hear; nothing is stored."""

    trigger: str
    sample: dict[str, Any] | None = None  # {"event": {…}} or {"body": {…}}


class Deliver(Command, frozen=True, kw_only=True, tag="deliver"):
    """A delivery for a webhook, exactly as it came. The signature in its headers proves it, and nothing else does."""

    trigger: str
    headers: dict[str, str]
    body: bytes


class SetWatch(Command, frozen=True, kw_only=True, tag="set_watch"):
    """Have a task made that finds out why, where much of a tag, type or track fails; None: have none made."""

    watch: Watch | None = None


# --- agents, mail, reservations, leadership -----------------------------------------------------------------


class Register(Command, frozen=True, kw_only=True, tag="register"):
    """An agent says who it is and what it can do."""

    agent: str
    session: str | None = None
    user: str | None = None
    type: str = "generic"
    capabilities: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    region: str | None = None
    tracks: tuple[str, ...] = ()
    max_concurrent_tasks: int | None = None
    heartbeat: float = 30.0
    stale_after: float = 180.0
    host: str | None = None
    boot: str | None = None
    pid: int | None = None
    pid_start: int | None = None


class Heartbeat(Command, frozen=True, kw_only=True, tag="heartbeat"):
    """A sign of life of an agent; renews no lease."""

    agent: str
    session: str | None = None
    health: str = "ok"
    step: str | None = None
    memory_mb: int | None = None
    cpu_percent: int | None = None


class Drain(Command, frozen=True, kw_only=True, tag="drain"):
    """The agent finishes what it holds and takes nothing more."""

    agent: str


class Terminate(Command, frozen=True, kw_only=True, tag="terminate"):
    """Graceful: drain, what it holds goes on. Otherwise its claims end now."""

    agent: str
    graceful: bool = True


class Leave(Command, frozen=True, kw_only=True, tag="leave"):
    """A session ends and gives back what it holds."""

    session: str


class Gone(Command, frozen=True, kw_only=True, tag="gone"):
    """These processes have ended, as their own host's process table says: the claims they held expire now."""

    processes: tuple[Process, ...]


class Send(Command, frozen=True, kw_only=True, tag="send"):
    """Send mail to an agent, or to `@all`, `@idle`, `@leader`, `@track:B`."""

    sender: str
    text: str
    to: str = "@all"
    type: str = "chat"
    reply_to: str | None = None


class Read(Command, frozen=True, kw_only=True, tag="read"):
    """Mark mail of a recipient as read, and give it back."""

    agent: str
    messages: tuple[str, ...] | None = None  # None: all that is unread


class Reserve(Command, frozen=True, kw_only=True, tag="reserve"):
    """With a task's `receipt` it lives as long as the claim; alone it has a lease and its own receipt."""

    patterns: tuple[str, ...]
    agent: str
    session: str
    mode: str = "exclusive"
    receipt: str | None = None
    lease: float | None = None


class RenewReservation(Command, frozen=True, kw_only=True, tag="renew_reservation"):
    """Lengthen the lease of a reservation that stands alone."""

    receipt: str
    lease: float | None = None


class Unreserve(Command, frozen=True, kw_only=True, tag="unreserve"):
    """Give a reservation back."""

    receipt: str


class Lead(Command, frozen=True, kw_only=True, tag="lead"):
    """Become, or stay, the leader. With an agent it is the project's `@leader`, else the store's coordinator."""

    holder: str
    agent: bool = False
    lease: float = 30.0
    term: int | None = None  # the term held so far, to renew


class StepDown(Command, frozen=True, kw_only=True, tag="step_down"):
    """Lead no more."""

    holder: str
    term: int
    agent: bool = False


# --- budgets ------------------------------------------------------------------------------------------------


class SetBudget(Command, frozen=True, kw_only=True, tag="set_budget"):
    """Make a budget, or change it; what is left out stays as it is. One of `usd` and `tokens` says how much there is.

    `scope` is `tenant`, `project`, `dag:ID`, `task:KEY` or `agent:NAME`.
    """

    scope: str = "project"
    usd: str | None = None  # a decimal text
    tokens: int | None = None
    default_estimate: str | None = None  # what a task reserves that says nothing of its size; in the budget's currency
    period: str | None = None  # day, week, month: it begins anew with each; once: it does not
    zone: str | None = None  # where days begin, as in Europe/Berlin
    begins_at: int | None = None  # of one that is not repeated: when it runs
    ends_at: int | None = None
    throttle: bool | None = None  # space claims out while it would be used up within a week


class RemoveBudget(Command, frozen=True, kw_only=True, tag="remove_budget"):
    """The scope may spend what it likes from now on."""

    scope: str = "project"


class MoveBudget(Command, frozen=True, kw_only=True, tag="move_budget"):
    """Give a part of one budget that is neither spent nor reserved to another."""

    source: str
    target: str
    amount: str  # in the currency of both


# --- keys, of the store as a whole --------------------------------------------------------------------------


class CreateKey(Command, frozen=True, kw_only=True, tag="create_key"):
    """An API key. Its secret is in the answer, this once."""

    project: str = ""
    name: str
    role: str = "agent"
    user: str | None = None  # whom it is put down to; None: the name
    agent: str | None = None  # of an agent's key: the one agent that it may speak for
    projects: tuple[str, ...] = ()  # empty: all
    expires_in: float | None = None  # seconds; None: never


class RotateKey(Command, frozen=True, kw_only=True, tag="rotate_key"):
    """A new secret for a key, which lives as long again; the secret before is good for `grace` seconds more."""

    project: str = ""
    key: str
    grace: float = 3600.0


class RevokeKey(Command, frozen=True, kw_only=True, tag="revoke_key"):
    """A key is void from now on, and for ever."""

    project: str = ""
    key: str


AnyCommand = (
    Claim | ClaimNext | Renew | Start | Progress | Checkpoint | Usage | Land | Submit | Fail | Release | Ask | Spawn
    | Wait | PutArtifact
    | TakeValidation | RenewValidation | Judge | Undecide | Approve | Reject
    | Add | Plan | Link | Unlink | Publish
    | Pause | Resume | Answer | Cancel | Retry | Reset | Adopt | Archive | Edit | Assign | Reassign | Recover
    | Abort | Note | Undo | StopLine | StartLine | DefineProject | DefineTrack
    | Register | Heartbeat | Drain | Terminate | Leave | Gone | Send | Read | Reserve | RenewReservation | Unreserve
    | Lead | StepDown
    | SetSchedule | PauseSchedule | ResumeSchedule | RemoveSchedule | RunSchedule
    | SetTrigger | PauseTrigger | ResumeTrigger | RemoveTrigger | RotateSecret | TryTrigger | Deliver | SetWatch
    | SetBudget | RemoveBudget | MoveBudget
    | CreateKey | RotateKey | RevokeKey
)  # fmt: skip

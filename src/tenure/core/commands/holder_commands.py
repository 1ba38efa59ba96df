"""Claims, and what their holders do with the receipt."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from tenure.core.commands.command import PROJECT, TASK, Command, Declaration
from tenure.core.commands.graph_commands import NewTask
from tenure.core.land_request import LandRequest


class Process(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`host` and `boot` together name one process table; `start` is only ever compared for equality."""

    host: str
    boot: str
    pid: int
    start: int


class ClaimTask(Command, frozen=True, kw_only=True, tag="claim"):
    """Claim a task: granted with a receipt, the only proof of the claim, or denied with the reason."""

    declaration: ClassVar = Declaration("claim", "agent", "POST", TASK + "/claim", speaks_for="agent")

    task: str
    agent: str
    session: str
    lease: float | str | None = None  # seconds, or `auto`: by the task's estimate, else by what its type takes
    user: str | None = None
    process: Process | None = None  # its end proves the holder gone; None where the receipt is passed on
    agent_type: str | None = None  # claude, codex …: for an agent that is not known yet
    metadata: dict[str, Any] = {}  # about the claimant: kept with the claim, shown in its history
    spawn: str | None = None  # the id that a pool gave this process
    caused_by: tuple[str, ...] = ()  # the id of the broker's message that asked for it


class ClaimNext(Command, frozen=True, kw_only=True, tag="claim_next"):
    """Claim the best tasks that the agent may have now, at most `n`."""

    declaration: ClassVar = Declaration("claim", "agent", "POST", PROJECT + "/claims", speaks_for="agent")

    agent: str
    session: str
    lease: float | str | None = None  # as in `claim`
    user: str | None = None
    process: Process | None = None
    agent_type: str | None = None
    n: int = 1
    like: bool = False  # all of the type and track of the first
    capabilities: tuple[str, ...] | None = None  # None: what the agent registered
    tracks: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    region: str | None = None
    metadata: dict[str, Any] = {}
    without: tuple[str, ...] = ()  # ids of tasks that it must not get: their functions still run in the claimant
    spawn: str | None = None
    caused_by: tuple[str, ...] = ()  # ids of the broker's messages that asked for it: one a task, in their order


class Renew(Command, frozen=True, kw_only=True, tag="renew"):
    """Extend the lease; returns directives to the holder and the number of unread messages."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/renew")

    receipt: str
    lease: float | None = None
    background: bool = False  # a hook or thread renews: the holder did not present the receipt
    worked: bool = False  # the holder has just worked, as a hook after one of its tools knows
    seen: int | None = None  # the number of the description that the holder has read


class Start(Command, frozen=True, kw_only=True, tag="start"):
    """Start work on the held task."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/start")

    receipt: str


class Progress(Command, frozen=True, kw_only=True, tag="progress"):
    """Report progress on the held task, and with `checkpoint` also save one for the next holder."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/progress")

    receipt: str
    percent: int | None = None
    step: str | None = None
    done_in: float | None = None  # estimated seconds to completion
    seen: int | None = None
    checkpoint: dict[str, Any] | None = None


class SaveCheckpoint(Command, frozen=True, kw_only=True, tag="checkpoint"):
    """Save a checkpoint for the next holder."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/checkpoint")

    receipt: str
    data: dict[str, Any]


class Totals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Totals of one model's usage under one claim: since the claim, never increments. With an operation, the part of
    the model's total that was used for it."""

    model: str
    fresh: int = 0  # uncached input tokens
    cached: int = 0
    written: int = 0  # input tokens written to a cache
    output: int = 0
    cost_usd: str | None = None  # a decimal text; None: not known
    duration: float = 0.0  # seconds of compute
    operation: str = ""  # what for, as `review`; "": everything the model was used for


class ReportUsage(Command, frozen=True, kw_only=True, tag="usage"):
    """Report totals of one model since the claim, or the part for one operation. Booked as late where the receipt is
    genuine but stale."""

    declaration: ClassVar = Declaration("usage", "agent", "POST", TASK + "/usage")

    receipt: str
    model: str
    fresh: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost_usd: str | None = None
    duration: float = 0.0
    operation: str = ""


class Land(Command, frozen=True, kw_only=True, tag="land"):
    """Record that the bearer is about to move `branch` from `old` to `new`. Returns the task's earlier landings.

    The receipt is the holder's, or that of the landing of its result.
    """

    declaration: ClassVar = Declaration("land", "agent", "POST", TASK + "/land")

    receipt: str
    branch: str
    old: str  # all zeros: the branch is new
    new: str
    seen: int | None = None  # the number of the description that the work is for


class PutArtifact(Command, frozen=True, kw_only=True, tag="put_artifact"):
    """Name bytes that the holder has just put into the artifact store."""

    declaration: ClassVar = Declaration("artifacts", "agent")

    receipt: str
    name: str
    digest: str  # SHA-256 of the bytes
    size: int
    type: str = "application/octet-stream"
    since: int  # the store's time before the upload: later deletions may concern these bytes
    word: str | None = None  # of a runner, for a name that is reserved for it


class ResultSignature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signature over a result, as `core/signed_results.py` describes it."""

    value: str  # in hex
    artifacts: dict[str, str] = {}  # name → digest of the artifacts that the result passes on


class Submit(Command, frozen=True, kw_only=True, tag="submit"):
    """Submit the result. It counts if the receipt is the task's last; a refused one is kept.

    With `land` it is accepted once that commit is on that branch: after its verdict, when somebody lands it.
    """

    declaration: ClassVar = Declaration("submit", "agent", "POST", TASK + "/submit")

    receipt: str
    data: Any = None
    summary: str = ""
    usage: tuple[Totals, ...] = ()
    lines: int | None = None  # changed lines; None: not counted
    test_files: int = 0  # changed test files
    artifacts: tuple[str, ...] | None = None  # names put under this claim; None: all of the task's run
    seen: int | None = None  # the number of the description that the result is for
    signature: ResultSignature | None = None  # of a session with a public key
    stopped: bool = False  # asked to stop before it was done: kept as refused, and the claim ends as of a release
    land: LandRequest | None = None


class Fail(Command, frozen=True, kw_only=True, tag="fail"):
    """Report a failed attempt; its class says what failed, and whether the attempt counts."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/fail", printed=("message", "trace"))

    receipt: str
    error_class: str = "task"
    message: str = ""
    retry_after: float | None = None
    model: str | None = None
    trace: str = ""  # the stack trace, kept with the attempt


class Release(Command, frozen=True, kw_only=True, tag="release"):
    """Release the claim; the attempt does not count.

    The agent gets the task again only after a pause, unless it was `stopped`: then it has not judged the task.
    """

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/release", printed=("reason",))

    receipt: str
    reason: str = ""
    stopped: bool = False  # the holder must stop: a shutdown, a drain, a changed description


class Ask(Command, frozen=True, kw_only=True, tag="ask"):
    """Ask a person; the task is paused until the answer."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/ask")

    receipt: str
    question: str


class Spawn(Command, frozen=True, kw_only=True, tag="spawn"):
    """Create subtasks, each with a local name; with `wait` the task is ready again when all have ended."""

    declaration: ClassVar = Declaration("graph", "agent", "POST", TASK + "/spawn")

    receipt: str
    tasks: tuple[NewTask, ...]
    wait: bool = False


class Wait(Command, frozen=True, kw_only=True, tag="wait"):
    """Release the claim until the subtasks spawned in this run have ended."""

    declaration: ClassVar = Declaration("graph", "agent", "POST", TASK + "/wait")

    receipt: str


class OpenSecrets(Command, frozen=True, kw_only=True, tag="open_secrets"):
    """The secrets of the held task, by name. Only the receipt of the live claim opens them."""

    declaration: ClassVar = Declaration("secrets", "agent", "POST", TASK + "/secrets")

    receipt: str

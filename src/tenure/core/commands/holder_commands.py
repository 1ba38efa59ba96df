"""Claims, and what their holders do with the receipt."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from tenure.core.commands.command import Command
from tenure.core.commands.graph_commands import NewTask
from tenure.core.declaration import PROJECT, TASK, Declaration


class Process(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`host` and `boot` together name one process table; `start` is only ever compared for equality."""

    host: str
    boot: str
    pid: int
    start: int


class ClaimTask(Command, frozen=True, kw_only=True, tag="claim"):
    """Take a task: granted with a receipt, the only proof of the claim, or denied with the reason."""

    declaration: ClassVar = Declaration("claim", "agent", "POST", TASK + "/claim", speaks_for="agent")

    task: str
    agent: str
    session: str
    lease: float | None = None
    user: str | None = None
    process: Process | None = None  # whose end proves the holder gone; none where the receipt will be handed on
    agent_type: str | None = None  # claude, codex …: for an agent that was not heard of before
    metadata: dict[str, Any] = {}  # what the claimer says of itself: kept with the claim, shown in its history


class ClaimNext(Command, frozen=True, kw_only=True, tag="claim_next"):
    """Take the best tasks that the agent may have now, at most `n`."""

    declaration: ClassVar = Declaration("claim", "agent", "POST", PROJECT + "/claims", speaks_for="agent")

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
    metadata: dict[str, Any] = {}


class Renew(Command, frozen=True, kw_only=True, tag="renew"):
    """Lengthen the lease; brings back what the holder is asked to do, and how much mail waits."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/renew")

    receipt: str
    lease: float | None = None
    background: bool = False  # a hook or thread renews, nobody presented the receipt
    seen: int | None = None  # the number of the description that the holder has seen


class Start(Command, frozen=True, kw_only=True, tag="start"):
    """The holder begins."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/start")

    receipt: str


class Progress(Command, frozen=True, kw_only=True, tag="progress"):
    """The holder tells how far it is."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/progress")

    receipt: str
    percent: int | None = None
    step: str | None = None
    done_in: float | None = None  # estimated seconds to completion
    seen: int | None = None


class SaveCheckpoint(Command, frozen=True, kw_only=True, tag="checkpoint"):
    """The holder leaves a note for whoever goes on, be it itself."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/checkpoint")

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


class ReportUsage(Command, frozen=True, kw_only=True, tag="usage"):
    """Totals of one model since the claim. Booked as late where the receipt is genuine but stale."""

    declaration: ClassVar = Declaration("usage", "agent", "POST", TASK + "/usage")

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

    declaration: ClassVar = Declaration("land", "agent", "POST", TASK + "/land")

    receipt: str
    branch: str
    old: str  # all zeros: the branch is to be made
    new: str
    seen: int | None = None  # the number of the description that the work is for


class PutArtifact(Command, frozen=True, kw_only=True, tag="put_artifact"):
    """The holder has put bytes in their place and gives them a name. For whoever has just put them: see `putting`."""

    declaration: ClassVar = Declaration("artifacts", "agent")

    receipt: str
    name: str
    digest: str  # SHA-256 of the bytes
    size: int
    type: str = "application/octet-stream"
    since: int  # the store's time before they were put: what was deleted later may be these


class Submit(Command, frozen=True, kw_only=True, tag="submit"):
    """Hand in the result. It counts if the receipt is the task's last; a refused one is kept."""

    declaration: ClassVar = Declaration("submit", "agent", "POST", TASK + "/submit")

    receipt: str
    data: Any = None
    summary: str = ""
    usage: tuple[Totals, ...] = ()
    lines: int | None = None  # that the work has changed; None: nobody counted
    test_files: int = 0  # and how many of the files are tests
    artifacts: tuple[str, ...] | None = None  # names put under this claim; None: all that the task has in this run
    seen: int | None = None  # the number of the description that the result is for


class Fail(Command, frozen=True, kw_only=True, tag="fail"):
    """The attempt failed; its class says whose trouble it was, and whether it counts."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/fail")

    receipt: str
    error_class: str = "task"
    message: str = ""
    retry_after: float | None = None
    model: str | None = None


class Release(Command, frozen=True, kw_only=True, tag="release"):
    """The holder gives the task back; the attempt does not count."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/release")

    receipt: str
    reason: str = ""


class Ask(Command, frozen=True, kw_only=True, tag="ask"):
    """The holder asks a person; the task is paused until the answer."""

    declaration: ClassVar = Declaration("holder_verbs", "agent", "POST", TASK + "/ask")

    receipt: str
    question: str


class Spawn(Command, frozen=True, kw_only=True, tag="spawn"):
    """The holder makes subtasks, each with a local name; with `wait` it comes back when all have ended."""

    declaration: ClassVar = Declaration("graph", "agent", "POST", TASK + "/spawn")

    receipt: str
    tasks: tuple[NewTask, ...]
    wait: bool = False


class Wait(Command, frozen=True, kw_only=True, tag="wait"):
    """The holder gives its claim back until the subtasks it has spawned in this run have ended."""

    declaration: ClassVar = Declaration("graph", "agent", "POST", TASK + "/wait")

    receipt: str

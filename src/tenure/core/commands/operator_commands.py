"""What people do with tasks and projects."""

from __future__ import annotations

from typing import Any, ClassVar

from tenure.core import limits
from tenure.core.commands.command import PROJECT, TASK, Command, Declaration


class Pause(Command, frozen=True, kw_only=True, tag="pause"):
    """Pause the task until it is resumed; a live claim on it ends now."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/pause")

    task: str
    reason: str = ""
    drain: bool = False  # only ask the holder; the claim goes on


class Resume(Command, frozen=True, kw_only=True, tag="resume"):
    """Lift the causes made by people; the task resumes when no other cause is left."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/resume")

    task: str
    budget: bool = False  # also lift a pause by a budget, even if it is used up


class Answer(Command, frozen=True, kw_only=True, tag="answer"):
    """Answer a holder's question; the task resumes."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/answer")

    task: str
    text: str


class Cancel(Command, frozen=True, kw_only=True, tag="cancel"):
    """Cancel the task; a live claim on it ends now."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/cancel")

    task: str
    reason: str = ""


class Retry(Command, frozen=True, kw_only=True, tag="retry"):
    """Start another run of a dead letter; `changes` makes it modify_and_retry."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/retry")

    task: str
    note: str = ""
    changes: dict[str, Any] | None = None


class Reset(Command, frozen=True, kw_only=True, tag="reset"):
    """Start a finished task over, in a new run; with `cascade` also the tasks that used its result."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/reset")

    task: str
    cascade: bool = False


class Adopt(Command, frozen=True, kw_only=True, tag="adopt"):
    """Accept a kept result (by id; None: the newest) as the task's result."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/adopt")

    task: str
    result: str | None = None
    supersede: bool = False
    note: str = ""


class Archive(Command, frozen=True, kw_only=True, tag="archive"):
    """Hide a finished task from lists."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/archive")

    task: str


class Edit(Command, frozen=True, kw_only=True, tag="edit"):
    """Edit the task; with `version` only if nobody has changed it since."""

    declaration: ClassVar = Declaration("edit", "member", "PATCH", TASK)

    task: str
    changes: dict[str, Any]
    version: int | None = None
    supersede: bool = False


class Assign(Command, frozen=True, kw_only=True, tag="assign"):
    """Offer the task to one agent for a while."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/assign")

    task: str
    agent: str
    seconds: float = limits.OFFER
    term: int | None = None  # as the project's leader, with this term; a stale one is refused


class Reassign(Command, frozen=True, kw_only=True, tag="reassign"):
    """End the claim and offer the task to another agent."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/reassign")

    task: str
    agent: str
    seconds: float = limits.OFFER
    term: int | None = None  # as the project's leader, with this term; a stale one is refused


class Recover(Command, frozen=True, kw_only=True, tag="recover"):
    """End a claim whose receipt is lost."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/recover")

    task: str
    reason: str = ""
    term: int | None = None


class AuditOn(Command, frozen=True, kw_only=True, tag="audit_on"):
    """Seal the log of the project from now on, what it has so far included. It cannot be turned off."""

    declaration: ClassVar = Declaration("audit", "owner", "POST", PROJECT + "/audit")


class Abort(Command, frozen=True, kw_only=True, tag="abort"):
    """End a hung claim; counts as a timed-out attempt."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/abort")

    task: str
    reason: str = ""


class Note(Command, frozen=True, kw_only=True, tag="note"):
    """Add a note to the task's log."""

    declaration: ClassVar = Declaration("operator_verbs", "member", "POST", TASK + "/note")

    task: str
    text: str


class Undo(Command, frozen=True, kw_only=True, tag="undo"):
    """Undo an earlier command, by the id in its outcome."""

    declaration: ClassVar = Declaration("undo", "member", "POST", PROJECT + "/undo")

    command_id: str


class StopLine(Command, frozen=True, kw_only=True, tag="stop_line"):
    """Stop all claiming in `scope`: `project:`, `track:B`, `dag:ID`, `agent:NAME`, `type:NAME`."""

    declaration: ClassVar = Declaration("projects", "admin", "POST", PROJECT + "/stop")

    scope: str
    reason: str = ""


class StartLine(Command, frozen=True, kw_only=True, tag="start_line"):
    """Allow claiming in `scope` again."""

    declaration: ClassVar = Declaration("projects", "admin", "POST", PROJECT + "/go")

    scope: str


class DefineProject(Command, frozen=True, kw_only=True, tag="define_project"):
    """Create a project, or change its settings."""

    declaration: ClassVar = Declaration("projects", "admin", "PUT", PROJECT)

    default_track: str | None = None
    boost: float | None = None
    agents_may_operate: bool | None = None
    review_other_person: bool | None = None  # whether a review is for a person other than those behind the claim
    limits: dict[str, int] | None = None  # all of them
    change_limits: dict[str, int | None] | None = None  # some of them; None: back to the default
    routing: bool | None = None  # claims recommend a model
    router: bool | None = None  # one agent works on a track, or `max_agents` of it
    order: str | None = None  # priority, shortest: of tasks that are created from now on
    lead: str | None = None  # auto, off, default: whether the first agent that joins or claims leads
    compliance: str | None = None  # a retention preset: soc2, pci, hipaa; none


class DefineTrack(Command, frozen=True, kw_only=True, tag="define_track"):
    """Create or change a track."""

    declaration: ClassVar = Declaration("projects", "admin", "PUT", PROJECT + "/tracks/{code}")

    code: str
    name: str | None = None  # None: name and purpose of a known track stay
    purpose: str = ""
    max_agents: int | None = None  # that work there at once, with the project's router


class AssignTrack(Command, frozen=True, kw_only=True, tag="assign_track"):
    """Assign a track to an agent until it leaves or is released; needs the project's router."""

    declaration: ClassVar = Declaration("track_router", "member", "POST", PROJECT + "/tracks/{code}/assign")

    code: str
    agent: str


class ReleaseTrack(Command, frozen=True, kw_only=True, tag="release_track"):
    """End the assignment of a track to an agent, or to all. Their claims continue."""

    declaration: ClassVar = Declaration("track_router", "member", "POST", PROJECT + "/tracks/{code}/release")

    code: str
    agent: str | None = None


class Reorder(Command, frozen=True, kw_only=True, tag="reorder"):
    """Move a page of open tasks to the project's current order; `next` in the answer is where the next page begins."""

    declaration: ClassVar = Declaration("projects", "admin", "POST", PROJECT + "/reorder")

    after: str | None = None  # `next` of the page before


class RotateDataKey(Command, frozen=True, kw_only=True, tag="rotate_data_key"):
    """Seal new secrets of the project with a new data key; earlier ones stay readable.

    With `master` the data keys stay, and are wrapped by the current master key. With `lost` data keys whose master key
    is lost are given up for ever, with what they sealed: webhooks and triggers whose secret that was are paused.
    """

    declaration: ClassVar = Declaration("secrets", "admin", "POST", PROJECT + "/data-key/rotate")

    master: bool = False
    lost: bool = False


class Reseal(Command, frozen=True, kw_only=True, tag="reseal"):
    """Seal a page of the project's secrets again with its current data key; `next` in the answer begins the next.

    With `plain` it also seals texts that are secret by their name and were stored as given. A task that somebody holds
    is left; `counts.left` of the answer says how many.
    """

    declaration: ClassVar = Declaration("secrets", "admin", "POST", PROJECT + "/data-key/reseal")

    after: str | None = None  # `next` of the page before
    plain: bool = False

"""What persons do with work, and with a project."""

from __future__ import annotations

from typing import Any

from tenure.core.commands.command import Command


class Pause(Command, frozen=True, kw_only=True, tag="pause"):
    """Nobody may claim the task until it is resumed; a claim on it ends now."""

    task: str
    reason: str = ""
    drain: bool = False  # only ask the holder; no claim is ended


class Resume(Command, frozen=True, kw_only=True, tag="resume"):
    """Lift a person's causes; the task goes on when no other cause is left."""

    task: str
    budget: bool = False  # also where a budget has paused it, whatever that has left


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

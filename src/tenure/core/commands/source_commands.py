"""Schedules, triggers, and the facts that fire them: emitted by agents and people, or seen in the repository."""

from __future__ import annotations

from typing import Any, ClassVar

from tenure.core.commands.command import PROJECT, Command, Declaration
from tenure.core.commands.graph_commands import Template
from tenure.core.records import Watch


class SetSchedule(Command, frozen=True, kw_only=True, tag="set_schedule"):
    """Create or replace a schedule: tasks at the times of a cron expression, in a time zone."""

    declaration: ClassVar = Declaration("schedules", "admin", "PUT", PROJECT + "/schedules/{schedule}")

    schedule: str
    cron: str
    template: Template
    zone: str = "UTC"
    misfire: str = "once"  # missed ticks: skip, once (the last one), all (at most a hundred)


class PauseSchedule(Command, frozen=True, kw_only=True, tag="pause_schedule"):
    """Pause a schedule until it is resumed."""

    declaration: ClassVar = Declaration("schedules", "admin", "POST", PROJECT + "/schedules/{schedule}/pause")

    schedule: str
    reason: str = ""


class ResumeSchedule(Command, frozen=True, kw_only=True, tag="resume_schedule"):
    """Resume with the next tick; ticks in between are skipped."""

    declaration: ClassVar = Declaration("schedules", "admin", "POST", PROJECT + "/schedules/{schedule}/resume")

    schedule: str


class RemoveSchedule(Command, frozen=True, kw_only=True, tag="remove_schedule"):
    """Remove a schedule; the tasks it created stay."""

    declaration: ClassVar = Declaration("schedules", "admin", "POST", PROJECT + "/schedules/{schedule}/remove")

    schedule: str


class RunSchedule(Command, frozen=True, kw_only=True, tag="run_schedule"):
    """Create its tasks now, apart from its ticks; also while paused."""

    declaration: ClassVar = Declaration("schedules", "admin", "POST", PROJECT + "/schedules/{schedule}/run")

    schedule: str


class SetTrigger(Command, frozen=True, kw_only=True, tag="set_trigger"):
    """Create or replace a trigger: tasks whenever an event, or a signed delivery from outside, matches.

    The answer to creating a webhook has its secret, which is shown only there.
    """

    declaration: ClassVar = Declaration("triggers", "admin", "PUT", PROJECT + "/triggers/{trigger}")

    trigger: str
    on: str  # a kind of event, a pattern such as `task.*`, or `webhook`
    template: Template
    where: dict[str, Any] = {}  # path → value, or {"prefix" | "glob" | "in" | "not": …}
    most: int = 100  # firings per hour
    signature: str = "standard"  # of a webhook: standard (Standard Webhooks) or github
    secret: str | None = None  # of a webhook: the sender's own; None: one is generated


class PauseTrigger(Command, frozen=True, kw_only=True, tag="pause_trigger"):
    """Pause a trigger until it is resumed."""

    declaration: ClassVar = Declaration("triggers", "admin", "POST", PROJECT + "/triggers/{trigger}/pause")

    trigger: str


class ResumeTrigger(Command, frozen=True, kw_only=True, tag="resume_trigger"):
    """Resume a trigger with the events from now on."""

    declaration: ClassVar = Declaration("triggers", "admin", "POST", PROJECT + "/triggers/{trigger}/resume")

    trigger: str


class RemoveTrigger(Command, frozen=True, kw_only=True, tag="remove_trigger"):
    """Remove a trigger; the tasks it created stay."""

    declaration: ClassVar = Declaration("triggers", "admin", "POST", PROJECT + "/triggers/{trigger}/remove")

    trigger: str


class RotateSecret(Command, frozen=True, kw_only=True, tag="rotate_secret"):
    """Create a new secret for a webhook; the previous one stays valid for `grace` seconds."""

    declaration: ClassVar = Declaration("triggers", "admin", "POST", PROJECT + "/triggers/{trigger}/rotate")

    trigger: str
    secret: str | None = None
    grace: float = 24 * 3600.0


class TryTrigger(Command, frozen=True, kw_only=True, tag="try_trigger"):
    """Show what the trigger would create for a sample, or for the last matching event; nothing is stored."""

    declaration: ClassVar = Declaration("triggers", "admin", "POST", PROJECT + "/triggers/{trigger}/try")

    trigger: str
    sample: dict[str, Any] | None = None  # {"event": {…}} or {"body": {…}}


class Deliver(Command, frozen=True, kw_only=True, tag="deliver"):
    """A delivery to a webhook, exactly as received. Only the signature in its headers proves it."""

    declaration: ClassVar = Declaration("deliveries", "agent", "POST", PROJECT + "/triggers/{trigger}/deliver")

    trigger: str
    headers: dict[str, str]
    body: bytes


class SetWatch(Command, frozen=True, kw_only=True, tag="set_watch"):
    """Create a task that investigates when failures of a tag, type or track cluster; None: do not."""

    declaration: ClassVar = Declaration("failure_watch", "admin", "PUT", PROJECT + "/watch")

    watch: Watch | None = None


class Emit(Command, frozen=True, kw_only=True, tag="emit"):
    """Append a fact to the log, for sinks and triggers. It is never read as state."""

    declaration: ClassVar = Declaration("facts", "agent", "POST", PROJECT + "/facts", speaks_for="agent")

    name: str
    data: Any = None
    agent: str | None = None


class FilesChanged(Command, frozen=True, kw_only=True, tag="files_changed"):
    """Append that watched files changed, for triggers. Sent by the process that watches the repository."""

    declaration: ClassVar = Declaration("facts", "member")

    paths: tuple[str, ...]
    more: int = 0  # further paths that are left out

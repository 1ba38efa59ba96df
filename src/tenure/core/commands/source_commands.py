"""Where work comes from by itself."""

from __future__ import annotations

from typing import Any, ClassVar

from tenure.core.commands.command import Command
from tenure.core.commands.graph_commands import Template
from tenure.core.declaration import PROJECT, Declaration
from tenure.core.records import Watch


class SetSchedule(Command, frozen=True, kw_only=True, tag="set_schedule"):
    """Make a schedule, or change all of it: tasks at the times that five fields of cron say, in a time zone."""

    declaration: ClassVar = Declaration("schedules", "admin", "PUT", PROJECT + "/schedules/{schedule}")

    schedule: str
    cron: str
    template: Template
    zone: str = "UTC"
    misfire: str = "once"  # ticks that nobody was there for: skip, once (the last one), all (at most a hundred)


class PauseSchedule(Command, frozen=True, kw_only=True, tag="pause_schedule"):
    """Its ticks make nothing until it is resumed."""

    declaration: ClassVar = Declaration("schedules", "admin", "POST", PROJECT + "/schedules/{schedule}/pause")

    schedule: str
    reason: str = ""


class ResumeSchedule(Command, frozen=True, kw_only=True, tag="resume_schedule"):
    """It goes on with its next tick; those in between are not made up for."""

    declaration: ClassVar = Declaration("schedules", "admin", "POST", PROJECT + "/schedules/{schedule}/resume")

    schedule: str


class RemoveSchedule(Command, frozen=True, kw_only=True, tag="remove_schedule"):
    """The schedule is gone; what it made stays."""

    declaration: ClassVar = Declaration("schedules", "admin", "POST", PROJECT + "/schedules/{schedule}/remove")

    schedule: str


class RunSchedule(Command, frozen=True, kw_only=True, tag="run_schedule"):
    """Make its tasks now, beside its ticks; a paused one too."""

    declaration: ClassVar = Declaration("schedules", "admin", "POST", PROJECT + "/schedules/{schedule}/run")

    schedule: str


class SetTrigger(Command, frozen=True, kw_only=True, tag="set_trigger"):
    """Make a trigger, or change all of it: tasks whenever an event, or a signed delivery from outside, fits.

    The answer to making a webhook has its secret, which is shown only there.
    """

    declaration: ClassVar = Declaration("triggers", "admin", "PUT", PROJECT + "/triggers/{trigger}")

    trigger: str
    on: str  # a kind of event, a pattern such as `task.*`, or `webhook`
    template: Template
    where: dict[str, Any] = {}  # path → value, or {"prefix" | "glob" | "in" | "not": …}
    most: int = 100  # firings in an hour
    signature: str = "standard"  # of a webhook: standard (Standard Webhooks) or github
    secret: str | None = None  # of a webhook: the sender's own; None: one is made


class PauseTrigger(Command, frozen=True, kw_only=True, tag="pause_trigger"):
    """It makes nothing until it is resumed."""

    declaration: ClassVar = Declaration("triggers", "admin", "POST", PROJECT + "/triggers/{trigger}/pause")

    trigger: str


class ResumeTrigger(Command, frozen=True, kw_only=True, tag="resume_trigger"):
    """It hears what happens from now on."""

    declaration: ClassVar = Declaration("triggers", "admin", "POST", PROJECT + "/triggers/{trigger}/resume")

    trigger: str


class RemoveTrigger(Command, frozen=True, kw_only=True, tag="remove_trigger"):
    """The trigger is gone; what it made stays."""

    declaration: ClassVar = Declaration("triggers", "admin", "POST", PROJECT + "/triggers/{trigger}/remove")

    trigger: str


class RotateSecret(Command, frozen=True, kw_only=True, tag="rotate_secret"):
    """A new secret for a webhook; the one before is good for `grace` seconds more."""

    declaration: ClassVar = Declaration("triggers", "admin", "POST", PROJECT + "/triggers/{trigger}/rotate")

    trigger: str
    secret: str | None = None
    grace: float = 24 * 3600.0


class TryTrigger(Command, frozen=True, kw_only=True, tag="try_trigger"):
    """What the trigger would make of a sample, or of the last event that it would hear; nothing is stored."""

    declaration: ClassVar = Declaration("triggers", "admin", "POST", PROJECT + "/triggers/{trigger}/try")

    trigger: str
    sample: dict[str, Any] | None = None  # {"event": {…}} or {"body": {…}}


class Deliver(Command, frozen=True, kw_only=True, tag="deliver"):
    """A delivery for a webhook, exactly as it came. The signature in its headers proves it, and nothing else does."""

    declaration: ClassVar = Declaration("deliveries", "agent", "POST", PROJECT + "/triggers/{trigger}/deliver")

    trigger: str
    headers: dict[str, str]
    body: bytes


class SetWatch(Command, frozen=True, kw_only=True, tag="set_watch"):
    """Have a task made that finds out why, where much of a tag, type or track fails; None: have none made."""

    declaration: ClassVar = Declaration("failure_watch", "admin", "PUT", PROJECT + "/watch")

    watch: Watch | None = None

"""Relays: one reader of the whole store's log for each sink. Their commands have the project ""."""

from __future__ import annotations

from typing import ClassVar

from tenure.core.commands.command import Command, Declaration


class PauseRelay(Command, frozen=True, kw_only=True, tag="pause_relay"):
    """Send nothing more to a sink until it is resumed; events are kept for it up to its max_lag."""

    declaration: ClassVar = Declaration("relays", "admin", "POST", "/relays/{sink}/pause")

    project: str = ""
    sink: str


class ResumeRelay(Command, frozen=True, kw_only=True, tag="resume_relay"):
    """Continue where the relay was paused."""

    declaration: ClassVar = Declaration("relays", "admin", "POST", "/relays/{sink}/resume")

    project: str = ""
    sink: str


class RewindRelay(Command, frozen=True, kw_only=True, tag="rewind_relay"):
    """Send events again: those after a sequence, or since an instant. Consumers see the same message ids."""

    declaration: ClassVar = Declaration("relays", "admin", "POST", "/relays/{sink}/rewind")

    project: str = ""
    sink: str
    to: int | None = None  # the sequence of the last event that is not sent again
    since: int | None = None  # an instant


class RemoveRelay(Command, frozen=True, kw_only=True, tag="remove_relay"):
    """Forget a sink's place in the log, so that it no longer holds the archive back."""

    declaration: ClassVar = Declaration("relays", "admin", "POST", "/relays/{sink}/remove")

    project: str = ""
    sink: str

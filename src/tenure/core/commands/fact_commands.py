"""Facts from outside the task graph: emitted by agents and people, or seen in the repository."""

from __future__ import annotations

from typing import Any, ClassVar

from tenure.core.commands.command import PROJECT, Command, Declaration


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

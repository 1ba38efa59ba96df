"""What a new task gets where nobody named a value: the settings `tasks.…` of a project, else the shipped defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tenure.core.commands import NewTask


class TaskDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """`project`: the one whose tasks get these; None: every project."""

    project: str | None = None
    priority: int | str = 50
    max_attempts: int = 3
    on_lost: str = "retry"


SHIPPED = TaskDefaults()


def filled(new: NewTask, project: str, defaults: TaskDefaults = SHIPPED) -> NewTask:
    """The task with a value for every field that it leaves to the project."""
    if new.priority is not None and new.max_attempts is not None and new.on_lost is not None:
        return new
    if defaults.project not in (None, project):
        defaults = SHIPPED
    names = ("priority", "max_attempts", "on_lost")
    missing = {name: getattr(defaults, name) for name in names if getattr(new, name) is None}
    return msgspec.structs.replace(new, **missing)

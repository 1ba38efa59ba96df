"""What the fused verbs share: a run of commands, who may give them, and rows as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tenure.core import roles
from tenure.core.commands import Principal
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.records import Project
from tenure.engine.work import Work

Run = Sequence[tuple[Any, Principal]]  # commands of one kind, and on whose behalf

# The outcome; or what is still to be done for it when its turn comes among the others; or None: it must be decided.
Done = Outcome | Callable[[], Outcome] | None


def is_allowed(work: Work, command: Any, principal: Principal) -> bool:
    project = work.get(Project, command.project, command.project)
    if project is None:
        return False
    try:
        roles.check_role(principal, command, agents_may_operate=project.agents_may_operate)
    except TenureError:
        return False
    return True


def text(value: str) -> str:
    """The text in JSON."""
    return msgspec.json.encode(value).decode()


def members(row: dict[str, Any]) -> str:
    """The members of an object in JSON, to be put behind others."""
    return "," + msgspec.json.encode(row)[1:-1].decode()

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
from tenure.engine.runtime.unit_of_work import DeferredAnswer, UnitOfWork

# Commands of one kind, on whose behalf, and what was worked out of each before the transaction: see `ready`.
Run = Sequence[tuple[Any, Principal, Any]]


# The outcome, or what makes it later; or what is still to be done for it when its turn comes among the others; or
# None: it must be decided.
Done = Outcome | DeferredAnswer | Callable[[], Outcome] | None


class Allowed:
    """Where callers may give commands of one kind; most callers are alike."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._projects: dict[tuple[str, str], Project | None] = {}

    def project(self, command: Any, principal: Principal) -> Project | None:
        """The project, where the caller may do this in it."""
        if principal.projects or principal.is_proven:
            return self._judged(command, principal)
        place = (command.project, principal.role)
        if place not in self._projects:
            self._projects[place] = self._judged(command, principal)
        return self._projects[place]

    def _judged(self, command: Any, principal: Principal) -> Project | None:
        project = self._work.get(Project, command.project, command.project)
        if project is None:
            return None
        try:
            roles.check_role(principal, command, agents_may_operate=project.agents_may_operate)
        except TenureError:
            return None
        return project


def may_be_last(work: UnitOfWork, given: Sequence[Any]) -> bool:
    """Can the verb be left to the commit, if there is nothing behind it? It is all that the transaction does then."""
    return work.is_bold and not work.wrote and len({one.project for one in given}) == 1


def members(row: dict[str, Any]) -> str:
    """The members of an object in JSON, to be put behind others."""
    return "," + msgspec.json.encode(row)[1:-1].decode()

"""What the verbs of the fast path share: a run of commands, who may give them, and rows as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tenure.core import roles
from tenure.core.commands import Principal
from tenure.core.errors import TenureError
from tenure.core.records import Project
from tenure.engine.runtime.decision import is_led_by_agents
from tenure.engine.runtime.unit_of_work import UnitOfWork

# Commands of one kind, their principals, and the values computed for each before the transaction: see `ready`.
Run = Sequence[tuple[Any, Principal, Any]]


class Allowed:
    """Where callers may give commands of one kind; most callers are alike."""

    def __init__(self, work: UnitOfWork) -> None:
        self._work = work
        self._projects: dict[tuple[str, str], Project | None] = {}

    def project(self, command: Any, principal: Principal) -> Project | None:
        """The project, where the caller may do this in it; else None."""
        if principal.projects or principal.is_proven:
            return self._judged(command, principal)
        place = (command.project, principal.role)
        if place not in self._projects:
            self._projects[place] = self._judged(command, principal)
        return self._projects[place]

    def _judged(self, command: Any, principal: Principal) -> Project | None:
        project = self._work.get(Project, command.project, command.project)
        # The router assigns tracks with claims and their ends; a command of the leader renews its lease.
        if project is None or project.router or is_led_by_agents(self._work, project):
            return None
        try:
            roles.check_role(principal, command, agents_may_operate=project.agents_may_operate)
        except TenureError:
            return None
        return project


def may_be_last(work: UnitOfWork, given: Sequence[Any]) -> bool:
    """Whether the statement may go with the commit: it does if the transaction has nothing else to do."""
    return work.is_optimistic and not work.wrote and len({one.project for one in given}) == 1


def members(row: dict[str, Any]) -> str:
    """The members of a JSON object without its braces, to append to others."""
    return "," + msgspec.json.encode(row)[1:-1].decode()

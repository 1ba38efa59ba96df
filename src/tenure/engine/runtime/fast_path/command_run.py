"""What the verbs of the fast path share: the facts of a project, who may give commands there, columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tenure.core import roles
from tenure.core.commands import Principal
from tenure.core.errors import TenureError
from tenure.core.priority import parse_lane
from tenure.engine.runtime.context import Context
from tenure.engine.runtime.decision import leads_agents
from tenure.engine.runtime.fast_path.claim_models import Models
from tenure.engine.runtime.unit_of_work import Reply
from tenure.stores.fast_path import Call, Look, Rows

Run = Sequence[tuple[Any, Principal]]


class NotFast(Exception):
    """Commands of a run that only the ordinary path can decide: `which`, from 0 on; none: all."""

    def __init__(self, *which: int) -> None:
        super().__init__()
        self.which = which


class NoLane(NotFast):
    """No known lane has a task for them."""


class Built(NamedTuple):
    """A call, and what makes the replies from its rows."""

    call: Call
    replies: Callable[[Rows], list[Reply]]
    commands: list[int] | None = None  # the command of each item, where that is not its number


class Known:
    """The facts of a project, and values computed from it once."""

    def __init__(self, look: Look, context: Context) -> None:
        self.look = look
        self.project = look.project
        self.skills = dict(look.skills)
        self.lanes = [parse_lane(name) for name in look.lanes]
        self.boosts = [lane.boost for lane in self.lanes]
        self.fits: dict[Any, str] = {}  # skills and what a command adds to them → which lanes fit
        self.leases: dict[Any, int] = {}
        self.models = Models(context.tables.tiers)
        # The router assigns tracks with claims and their ends; a command of the leader renews its lease.
        self.is_open = not self.project.router and not leads_agents(context, self.project)
        self._allowed: dict[tuple[type[Any], str], bool] = {}

    def allows(self, command: Any, principal: Principal) -> bool:
        """Whether the caller may give this command here; most callers are alike."""
        if not self.is_open:
            return False
        if principal.projects or principal.is_proven:
            return self._judged(command, principal)
        like = (type(command), principal.role)
        if like not in self._allowed:
            self._allowed[like] = self._judged(command, principal)
        return self._allowed[like]

    def _judged(self, command: Any, principal: Principal) -> bool:
        try:
            roles.check_role(principal, command, agents_may_operate=self.project.agents_may_operate)
        except TenureError:
            return False
        return True


def column(values: list[Any]) -> Any:
    """None where all values are None."""
    return values if any(value is not None for value in values) else None

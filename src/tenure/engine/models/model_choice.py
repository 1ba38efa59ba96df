"""Which model a claim gets; and models in trouble: a rate limit cools one for all agents, a success clears it.

While no model of the project is in trouble nothing here reads a row: `Project.limited` names those that are.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.core import models
from tenure.core.errors import InvalidInput
from tenure.core.models import Route, Tiers, User, expected, known_as
from tenure.core.records import Agent, Brief, Claim, Model, Project, Task, Usage, replace
from tenure.engine.models.tables import tier_table
from tenure.engine.runtime.rows import brief_of
from tenure.engine.runtime.unit_of_work import UnitOfWork


def tiers_of(work: UnitOfWork) -> Tiers:
    return tier_table(work.tables.tiers)


def _tiers_for_holders(work: UnitOfWork) -> Tiers:
    """An error in a user's file keeps nobody from submitting: the shipped table is used instead."""
    try:
        return tiers_of(work)
    except InvalidInput:
        return tier_table()


def user_of(agent: Agent | None) -> User:
    return User() if agent is None else User(agent.type, agent.models)


def route_for(
    work: UnitOfWork,
    project: Project,
    task: Task,
    brief: Brief,
    user: User,
    attempt: int,
    is_limited: Callable[[str], bool] | None = None,
) -> Route | None:
    """The model for this attempt; None where the project does not route and the task names none."""
    if not (project.routing or task.models or task.fallback_models):
        return None
    tokens = expected(task.type, brief.constraints, project.typical).tokens
    wanted = models.wanted_of(task, brief.constraints, attempt, tokens)
    if is_limited is None:
        found = models.free_route(tiers_of(work), wanted, user)
    else:
        found = models.route(tiers_of(work), wanted, user, is_limited)
    return found if project.routing or not found.by_rule else None


def recommended(
    work: UnitOfWork, task: Task, brief: Brief, attempt: int, agent: str, model: str | None
) -> dict[str, str | None]:
    """The model shown to a holder; `model` is the one that its claim recorded, so that a repeat shows the same."""
    project = work.require(Project, task.project, task.project)
    user = user_of(work.get(Agent, task.project, agent))
    if model is None:
        return shown(route_for(work, project, task, brief, user, attempt))
    found = route_for(work, project, task, brief, user, attempt, lambda name: name != model)  # as at the claim
    if found is not None and found.model == model:
        return shown(found)
    place = tiers_of(work).place_of(model)  # the agent's models or the task's have changed
    return {"model": model, "tier": place.tier if place else None, "why": "as recommended at the claim"}


def shown(found: Route | None) -> dict[str, str | None]:
    """The members of an outcome."""
    return {} if found is None else {"model": found.model, "tier": found.tier, "why": found.why}


def recommended_model(work: UnitOfWork, project: Project, task: Task, claim: Claim) -> str | None:
    """The model of a claim that did not record one: computed again, as if none was in trouble."""
    user = user_of(work.get(Agent, project.id, claim.agent))
    try:
        found = route_for(work, project, task, brief_of(work, task), user, claim.attempt)
    except InvalidInput:  # in a user's tiers: the failure is reported all the same
        return None
    return found.model if found else None


class Cooling:
    """Which models of a project cannot be claimed for now."""

    def __init__(self, work: UnitOfWork, project: Project) -> None:
        self._work, self._project = work, project

    def _rows(self) -> list[Model]:
        """Their current rows: an earlier claim of the batch may have used one."""
        limited = self._project.limited
        return list(self._work.get_many(Model, self._project.id, limited).values()) if limited else []

    def is_limited(self, name: str) -> bool:
        return any(self._keeps_off(row) for row in self._rows() if tiers_of(self._work).is_same(row.id, name))

    def _keeps_off(self, row: Model) -> bool:
        if row.cool_until is not None and row.cool_until > self._work.now:
            return True
        claim = row.tried_by and self._work.get(Claim, row.project, row.tried_by)
        return bool(claim) and claim.state == "active"  # type: ignore[union-attr]  # a claim, once it is true

    def next_at(self) -> int | None:
        """When the first of them may be tried again."""
        ahead = (row.cool_until for row in self._rows() if row.cool_until is not None)
        return min((at for at in ahead if at > self._work.now), default=None)

    def waits(self, task: Task, user: User) -> bool:
        """Whether every model that this agent could use for the task is cooling off. Independent of the task's size."""
        if not self._project.limited or not (self._project.routing or task.models or task.fallback_models):
            return False
        wanted = models.wanted_of(task, {}, task.attempts + 1, None)
        found = models.route(tiers_of(self._work), wanted, user, self.is_limited)
        return found.waits and (self._project.routing or not found.by_rule)


# --- trouble ------------------------------------------------------------------------------------------------


def limited(work: UnitOfWork, project: str, name: str, retry_after: int | None) -> None:
    """Cool the model off for all agents after a rate limit: as long as the limit states, else longer each time."""
    name = known_as(name)
    model = work.get(Model, project, name) or Model(project=project, id=name)
    work.put(replace(models.model_limited(model, work.now, retry_after), tried_by=None))
    _name(work, project, added=name)


def tried(work: UnitOfWork, project: Project, claim: Claim, model: str) -> None:
    """A claim uses this model. After a cool-off one claim is let through, and the others wait for its outcome.

    A model without success for long is cleared too: perhaps nobody uses it any more.
    """
    for row in work.get_many(Model, project.id, project.limited).values():
        if tiers_of(work).is_same(row.id, model):
            work.put(replace(row, tried_by=claim.id))
        elif models.is_forgiven(row, work.now):
            work.remove(row)
            _name(work, project.id, dropped=row.id)


def works(work: UnitOfWork, project: Project, claim: Claim) -> None:
    """A result of this claim was accepted: the recommended model and the reported one both work."""
    where = {"project": project.id, "task": claim.task, "generation": claim.generation}
    names = {usage.model for usage in work.find(Usage, where)} | ({claim.model} if claim.model else set())
    tiers = _tiers_for_holders(work)
    for row in work.get_many(Model, project.id, project.limited).values():
        if any(tiers.is_same(row.id, name) for name in names):
            work.remove(row)
            _name(work, project.id, dropped=row.id)


def _name(work: UnitOfWork, project: str, *, added: str | None = None, dropped: str | None = None) -> None:
    row = work.require(Project, project, project)
    names = {*row.limited, *([added] if added else ())} - {dropped}
    if names != set(row.limited):
        work.put(replace(row, limited=tuple(sorted(names))))

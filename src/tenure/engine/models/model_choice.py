"""Which model a claim is told to use; and models in trouble: a rate limit cools one for all, a success clears it.

While no model of the project is in trouble nothing here reads a row: `Project.limited` names those that are.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.core import model_choice, retry
from tenure.core.errors import InvalidInput
from tenure.core.estimates import expected
from tenure.core.model_choice import Route, User
from tenure.core.records import Agent, Brief, Claim, Model, Project, Task, Usage, replace
from tenure.core.tiers import Tiers, known_as
from tenure.engine.models.tiers import tier_table
from tenure.engine.runtime.effects import brief_of
from tenure.engine.runtime.unit_of_work import UnitOfWork


def tiers_of(work: UnitOfWork) -> Tiers:
    return tier_table(work.own.tiers)


def _tiers_for_holders(work: UnitOfWork) -> Tiers:
    """A slip in a user's own file keeps nobody from handing in: then what ships must do."""
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
    is_limited: Callable[[str], bool] = lambda _: False,
) -> Route | None:
    """The model for this attempt; None where the project does not route and the task names none."""
    if not (project.routing or task.models or task.fallback_models):
        return None
    tokens = expected(task.type, brief.constraints, project.typical).tokens
    wanted = model_choice.wanted_of(task, brief.constraints, attempt, tokens)
    found = model_choice.route(tiers_of(work), wanted, user, is_limited)
    return found if project.routing or not found.by_rule else None


def told_of_model(
    work: UnitOfWork, task: Task, brief: Brief, attempt: int, agent: str, model: str | None
) -> dict[str, str | None]:
    """What a holder is told of the model to use; `model` is what its claim has recorded, which a repeat tells again."""
    project = work.get(Project, task.project, task.project)
    assert project is not None, task.project
    user = user_of(work.get(Agent, task.project, agent))
    if model is None:
        return shown(route_for(work, project, task, brief, user, attempt))
    found = route_for(work, project, task, brief, user, attempt, lambda name: name != model)  # as it was then
    if found is not None and found.model == model:
        return shown(found)
    place = tiers_of(work).place_of(model)  # the agent has other models by now, or the task other wishes
    return {"model": model, "tier": place.tier if place else None, "why": "as it was told when it claimed the task"}


def shown(found: Route | None) -> dict[str, str | None]:
    """The members of an outcome."""
    return {} if found is None else {"model": found.model, "tier": found.tier, "why": found.why}


def told_to_use(work: UnitOfWork, project: Project, task: Task, claim: Claim) -> str | None:
    """What the holder was told, where its claim does not say: worked out once more, as if nothing was in trouble."""
    user = user_of(work.get(Agent, project.id, claim.agent))
    try:
        found = route_for(work, project, task, brief_of(work, task), user, claim.attempt)
    except InvalidInput:  # of a user's own tiers: a failure is told all the same
        return None
    return found.model if found else None


class Cooling:
    """What of a project's models keeps off claims now."""

    def __init__(self, work: UnitOfWork, project: Project) -> None:
        self._work, self._project = work, project

    def _rows(self) -> list[Model]:
        """As they are by now: a claim of the same batch may have gone to one."""
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
        """Does all cool down that this agent could use for the task? That does not depend on the task's size."""
        if not self._project.limited or not (self._project.routing or task.models or task.fallback_models):
            return False
        wanted = model_choice.wanted_of(task, {}, task.attempts + 1, None)
        found = model_choice.route(tiers_of(self._work), wanted, user, self.is_limited)
        return found.waits and (self._project.routing or not found.by_rule)


# --- trouble ------------------------------------------------------------------------------------------------


def limited(work: UnitOfWork, project: str, name: str, retry_after: int | None) -> None:
    """A holder met a rate limit: the model cools down for all, as long as it was told or longer each time."""
    name = known_as(name)
    model = work.get(Model, project, name) or Model(project=project, id=name)
    work.put(replace(retry.model_limited(model, work.now, retry_after), tried_by=None))
    _name(work, project, added=name)


def tried(work: UnitOfWork, project: Project, claim: Claim, model: str) -> None:
    """A claim goes to this model. After a cool-off one is let through, and the others wait for what becomes of it.

    Whoever has had no success for long is forgiven too: it may be that nobody uses that model any more.
    """
    for row in work.get_many(Model, project.id, project.limited).values():
        if tiers_of(work).is_same(row.id, model):
            work.put(replace(row, tried_by=claim.id))
        elif retry.is_forgiven(row, work.now):
            work.remove(row)
            _name(work, project.id, dropped=row.id)


def works(work: UnitOfWork, project: Project, claim: Claim) -> None:
    """A result of this claim was accepted: what it was told to use, and what it said it has used, works."""
    where = {"project": project.id, "task": claim.task, "generation": claim.generation}
    names = {usage.model for usage in work.find(Usage, where)} | ({claim.model} if claim.model else set())
    tiers = _tiers_for_holders(work)
    for row in work.get_many(Model, project.id, project.limited).values():
        if any(tiers.is_same(row.id, name) for name in names):
            work.remove(row)
            _name(work, project.id, dropped=row.id)


def _name(work: UnitOfWork, project: str, *, added: str | None = None, dropped: str | None = None) -> None:
    row = work.get(Project, project, project)
    assert row is not None, project
    names = {*row.limited, *([added] if added else ())} - {dropped}
    if names != set(row.limited):
        work.put(replace(row, limited=tuple(sorted(names))))

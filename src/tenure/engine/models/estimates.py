"""Estimates of a task: tokens, money, and the model they are for; and how they are learnt.

A task whose holders reported usage is *metered*: when it ends, its usage goes into the history of its type and size,
from which later tasks are estimated. Other tasks cost nothing extra.
"""

from __future__ import annotations

from typing import NamedTuple

from tenure.core import models
from tenure.core.doubts import counted
from tenure.core.lifecycle import COMPLETED
from tenure.core.records import Agent, Brief, Claim, Finished, LikeTasks, Project, Task, Usage, replace
from tenure.engine.models.model_choice import route_for, tiers_of, user_of, works
from tenure.engine.runtime.rows import brief_of
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.holder_verbs import Hold


class Estimate(NamedTuple):
    """`cost` is nano-dollars, None where no price is known; `tokens` is None where the size is unknown."""

    tokens: int | None
    cost: int | None
    model: str | None
    source: str  # the basis: "said", "like tasks", "complexity", "nothing"


def estimate_of(work: UnitOfWork, task: Task, brief: Brief, agent: Agent | None = None) -> Estimate:
    """For one attempt, whichever it is; `agent` is its holder, since its models have their own prices.

    Without a known agent or a model that the task names, the cost is that of like tasks, if known: money is never
    guessed. The same before and after the claim, so that exactly the checked amount is reserved.
    """
    project = work.require(Project, task.project, task.project)
    found = models.expected(task.type, brief.constraints, project.typical)
    if found.tokens is None:
        return Estimate(None, None, None, found.source)
    route = route_for(work, project, task, brief, user_of(agent), 1)
    model = route.model if route else None
    cost = None if model is None else cost_of(work, model, found.tokens)
    return Estimate(found.tokens, found.cost if cost is None else cost, model, found.source)


def cost_of(work: UnitOfWork, model: str, tokens: int) -> int | None:
    """The price of this many tokens, split as the tier table says; None where the model has no price."""
    from tenure.core.savings import rate_of
    from tenure.engine.models.tables import price_table  # large; needed only where money is reserved

    tiers = tiers_of(work)
    rate = rate_of(model, tiers, price_table(work.tables.prices), work.now)
    return None if rate is None else rate.cost(**models.split(tokens, tiers.split))


# --- learning -----------------------------------------------------------------------------------------------


def metered(work: UnitOfWork, hold: Hold) -> None:
    """A holder has reported usage in time: with or before its submit."""
    task = work.require(Task, hold.task.project, hold.task.id)
    if not task.metered:
        task = work.put(replace(task, metered=True))
    if task.state == COMPLETED:  # reported with its result
        learn(work, task)
        project = work.get(Project, task.project, task.project)
        if project is not None and project.limited:
            works(work, project, hold.claim)


def learn(work: UnitOfWork, task: Task) -> None:
    """The task has ended: record its usage once, whatever is reported later."""
    spent = _spent(work, task)
    tokens = sum(models.tokens_of(row) for row in spent)
    if not tokens:
        return
    project = work.require(Project, task.project, task.project)
    brief = brief_of(work, task)
    size = models.size_of(brief.constraints)
    id = models.like(task.type, size)
    row = work.get(LikeTasks, task.project, id)
    if row is None:
        if work.tally(LikeTasks, {"project": task.project}, models.MOST_SIZES) >= models.MOST_SIZES:
            return
        row = LikeTasks(project=task.project, id=id, type=task.type, size=size)
    expected = models.expected(task.type, brief.constraints, project.typical).tokens
    cost = None if None in [used.cost for used in spent] else sum(counted(used) for used in spent)
    row = work.put(models.learnt(row, Finished(task=task.id, estimate=expected, tokens=tokens, cost=cost)))
    typical = models.typical_of(row)
    if typical is not None and project.typical.get(id) != typical:
        work.put(replace(project, typical={**project.typical, id: typical}))


def _spent(work: UnitOfWork, task: Task) -> list[Usage]:
    """All usage reported in time in the task's current run."""
    rows = work.find(Usage, {"project": task.project, "task": task.id, "late": False})
    if task.run == 1:
        return rows
    claims = work.find(Claim, {"project": task.project, "task": task.id})
    now = {claim.generation for claim in claims if claim.run == task.run}
    return [row for row in rows if row.generation in now]

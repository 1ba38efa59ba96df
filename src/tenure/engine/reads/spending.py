"""Spending for metrics: tokens and cost by agent and model, the rest of budgets, how busy agents are.

Usage has no index by agent or model: each sum reads the project's usage rows once, and there is one for each of the
METRIC_MODELS models most used. Metrics read it seldom, apart from the cheap gauges. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tenure.core import budgets, inputs, limits
from tenure.core import queries as q
from tenure.core.filters import Prefix, Range
from tenure.core.money import NANO
from tenure.core.records import Agent, Budget, Project, Usage
from tenure.engine.reads.gauges import OTHER
from tenure.engine.reads.overview import busy_agents
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views.project_views import BudgetLeft, SpendingView, SpentBy

MOST_AGENTS = limits.METRIC_AGENTS
MOST_MODELS = limits.METRIC_MODELS
MOST_BUDGETS = limits.METRIC_BUDGETS
DAY = 24 * 3600 * inputs.SECOND
MINUTES = 15  # over which agents are busy or idle
TOKENS = ("fresh", "cached", "written", "output")
_SUMMED = (*TOKENS, "cost")

Sums = tuple[int | None, ...]


def spending(work: UnitOfWork, project: str, *, most: int = 100) -> list[SpendingView]:
    """One entry for each of the `most` oldest projects."""
    made = sorted(work.find(Project, {}), key=lambda p: (p.created_at, p.id))[:most]
    return [_entry(work, row) for row in made]


def _entry(work: UnitOfWork, row: Project) -> SpendingView:
    since = work.now - work.now % DAY
    today = work.tx.sums(Usage, {"project": row.id, "at": Range(since)}, "project", ("cost",))
    return {
        "project": row.id,
        "used": _used(work, row.id),
        "today_usd": (today.get(row.id, (0,))[0] or 0) / NANO,
        "budgets": _budgets(work, row) if row.funded else [],
        "busy": _busy(work, row.id),
    }


def _used(work: UnitOfWork, project: str) -> list[SpentBy]:
    models = work.tx.sums(Usage, {"project": project}, "model", ("pairs",))
    order = sorted(models, key=lambda model: (-(models[model][0] or 0), model))
    groups = [(model, (model,)) for model in order[:MOST_MODELS]]
    if order[MOST_MODELS:]:
        groups.append((OTHER, tuple(order[MOST_MODELS:])))
    by_model = {
        name: work.tx.sums(Usage, {"project": project, "model": several}, "agent", _SUMMED) for name, several in groups
    }
    shown = _most_used(by_model)
    used: list[SpentBy] = []
    for model, by_agent in by_model.items():
        rest = [sums for agent, sums in by_agent.items() if agent not in shown]
        named = [(agent, sums) for agent, sums in sorted(by_agent.items()) if agent in shown]
        named += [(OTHER, tuple(sum(n or 0 for n in column) for column in zip(*rest, strict=True)))] if rest else []
        used += [_line(agent, model, sums) for agent, sums in named]
    return used


def _most_used(by_model: Mapping[str, Mapping[str, Sums]]) -> frozenset[str]:
    """The agents with the most tokens, as many as metrics name."""
    tokens: dict[str, int] = {}
    for by_agent in by_model.values():
        for agent, sums in by_agent.items():
            tokens[agent] = tokens.get(agent, 0) + sum(n or 0 for n in sums[: len(TOKENS)])
    return frozenset(sorted(tokens, key=lambda agent: (-tokens[agent], agent))[:MOST_AGENTS])


def _line(agent: str, model: str, sums: Sums) -> SpentBy:
    fresh, cached, written, output, cost = (n or 0 for n in sums)
    return {
        "agent": agent, "model": model, "fresh": fresh, "cached": cached, "written": written, "output": output,
        "cost_usd": cost / NANO,
    }  # fmt: skip


def _budgets(work: UnitOfWork, row: Project) -> list[BudgetLeft]:
    """In their current period. Those of tasks are many and short-lived, and left out."""
    found = work.tx.load(Budget, [budgets.place(row.id, scope) for scope in (budgets.TENANT, budgets.PROJECT)])
    for scope in (budgets.AGENT, budgets.DAG):
        room = MOST_BUDGETS - len(found)
        if room > 0:
            found += work.tx.find(Budget, {"project": row.id, "id": Prefix(f"{scope}:")}, limit=room)
    settled: Sequence[Budget] = [budgets.settled(one, work.now) for one in found if one.currency == budgets.USD]
    return [
        {"scope": one.scope, "name": one.id.partition(":")[2], "remaining_usd": budgets.left(one) / NANO}
        for one in settled
    ]


def _busy(work: UnitOfWork, project: str) -> dict[str, float]:
    busy = busy_agents(work, project, MINUTES)
    rows = {row.id: row for row in work.tx.load(Agent, [(project, name) for name in sorted(busy)])}
    part = {
        name: min(1.0, held / ((rows[name].max_concurrent_tasks if name in rows else None) or 1))
        for name, held in busy.items()
    }
    order = sorted(part, key=lambda name: (-part[name], name))
    shown = {name: round(part[name], 4) for name in order[:MOST_AGENTS]}
    rest = [part[name] for name in order[MOST_AGENTS:]]
    return shown | ({OTHER: round(sum(rest) / len(rest), 4)} if rest else {})


READS: Reads = {q.Spending: spending}

"""Queries of models: tiers and prices, accuracy of estimates, savings by routing. They write nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import money
from tenure.core import queries as q
from tenure.core.models import goodness, median, typical_of
from tenure.core.records import Claim, Finished, LikeTasks, Model, Task, Usage
from tenure.core.savings import Saved, Used, savings
from tenure.core.usage import TOKENS
from tenure.engine.models.model_choice import tiers_of
from tenure.engine.models.tables import price_table
from tenure.engine.runtime.rows import project_of
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork

if TYPE_CHECKING:
    from tenure.core import views as v


def models(work: UnitOfWork, project: str) -> v.ModelsView:
    """Which models exist for which tier, what they cost, and which are in trouble."""
    row = project_of(work, project)
    tiers, prices = tiers_of(work), price_table(work.tables.prices)

    def offered(family: str, model: str) -> v.OfferedView:
        priced = prices.find(model, work.now)
        rates = priced.rate[:4] if priced else (None, None, None, None)
        fresh, cached, _, output = (None if rate is None else money.usd_text(rate) for rate in rates)
        return {"family": family, "model": model, "fresh_usd": fresh, "cached_usd": cached, "output_usd": output}

    return {
        "routing": row.routing,
        "tiers": [
            {
                "tier": tier,
                "use": entry.get("for", ""),
                "strengths": list(entry.get("strengths", ())),
                "models": [offered(o.family, o.model) for o in tiers.offered() if o.tier == tier],
            }
            for tier, entry in tiers.tiers.items()
        ],
        "limited": [_limited(work, model) for model in work.find(Model, {"project": project})],
    }


def _limited(work: UnitOfWork, model: Model) -> v.LimitedView:
    claim = work.get(Claim, model.project, model.tried_by) if model.tried_by else None
    task = work.get(Task, claim.project, claim.task) if claim and claim.state == "active" else None
    return {
        "model": model.id,
        "troubles": model.troubles,
        "cool_until": model.cool_until,
        "tried_by": task.key if task else None,
    }


def read_estimates(work: UnitOfWork, project: str) -> v.EstimatesView:
    """How close estimates came to actual usage, by type."""
    by_type: dict[str, list[LikeTasks]] = {}
    for row in work.find(LikeTasks, {"project": project}):
        by_type.setdefault(row.type, []).append(row)
    types: list[Any] = [
        {"type": type, **_goodness([f for row in rows for f in row.finished]), "sizes": _sizes(rows)}
        for type, rows in sorted(by_type.items())
    ]
    everything = [f for rows in by_type.values() for row in rows for f in row.finished]
    return {**_goodness(everything), "types": types}  # type: ignore[typeddict-item]


def _goodness(finished: Sequence[Finished]) -> dict[str, Any]:
    found = goodness(finished)
    return {
        "tasks": len(finished),
        "estimated": found.tasks,
        "median_error": found.median_error,
        "within": found.within,
    }


def _sizes(rows: Sequence[LikeTasks]) -> list[v.SizeView]:
    sized = sorted((row for row in rows if row.finished), key=lambda row: (len(row.size), row.size))
    return [_size(row) for row in sized]


def _size(row: LikeTasks) -> v.SizeView:
    costs = [f.cost for f in row.finished if f.cost is not None]
    return {
        "size": row.size,
        "tasks": len(row.finished),
        "tokens": median([f.tokens for f in row.finished]),
        "cost_usd": money.usd_text(median(costs)) if costs else None,
        "is_used": typical_of(row) is not None,
    }


def read_savings(work: UnitOfWork, project: str) -> v.SavingsView:
    """What routing by tier has saved compared with the middle tier for all tasks, at current prices."""
    used = work.sums(Usage, {"project": project}, "model", TOKENS)
    spent = (Used(model, *(count or 0 for count in counts)) for model, counts in sorted(used.items()))
    found = savings(spent, tiers_of(work), price_table(work.tables.prices), work.now)
    saved = found.in_the_middle - found.cost
    return {
        "tiers": [_saved(tier) for tier in found.tiers],
        "cost_usd": money.usd_text(found.cost),
        "middle_usd": money.usd_text(found.in_the_middle),
        "saved_usd": money.usd_text(saved),
        "saved": saved / found.in_the_middle if found.in_the_middle else None,
        "unknown": [{"model": one.model, "tokens": one.tokens} for one in found.unknown],
    }


def _saved(tier: Saved) -> v.SavedView:
    return {
        "tier": tier.tier,
        "models": list(tier.models),
        "tokens": tier.tokens,
        "cost_usd": money.usd_text(tier.cost),
        "middle_usd": money.usd_text(tier.in_the_middle),
        "saved_usd": money.usd_text(tier.in_the_middle - tier.cost),
    }


READS: Reads = {q.ShowSavings: read_savings, q.Estimates: read_estimates, q.Models: models}

"""Usage: booking what holders report, and totals.

Usage was paid for, so everything that a genuine receipt reports is booked. Under a stale receipt it is booked as late:
on the generation that spent it, but not against the task that continued without it. It appends no event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure.core import commands, inputs, limits, money
from tenure.core.commands import Totals
from tenure.core.errors import TenureError
from tenure.core.filters import Present
from tenure.core.outcomes import Outcome
from tenure.core.records import Task, Usage, replace
from tenure.core.usage import SUMMED, TOKENS, Spent, changed, check_all, check_pairs
from tenure.engine.archive.totals import ARCHIVED
from tenure.engine.runtime.rows import fields_of
from tenure.engine.runtime.unit_of_work import Handlers, Refused, UnitOfWork
from tenure.engine.verbs import brief
from tenure.engine.verbs.holder_verbs import Hold, judged, keep_worked

if TYPE_CHECKING:
    from tenure.core import views as v

OF_TASK = ("type", "dag", "track")  # fields of the task, by which its usage is summed
BY = ("task", "agent", "model", "operation", "session", *OF_TASK)
MOST_LISTED = limits.LISTED
_SHOWN = (*SUMMED, "doubtful", "rejected")


def usage(work: UnitOfWork, cmd: commands.ReportUsage) -> Outcome:
    totals = Totals(**fields_of(cmd, "model fresh cached written output cost_usd duration operation"))
    hold = judged(work, cmd.project, cmd.receipt, late=True)
    refusal = hold.refusal
    if refusal is not None and not hold.verdict.genuine:
        raise Refused(refusal)
    task = hold.task if refusal is not None else keep_worked(work, hold)
    answer = Outcome(
        outcome="OK",
        state=task.state,
        generation=hold.claim.generation,
        current_generation=task.generation,
        message=f"booked as late: {refusal.message}" if refusal else "",
        **({"directive": refusal.directive} if refusal else brief.directive(work, task)),
    )
    answer = with_usage(work, hold, (totals,), answer)
    if refusal is not None or not (hold.project.funded or task.capped):
        return answer
    from tenure.engine.budgets.budget_guard import checked  # most projects have no budget; keeps startup fast

    return checked(work, hold, answer)


def with_usage(work: UnitOfWork, hold: Hold, totals: Sequence[Totals], answer: Outcome) -> Outcome:
    """Book what a genuine receipt reports; the answer carries what the claim has cost so far."""
    spent = check_all(totals)
    if not hold.verdict.genuine:
        return answer
    rows = _book(work, hold, spent)
    if hold.refusal is None:
        from tenure.engine.models.estimates import metered  # keeps startup fast

        metered(work, hold)
    is_stale = hold.refusal is not None
    if is_stale and answer.ok and answer.again:  # a repeated submit: only what it adds is late
        pairs = {one.pair for one in spent}
        is_stale = any(r.late and (r.model, r.operation) in pairs for r in rows)
    return replace(answer, usage=view(rows), late=is_stale or None)


def _book(work: UnitOfWork, hold: Hold, spent: Sequence[Spent]) -> list[Usage]:
    """Put each report into its row; return all rows of the claim."""
    claim, late = hold.claim, hold.refusal is not None
    where = {"project": claim.project, "task": claim.task, "generation": claim.generation}
    before = {row.id: row for row in work.find(Usage, where)}
    rows = dict(before)
    price = partial(priced, work)

    for one in spent:
        rows |= changed(claim, one, rows, late=late, now=work.now, price=price)
    check_pairs({(row.model, row.operation) for row in rows.values()})
    if any(row.cost and not row.computed for row in rows.values()):
        from tenure.engine.budgets.doubts import doubted  # most agents report tokens alone; keeps startup fast

        rows = doubted(work, hold, rows)
    for id, row in rows.items():
        if row is not before.get(id):
            work.put(row)
    if hold.project.funded or hold.task.capped:
        from tenure.engine.budgets.budget_guard import book

        book(work, hold.project, hold.task, claim, before, rows)
    return list(rows.values())


def priced(work: UnitOfWork, row: Usage) -> int | None:
    """The cost by the price table, for agents that report only tokens."""
    from tenure.engine.models.tables import price_table

    try:
        found = price_table(work.tables.prices).find(row.model, work.now)
    except TenureError:  # in a user's table: spending is booked all the same
        return None
    if found is None:
        return None
    return found.rate.cost(fresh=row.fresh, cached=row.cached, written=row.written, output=row.output)


# --- totals -------------------------------------------------------------------------------------------------


def _shape(sums: Sequence[int | None], unpriced: int, computed: int | None) -> Any:
    """Usage as shown. `cost_usd` is the known part of the cost, None where none is known."""
    *tokens, duration, cost, doubtful, rejected = sums
    apart = {"doubtful_usd": doubtful, "rejected_usd": rejected}
    return {
        **dict(zip(TOKENS, tokens, strict=True)),
        "cost_usd": None if cost is None else money.usd_text(cost),
        "unpriced": unpriced,
        "duration": (duration or 0) / inputs.SECOND,
        **{name: money.usd_text(amount) for name, amount in apart.items() if amount},
    } | ({} if computed is None else {"computed_usd": money.usd_text(computed)})


def view(rows: Iterable[Usage]) -> v.UsageView | None:
    """The sum of these rows; `late` is the part that does not count against the task."""
    rows = list(rows)
    if not rows:
        return None
    answer = _added(rows) | {"models": sorted({r.model for r in rows}), "reported_at": max(r.at for r in rows)}
    if operations := sorted({r.operation for r in rows if r.operation}):
        answer["operations"] = operations
    late = [r for r in rows if r.late]
    return answer | ({"late": _added(late)} if late else {})  # type: ignore[no-any-return]


def _added(rows: Sequence[Usage]) -> Any:
    priced = [r.cost for r in rows if r.cost is not None]
    sums = [sum(getattr(r, name) for r in rows) for name in SUMMED[:-1]]
    computed = [r.cost for r in rows if r.computed and r.cost is not None]
    total = sum(priced) if priced else None
    apart = [sum(r.doubtful or 0 for r in rows), sum(r.rejected for r in rows)]
    return _shape([*sums, total, *apart], len(rows) - len(priced), sum(computed) if computed else None)


def of_task(work: UnitOfWork, project: str, task: str) -> list[Usage]:
    return work.find(Usage, {"project": project, "task": task}, order="generation")


class _Totals(NamedTuple):
    sums: Sequence[int | None]  # of _SHOWN
    unpriced: int
    computed: int | None

    def shape(self) -> Any:
        return _shape(self.sums, self.unpriced, self.computed)


def _totals(work: UnitOfWork, project: str, by: str, **where: Any) -> dict[Any, _Totals]:
    asked = {"project": project, **where}
    unpriced = {v: n or 0 for v, (n,) in work.sums(Usage, asked | {"cost": Present(False)}, by, ("pairs",)).items()}
    computed = {v: n for v, (n,) in work.sums(Usage, asked | {"computed": True}, by, ("cost",)).items()}
    found = work.sums(Usage, asked, by, _SHOWN).items()
    return {v: _Totals(sums, unpriced.get(v, 0), computed.get(v)) for v, sums in found}


def of_project(work: UnitOfWork, project: str) -> v.TotalsView:
    """The project's totals; all zero before anything is reported."""
    total = _totals(work, project, "project").get(project)
    late = _totals(work, project, "project", late=True).get(project)
    answer = total.shape() if total else _added(())
    return answer | ({"late": late.shape()} if late else {})  # type: ignore[no-any-return]


def spent_by(work: UnitOfWork, project: str, by: str, limit: int) -> list[v.SpentView]:
    """Totals for each task, agent, model, operation or session that has any, most expensive first."""
    inputs.check_choice(by, BY, "by")
    totals, late = (_grouped(work, project, by, **where) for where in ({}, {"late": True}))
    first = sorted(totals, key=lambda value: (*_dearness(totals[value]), value))[:limit]
    names = {ARCHIVED: "(archived)"} if by == "task" or by in OF_TASK else {}
    if by == "task":
        names |= {task.id: task.key for task in work.get_many(Task, project, [id for id in first if id]).values()}
    return [
        {by: names.get(value, value), **totals[value].shape()}  # type: ignore[misc]
        | ({"late": late[value].shape()} if value in late else {})
        for value in first
    ]


def _grouped(work: UnitOfWork, project: str, by: str, **where: Any) -> dict[Any, _Totals]:
    """Totals by a field of usage, or by one of the task. The archive sums usage without its tasks."""
    if by not in OF_TASK:
        return _totals(work, project, by, **where)
    of_tasks = _totals(work, project, "task", **where)
    tasks = work.get_many(Task, project, [id for id in of_tasks if id])
    groups: dict[Any, list[_Totals]] = {}
    for id, total in of_tasks.items():
        groups.setdefault(getattr(tasks[id], by) if id in tasks else ARCHIVED, []).append(total)
    return {value: _sum(found) for value, found in groups.items()}


def _sum(totals: Sequence[_Totals]) -> _Totals:
    def added(values: Iterable[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    columns = zip(*(total.sums for total in totals), strict=True)
    computed = added(total.computed for total in totals)
    return _Totals([added(column) for column in columns], sum(total.unpriced for total in totals), computed)


def _dearness(total: _Totals) -> tuple[int, int]:
    """Cost first; where it is equal or unknown, tokens."""
    *tokens, _, cost, _, _ = total.sums
    return -(cost or 0), -sum(n or 0 for n in tokens)


HANDLERS: Handlers = {commands.ReportUsage: usage}

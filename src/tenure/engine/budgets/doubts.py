"""Doubtful costs: what a report states far beyond its tokens, and the decision of a person about it.

Booked and shown at once; budgets count the doubtful part from the moment when a person confirms it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tenure.core import commands, doubts, models, roles
from tenure.core.budgets import USD, USUAL
from tenure.core.claims import claim_id
from tenure.core.doubts import Worth
from tenure.core.errors import TenureError
from tenure.core.filters import Present
from tenure.core.money import usd_text
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Claim, Project, Task, Usage
from tenure.engine.budgets.budget_guard import book, rows_of
from tenure.engine.budgets.task_caps import cap_of
from tenure.engine.models.estimates import estimate_of
from tenure.engine.models.tables import price_table, tier_table
from tenure.engine.runtime.rows import brief_of, current, task_named
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.verbs.holder_verbs import Hold
from tenure.engine.verbs.usage import priced

if TYPE_CHECKING:
    from tenure.core.events import Event

Rows = dict[str, Usage]
OPEN, CONFIRMED, REJECTED = "task.usage_doubted", "task.usage_confirmed", "task.usage_rejected"


def doubted(work: UnitOfWork, hold: Hold, rows: Rows) -> Rows:
    """The rows of an attempt with their doubtful parts as of this report; an event where there was none before."""
    after = _judged(work, hold.task, hold.claim, rows)
    if _doubt(after) and not _doubt(rows):
        _record(work, OPEN, hold.task, hold.claim, after, _doubt(after))
    return after


def _judged(work: UnitOfWork, task: Task, claim: Claim, rows: Mapping[str, Usage]) -> Rows:
    worth = Worth(partial(_of_tokens, work), partial(_of_task, work, task, claim))
    return {**rows, **{row.id: row for row in doubts.judged(rows.values(), worth)}}


def _doubt(rows: Mapping[str, Usage]) -> int:
    return sum(row.doubtful or 0 for row in rows.values())


def _of_tokens(work: UnitOfWork, row: Usage) -> int:
    """What the row's tokens cost; where its model has no price, at the dearest model of the tiers."""
    found = priced(work, row)
    if found is not None:
        return found
    try:
        dearest = {place.model for place in tier_table(work.tables.tiers).offered() if place.tier == models.TOP}
    except TenureError:  # in a user's table
        dearest = {place.model for place in tier_table().offered() if place.tier == models.TOP}
    prices = price_table()
    known = (prices.find(name, work.now) for name in dearest)
    amounts = {"fresh": row.fresh, "cached": row.cached, "written": row.written, "output": row.output}
    return max((one.rate.cost(**amounts) for one in known if one is not None), default=0)


def _of_task(work: UnitOfWork, task: Task, claim: Claim) -> int:
    """For a cost without tokens: what the task may cost, else its estimate, else what an unknown task reserves."""
    brief = brief_of(work, task)
    cap = cap_of(brief)
    if cap is not None:
        return cap
    try:
        cost = estimate_of(work, task, brief, work.get(Agent, task.project, claim.agent)).cost
    except TenureError:  # in a user's table: spending is booked all the same
        cost = None
    return USUAL[USD] if cost is None else cost


# --- a person decides ---------------------------------------------------------------------------------------


def confirm(work: UnitOfWork, cmd: commands.ConfirmUsage) -> Outcome:
    return _decided(work, cmd, doubts.confirmed, lambda row: (row.doubtful or 0) + row.rejected)


def reject(work: UnitOfWork, cmd: commands.RejectUsage) -> Outcome:
    return _decided(work, cmd, doubts.rejected, lambda row: (row.doubtful or 0) + row.confirmed)


def _decided(
    work: UnitOfWork,
    cmd: commands.ConfirmUsage | commands.RejectUsage,
    change: Callable[[Usage], Usage],
    part: Callable[[Usage], int],
) -> Outcome:
    """The decision about every attempt of the task, or about one."""
    is_confirmed = isinstance(cmd, commands.ConfirmUsage)
    done, kind = ("confirmed", CONFIRMED) if is_confirmed else ("rejected", REJECTED)
    task = task_named(work, cmd.project, cmd.task)
    where: dict[str, Any] = {"project": cmd.project, "task": task.id}
    if cmd.generation is not None:
        where["generation"] = cmd.generation
    found = [row for row in work.find(Usage, where) if part(row)]
    if not found:
        return Outcome(outcome="UNCHANGED", state=task.state, message=f"{task.key}: no cost waits to be {done}")
    for generation in sorted({row.generation for row in found}):
        claim = work.require(Claim, cmd.project, claim_id(task.id, generation))
        roles.check_spending(work.principal, claim, f"the cost that {task.key} reported")
        before = _of_claim(work, claim)
        amount = sum(part(row) for row in before.values())
        after = _judged(work, task, claim, {id: change(row) for id, row in before.items()})
        _keep(work, task, claim, before, after)
        by = work.principal.person or work.principal.name
        _record(work, kind, task, claim, after, amount, by)
    task = current(work, task)
    total = f"${usd_text(sum(part(row) for row in found))}"
    means = "counts in its budgets" if is_confirmed else "was not spent, and counts in no budget"
    message = f"{total} that {task.key} reported is {done}: it {means}"
    return Outcome(
        outcome="UPDATED", state=task.state, version=task.version, command_id=work.command_id, message=message
    )


def _of_claim(work: UnitOfWork, claim: Claim) -> Rows:
    where = {"project": claim.project, "task": claim.task, "generation": claim.generation}
    return {row.id: row for row in work.find(Usage, where)}


def _keep(work: UnitOfWork, task: Task, claim: Claim, before: Rows, after: Rows) -> None:
    for id, row in after.items():
        if row != before[id]:
            work.put(row)
    project = work.require(Project, task.project, task.project)
    book(work, project, task, claim, before, after)
    if sum(map(doubts.counted, after.values())) < sum(map(doubts.counted, before.values())):
        from tenure.engine.budgets.budget_verbs import resumed

        for budget in rows_of(work, project, task, claim.agent):
            resumed(work, budget.project, budget.id)


def undone(work: UnitOfWork, task: Task, event: Event) -> None:
    """The decision is open again."""
    claim = work.require(Claim, task.project, claim_id(task.id, event.generation or 0))
    roles.check_spending(work.principal, claim, f"the cost that {task.key} reported")
    before = _of_claim(work, claim)
    after = _judged(work, task, claim, {id: doubts.undecided(row) for id, row in before.items()})
    _keep(work, task, claim, before, after)
    _record(work, OPEN, task, claim, after, _doubt(after))


def _record(
    work: UnitOfWork, kind: str, task: Task, claim: Claim, rows: Mapping[str, Usage], amount: int, by: str | None = None
) -> None:
    reported = sum((row.cost or 0) + row.rejected for row in rows.values())
    details = {"amount_usd": usd_text(amount), "reported_usd": usd_text(reported)}
    fields: dict[str, Any] = {"level": "warning", "holder": claim}
    if by is not None:
        details["by"] = by
        fields = {"generation": claim.generation}
    work.record(kind, task=current(work, task), details=details, **fields)


def waiting(work: UnitOfWork, project: str) -> Sequence[tuple[Task, int, int]]:
    """Tasks with a doubtful cost, the amount, and since when: the last report."""
    found: dict[str, list[Usage]] = {}
    for row in work.find(Usage, {"project": project, "doubtful": Present()}):
        found.setdefault(row.task, []).append(row)
    tasks = work.get_many(Task, project, list(found))
    return [
        (tasks[id], sum(row.doubtful or 0 for row in rows), max(row.at for row in rows))
        for id, rows in found.items()
        if id in tasks
    ]


HANDLERS: Handlers = {commands.ConfirmUsage: confirm, commands.RejectUsage: reject}

"""What budgets had spent and reserved at an earlier moment.

Counts of budgets have no events. Spent is the usage in the scope that had been reported by then; reserved is what the
claims of that moment had reserved when they were granted, less what they had spent. Both are exact where claims report
their usage when they end. A usage row says when it last grew, not by how much. What had been spent before a budget
began is in its event; in a later period that is over, a row that began before it counts there whole. Alerts have
events, and the last claim says when a throttled budget let the next one be.
"""

from __future__ import annotations

from collections.abc import Iterable

from tenure.core import archive, budgets, ids
from tenure.core.budgets import AGENT, DAG, TASK, TENANT
from tenure.core.doubts import AMOUNT
from tenure.core.records import KINDS, Archived, Budget, Claim, Task, Usage, replace
from tenure.engine.past.log import PastLog
from tenure.engine.runtime.effects import descendants
from tenure.engine.runtime.rows import ROWS_A_PAGE, row_pages
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.stores.port import Transaction

TABLE = KINDS[Budget].table


def count(work: UnitOfWork, tx: Transaction, project: str, log: PastLog) -> None:
    """Put the budgets with their counts."""
    rows = work.find(Budget, {})
    if not rows:
        return
    began = _began(log)
    current = {(row.project, row.id): row for row in tx.load(Budget, [(row.project, row.id) for row in rows])}
    funds = _funds(work, project, log)
    usage = work.find(Usage, {"project": project})
    for row in rows:
        key = (row.project, row.id)
        since, before = began.get(key, (row.created_at, None))
        begun = budgets.settled(budgets.begun(row, since), work.now)
        counted = _in_scope(work, tx, project, row, usage)
        same = current.get(key)
        if same is not None and (same.created_at, same.since) == (begun.created_at, begun.since):
            earlier = same.earlier
        elif before is not None and begun.since == since:
            earlier = before
        elif row.scope == TASK and row.period is None:
            earlier = 0
        else:
            earlier = sum(AMOUNT[row.currency](one) for one in counted if one.at < begun.since)
        spent = sum(AMOUNT[row.currency](one) for one in counted)
        burn = same.burn if same is not None else ()
        work.put(
            replace(
                begun, consumed=max(0, spent - earlier), earlier=earlier, reserved=_reserved(row, funds, usage),
                alerts=_alerts(log, row, begun.since), next_claim_at=_next_claim(log, begun),
                burn=tuple(b for b in burn if b[0] < work.now // budgets.HOUR),
            )
        )  # fmt: skip


def _began(log: PastLog) -> dict[tuple[str, str], tuple[int, int | None]]:
    """When each budget was created, or last got another period; what had been spent before, where the event has it."""
    found = {}
    for event in log.events:
        if event.kind in ("budget.set", "task.created"):
            for table, id, changes in event.patch:
                if table == TABLE and changes is not None and not changes.keys().isdisjoint({"created_at", "period"}):
                    found[event.project, id] = event.time, event.details.get("earlier")
    return found


def _funds(work: UnitOfWork, project: str, log: PastLog) -> dict[str, dict[str, int]]:
    """What live claims had reserved: claim → budget → amount."""
    live = {claim.id for claim in work.find(Claim, {"project": project, "state": "active"})}
    found = {}
    for event in log.events:
        if event.kind == "task.claimed" and (id := f"{event.task}@{event.generation}") in live:
            found[id] = event.details.get("funds", {})
    return found


def _reserved(budget: Budget, funds: dict[str, dict[str, int]], usage: Iterable[Usage]) -> int:
    spent: dict[str, int] = {}
    for row in usage:
        claim = f"{row.task}@{row.generation}"
        if claim in funds and not row.late:
            spent[claim] = spent.get(claim, 0) + AMOUNT[budget.currency](row)
    return sum(max(0, held[budget.id] - spent.get(claim, 0)) for claim, held in funds.items() if budget.id in held)


def _next_claim(log: PastLog, budget: Budget) -> int | None:
    """When a throttled budget let the next claim be, as its last one says."""
    if not budget.throttle:
        return None
    found = (e.details.get("next_claims", {}) for e in reversed(log.events) if e.time >= budget.since)
    return next((later[budget.id] for later in found if budget.id in later), None)


def _alerts(log: PastLog, budget: Budget, since: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in log.events:
        if not event.kind.startswith("budget.alert") or event.project != budget.project:
            continue
        if event.details["budget"] == budget.id and event.time >= since:
            if event.kind == "budget.alert":
                found[str(event.details["threshold"])] = event.time
            else:
                found.pop(str(event.details["threshold"]), None)
    return found


def _in_scope(work: UnitOfWork, tx: Transaction, project: str, budget: Budget, usage: list[Usage]) -> list[Usage]:
    name = budget.id.partition(":")[2]
    if budget.scope == AGENT:
        return [row for row in usage if row.agent == name]
    if budget.scope == TENANT:
        return usage + _elsewhere(tx, project, work.now)
    if budget.scope not in (DAG, TASK):
        return usage
    if budget.scope == TASK:
        task = work.get(Task, project, name)
        tasks = {name} | ({one.id for one in descendants(work, task)} if task is not None else set())
        gone = [row for row in work.find(Archived, {"project": project}) if name in (row.root, row.id)]
    else:
        tasks = {task.id for task in work.find(Task, {"project": project, "dag": name})}
        alone = ids.lone_task(name)
        gone = [row for row in work.find(Archived, {"project": project}) if row.dag == name or row.id == alone]
    rows = [row for row in usage if row.task in tasks]
    known = {row.id for row in rows}
    inside = (row for one in gone for row in archive.rows_in(one) if isinstance(row, Usage))
    rows += [row for row in inside if row.id not in known]
    return [row for row in rows if not (budget.scope == TASK and row.late and row.task == name)]


def _elsewhere(tx: Transaction, project: str, now: int) -> list[Usage]:
    """Usage of the other projects, which the tenant's budget counts too; their archived usage is summed."""
    found: list[Usage] = []
    for name in tx.count(Usage, {}, "project"):
        if name != project:
            for page in row_pages(tx, Usage, {"project": name}, ROWS_A_PAGE):
                found += [row for row in page if row.at <= now]
    return found

"""Cost caps: the budget that `max_cost_usd` creates. It covers all attempts and the task's subtasks."""

from __future__ import annotations

from tenure.core import budgets
from tenure.core.budgets import TASK, USD, budget_id
from tenure.core.filters import Where
from tenure.core.records import Brief, Budget, Task, Usage, replace
from tenure.core.usage import COUNTED
from tenure.engine.runtime.effects import descendants
from tenure.engine.runtime.unit_of_work import UnitOfWork


def cap_of(brief: Brief) -> int | None:
    """Nano-dollars; None where the task has no cap."""
    cap = brief.constraints.get("max_cost_usd")
    return None if cap is None else budgets.parse_amount(str(cap), USD, "constraints.max_cost_usd")


def new_cap(work: UnitOfWork, task: Task, brief: Brief) -> list[Budget]:
    """The budget of a task being created."""
    allocated = cap_of(brief)
    return [] if allocated is None else [_row(work, task, allocated)]


def follow(work: UnitOfWork, task: Task, before: Brief, after: Brief) -> None:
    """The cap was edited: its budget follows, and a new one starts with earlier spending.

    Subtasks that it paused resume if it covers them again; the caller handles the task itself: see `go_on`.
    """
    allocated = cap_of(after)
    if allocated == cap_of(before):
        return
    row = work.get(Budget, task.project, budget_id(TASK, task.id))
    if allocated is None:
        if row is not None and row.currency == USD:
            from tenure.engine.budgets.budget_verbs import drop

            drop(work, row)
    elif row is None or row.currency == USD:
        if row is None:
            row = counted(work, _row(work, task, allocated), task)
            mark(work, task)
        row = replace(row, allocated=allocated)
        work.record("budget.set", row, project=task.project, details={"budget": row.id, "task": task.key})
    go_on(work, task, but=task.id)


def go_on(work: UnitOfWork, task: Task, *, but: str | None = None) -> None:
    """Resume what the task's own budget has paused, if it is no longer used up."""
    from tenure.engine.budgets.budget_verbs import resumed

    resumed(work, task.project, budget_id(TASK, task.id), but=but)


def counted(work: UnitOfWork, row: Budget, task: Task) -> Budget:
    """The new budget of a task with history: includes what it and its subtasks have cost."""
    below = tuple(child.id for child in descendants(work, task))
    # Late usage does not count against the task itself; but the task is above its subtasks.
    spent = total(work, row.currency, {"project": task.project, "task": task.id, "late": False})
    return replace(row, consumed=spent + total(work, row.currency, {"project": task.project, "task": below}))


def total(work: UnitOfWork, currency: str, where: Where) -> int:
    """The sum of matching usage, as budgets count it."""
    if currency != USD:
        return sum(n or 0 for sums in work.sums(Usage, where, "project", COUNTED).values() for n in sums)
    sums = work.sums(Usage, where, "project", ("cost", "doubtful")).values()
    return sum((cost or 0) - (doubtful or 0) for cost, doubtful in sums)


def mark(work: UnitOfWork, task: Task) -> None:
    """From now on claims of the task and of those below it check its budget."""
    for one in (task, *descendants(work, task)):
        now_is = work.get(Task, one.project, one.id)
        if now_is is not None and not now_is.capped:
            work.put(replace(now_is, capped=True))


def _row(work: UnitOfWork, task: Task, allocated: int) -> Budget:
    return Budget(
        project=task.project,
        id=budget_id(TASK, task.id),
        scope=TASK,
        currency=USD,
        allocated=allocated,
        default_estimate=budgets.default_estimate(USD, allocated),
        task=task.id,
        created_at=work.now,
        created_by=work.principal.name,
        priced_at=work.now,
        since=work.now,
    )

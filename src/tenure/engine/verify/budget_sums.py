"""Verify budgets: their counts agree with claims and usage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tenure.core import claims
from tenure.core.budgets import AGENT, DAG, PROJECT, TASK, TENANT, place
from tenure.core.doubts import AMOUNT
from tenure.core.records import Archived, Budget, Claim, Project, Task, Usage
from tenure.engine.budgets.unaffordable import MARK
from tenure.engine.verify.replay import Tables


def budget_rows(rows: Tables) -> Iterator[str]:
    yield from _reserved(rows)
    yield from _marked(rows)
    for budget in rows[Budget].values():
        if min(budget.consumed, budget.reserved, budget.allocated) < 0 or budget.default_estimate < 1:
            yield f"budget {budget.id}: negative amount: {budget.consumed} spent, {budget.reserved} reserved"
        spent = _spent(rows, budget)
        if spent is not None and budget.earlier + budget.consumed != spent:
            yield f"budget {budget.id}: {budget.earlier} + {budget.consumed} spent, usage says {spent}"


def _reserved(rows: Tables) -> Iterator[str]:
    """Each reservation belongs to a live claim, and none is counted twice or forgotten."""
    held: Counter[tuple[str, str]] = Counter()
    for claim in rows[Claim].values():
        if claim.funds is None:
            continue
        if claim.state != "active":
            yield f"{claim.id}: has ended, and still holds {claim.funds}"
        for id, amount in claim.funds.items():
            held[place(claim.project, id)] += amount
            if amount < 0 or place(claim.project, id) not in rows[Budget]:
                yield f"{claim.id}: holds {amount} of {id}"
    for key, budget in rows[Budget].items():
        if budget.reserved != held[key]:
            yield f"budget {budget.id}: {budget.reserved} reserved, live claims hold {held[key]}"


def _marked(rows: Tables) -> Iterator[str]:
    """Claims find every budget: by their project, by their task, and where tasks are set aside."""
    for budget in rows[Budget].values():
        projects = [p for p in rows[Project].values() if budget.scope == TENANT or p.id == budget.project]
        for project in projects:
            if budget.scope != TASK and budget.scope not in project.funded:
                yield f"budget {budget.id}: claims in {project.id} do not check it"
    for task in rows[Task].values():
        above: Task | None = task
        while above is not None and not task.capped:
            if (task.project, f"{TASK}:{above.id}") in rows[Budget]:
                yield f"{task.key}: is not counted in the budget of {above.key}"
            above = rows[Task].get((task.project, above.parent or ""))
        claim = rows[Claim].get((task.project, claims.claim_id(task.id, task.generation)))
        if task.funded != (claim is not None and claim.funds is not None):
            yield f"{task.key}: its claim {'holds nothing' if task.funded else 'holds money'}"
        if task.set_aside_for is not None and task.set_aside_for.startswith(MARK):
            project = rows[Project][task.project, task.project]
            least = project.set_aside.get(task.set_aside_for.removeprefix(MARK))
            if least is None or (task.price or 0) < least:
                yield f"{task.key}: set aside for {task.set_aside_for}, where no claim looks"


def _spent(rows: Tables, budget: Budget) -> int | None:
    """The usage in the scope; None where part of it is summed and cannot be separated."""
    found = 0
    lineage = _lineage(rows, budget) if budget.scope == TASK else set()
    dag = _of_dag(rows, budget) if budget.scope == DAG else None
    if budget.scope == DAG and dag is None:
        return None
    for row in rows[Usage].values():
        is_in = {
            TENANT: True,
            PROJECT: row.project == budget.project,
            AGENT: row.project == budget.project and f"{AGENT}:{row.agent}" == budget.id,
            DAG: row.project == budget.project and row.task in (dag or ()),
            TASK: row.project == budget.project and row.task in lineage and not (row.late and row.task == budget.task),
        }[budget.scope]
        if is_in:
            found += AMOUNT[budget.currency](row)
    return found


def _lineage(rows: Tables, budget: Budget) -> set[str]:
    tasks = [task for task in rows[Task].values() if task.project == budget.project]
    found = {budget.task or ""}
    for task in sorted(tasks, key=lambda task: task.depth):
        if task.parent in found:
            found.add(task.id)
    return found


def _of_dag(rows: Tables, budget: Budget) -> set[str] | None:
    dag = budget.id.partition(":")[2]
    if any(row.project == budget.project for row in rows[Archived].values()):
        return None  # usage of archived tasks is summed across dags
    return {t.id for t in rows[Task].values() if (t.project, t.dag) == (budget.project, dag)}

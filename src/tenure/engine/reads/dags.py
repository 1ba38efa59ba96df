"""Dags: their tasks, edges and critical path, whether anything runs, what they may cost and have cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import budgets, graph, lifecycle
from tenure.core import queries as q
from tenure.core.records import Brief, Dag, Edge, Task, Usage
from tenure.core.task_secrets import masked
from tenure.engine.archive.recall import recall_dag
from tenure.engine.runtime.rows import dag_named, project_of
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.verbs import usage as usage_rows

if TYPE_CHECKING:
    from tenure.core import views as v

RUNNING = (*lifecycle.HELD, lifecycle.VALIDATING)
PAGE = 500


def dag(work: UnitOfWork, project: str, id: str) -> v.DagView:
    """A dag with its tasks, edges, counts and critical path; a single task's dag is that task."""
    recall_dag(work, project, id)
    tasks_ = {t.id: t for t in work.find(Task, {"project": project, "dag": id})}
    if not tasks_:
        dag_named(work, project, id)
    row = work.get(Dag, project, id)
    if row is None:
        first = min(tasks_.values(), key=lambda task: task.created_at)
        row = Dag(project=project, id=id, created_at=first.created_at, created_by=first.created_by)
        for task in tasks_.values():
            row = graph.counted(row, None, graph.part(task))
    edges = [e for t in tasks_.values() if t.waits_on for e in work.find(Edge, {"project": project, "task": t.id})]
    path = graph.critical_path(tasks_, edges)
    key = {i: t.key for i, t in (tasks_ | work.get_many(Task, project, [e.needs for e in edges])).items()}
    pointed = {e.needs for e in edges}
    briefs = work.get_many(Brief, project, tasks_)
    is_running = any(task.state in RUNNING for task in tasks_.values())
    return {
        **_entry(row, is_running=is_running),  # type: ignore[typeddict-item]
        "budget": budget_of(work, project, id),
        "usage": _usage(work, tasks_.values()),
        "roots": sorted(t.key for t in tasks_.values() if not t.waits_on),
        "leaves": sorted(t.key for i, t in tasks_.items() if i not in pointed),
        "tasks": [
            {"id": t.id, "key": t.key, "state": t.state, "title": briefs[t.id].title, "agent": t.agent}
            for t in sorted(tasks_.values(), key=lambda t: t.key)
        ],
        "edges": [{"task": key[e.task], "needs": key[e.needs], "on_failure": e.on_failure} for e in edges],
        "critical_path": [key[i] for i in path],
    }


def dags(work: UnitOfWork, project: str) -> list[v.DagEntry]:
    running = work.count(Task, {"project": project, "state": RUNNING}, "dag")
    found = work.find(Dag, {"project": project}, order="created_at")
    return [_entry(row, is_running=row.id in running) for row in found]


def _entry(row: Dag, *, is_running: bool) -> Any:
    """The row, with its status in the words of people: of an open dag, whether anything of it runs."""
    status = row.status if row.status != graph.OPEN else graph.RUNNING if is_running else graph.PENDING
    return msgspec.structs.asdict(row) | {"status": status, "on_end": masked(row.on_end)}


def budget_of(work: UnitOfWork, project: str, id: str) -> v.BudgetView | None:
    if budgets.DAG not in project_of(work, project).funded:
        return None
    from tenure.engine.budgets import budget_guard, budget_reads  # most projects have none; keeps startup fast

    rows = budget_guard.kept_rows(work, project, (budgets.budget_id(budgets.DAG, id),))
    return budget_reads.view(work, rows[0]) if rows else None


def _usage(work: UnitOfWork, tasks: Iterable[Task]) -> v.UsageView | None:
    """What its tasks have cost, as reported; without those whose rows are in the archive."""
    metered = [task for task in tasks if task.metered]
    rows: list[Usage] = []
    for start in range(0, len(metered), PAGE):
        ids = tuple(task.id for task in metered[start : start + PAGE])
        rows += work.find(Usage, {"project": metered[0].project, "task": ids})
    return usage_rows.view(rows)


READS: Reads = {q.Dags: dags, q.ShowDag: dag}

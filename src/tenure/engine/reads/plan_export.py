"""Export of plans: the tasks of dags as input, so that a plan can be written to a file and applied again. They write
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.core import graph, inputs, lifecycle
from tenure.core import queries as q
from tenure.core.errors import NotFound, TooLarge
from tenure.core.filters import Present
from tenure.core.records import Brief, Dag, Edge, Project, Task
from tenure.core.task_secrets import masked
from tenure.engine.archive.recall import recall_dag
from tenure.engine.runtime.rows import project_of
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.verbs.edit import current_value

if TYPE_CHECKING:
    from tenure.core.views import PlanView
    from tenure.core.views.dag_views import PlannedTask


def plans(
    work: UnitOfWork, project: str, *, dag: str | None = None, plan: str | None = None, open_only: bool = False
) -> list[PlanView]:
    """One dag, one plan by its name, or everything unarchived: groups of tasks, each with its edges.

    A plan has the tasks that it created; a dag without a plan has all except those spawned by holders: the next holder
    of the parent spawns them again. Single tasks without a plan, or added to a plan's dag, form one group.
    """
    settings = project_of(work, project)
    groups: list[tuple[Dag | None, list[Task]]]
    if plan is not None:
        rows = work.find(Dag, {"project": project, "plan": plan}, limit=1)
        if not rows:
            raise NotFound(f"no plan {plan[:80]!r} in project {project}")
        groups = [(rows[0], _of_dag(work, project, rows[0]))]
    elif dag is not None:
        recall_dag(work, project, dag)
        row = work.get(Dag, project, dag)
        tasks = work.find(Task, {"project": project, "dag": dag}) if row is None else _of_dag(work, project, row)
        if row is None and not tasks:
            raise NotFound(f"no dag {dag[:80]!r} in project {project}")
        groups = [(row, tasks)]
    else:
        groups = _all(work, project)
    if open_only:
        groups = [(row, [t for t in tasks if t.state not in lifecycle.FINISHED]) for row, tasks in groups]
    return [_group(work, settings, row, tasks) for row, tasks in groups if tasks]


def _of_dag(work: UnitOfWork, project: str, row: Dag) -> list[Task]:
    _check_count(row.total)
    recall_dag(work, project, row.id)
    tasks = work.find(Task, {"project": project, "dag": row.id})
    if row.plan is None:
        return [t for t in tasks if t.local_name is None]
    return [t for t in tasks if _is_of(t, row)]


def _is_of(task: Task, row: Dag) -> bool:
    return (task.idempotency_key or "").startswith(f"plan:{row.plan}:")


def _all(work: UnitOfWork, project: str) -> list[tuple[Dag | None, list[Task]]]:
    where = {"project": project, "archived_at": Present(False)}
    _check_count(work.tally(Task, where, inputs.LARGEST_PLAN + 1))
    rows = {d.id: d for d in work.find(Dag, {"project": project}, order="created_at")}
    lone: list[Task] = []
    by_dag: dict[str, list[Task]] = {id: [] for id in rows}
    for task in work.find(Task, where):
        row = rows.get(task.dag)
        if row is None:
            lone.append(task)
        elif task.local_name is None:
            (by_dag[task.dag] if row.plan is None or _is_of(task, row) else lone).append(task)
    return [*((rows[id], tasks) for id, tasks in by_dag.items()), (None, lone)]


def _check_count(count: int) -> None:
    if count > inputs.LARGEST_PLAN:
        raise TooLarge(
            f"a plan may have at most {inputs.LARGEST_PLAN} tasks",
            "name one plan or dag, or export only the open tasks",
        )


def _group(work: UnitOfWork, settings: Project, row: Dag | None, tasks: list[Task]) -> PlanView:
    tasks = sorted(tasks, key=lambda t: (t.created_at, t.id))
    briefs = work.get_many(Brief, settings.id, [t.id for t in tasks])
    edges = {t.id: work.find(Edge, {"project": settings.id, "task": t.id}) for t in tasks if t.waits_on}
    named = {e.needs for found in edges.values() for e in found} | {t.parent for t in tasks if t.parent}
    needed = work.get_many(Task, settings.id, named)
    return {
        "id": row.id if row else None,
        "title": row.title if row else "",
        "plan": row.plan if row else None,
        "on_end": masked(row.on_end) if row else {},
        "budget": _budget(work, settings, row) if row else None,
        "tasks": [_task(work, settings, t, briefs[t.id], edges.get(t.id, []), needed) for t in tasks],
    }


def _budget(work: UnitOfWork, settings: Project, row: Dag) -> str | None:
    """The dollars that a plan's `budget` sets; a plan has no budget by period or in tokens."""
    from tenure.core.budgets import USD
    from tenure.engine.reads.dags import budget_of

    found = budget_of(work, settings.id, row.id)
    return str(found["allocated"]) if found and found["currency"] == USD and found["period"] is None else None


def _name(task: Task) -> str | None:
    """The local name of the task in its plan."""
    kind, _, rest = (task.idempotency_key or "").partition(":")
    return rest.partition(":")[2] if kind == "plan" else None


def _task(
    work: UnitOfWork, settings: Project, task: Task, brief: Brief, edges: list[Edge], needed: dict[str, Task]
) -> PlannedTask:
    fields = {name: current_value(work, task, brief, name) for name in inputs.EDITABLE if name != "boost"}
    if task.sealed:
        fields |= {name: masked(fields[name]) for name in ("spec", "metadata")}
    if task.boost != settings.boost:
        fields["boost"] = task.boost / 100
    return {
        "id": task.id,
        "key": task.key,
        "track": task.track,
        "state": task.state,
        "parent": task.parent,
        "parent_key": needed[task.parent].key if task.parent else None,
        "name": _name(task),
        "fields": {**fields, "draft": task.state == lifecycle.CREATED},
        "depends_on": [
            {
                "id": e.needs,
                "key": needed[e.needs].key,
                "on_failure": e.on_failure,
                "subtask": e.subtask,
                "is_met": graph.is_met(e, needed[e.needs].state),
            }
            for e in sorted(edges, key=lambda e: needed[e.needs].key)
        ],
    }


READS: Reads = {q.Plans: plans}

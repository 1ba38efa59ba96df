"""Archived tasks, as if they had never been moved.

A handler that asks for one finds its rows in the unit of work like any others. They are read and not stored: only when
a transaction changes one of them, or adds to them, does the lineage return to its tables, by `bring_back`, just before
the changes are saved. So every verb gives the same answer as before the move, and has no code for the archive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from tenure.core import archive, graph, ids, limits
from tenure.core.priority import DEEPEST
from tenure.core.records import KINDS, Archived, Body, Edge, Row, Task, Track, Usage, replace
from tenure.engine.archive.totals import count, fold, stated
from tenure.engine.runtime.rows import Key, Rows
from tenure.engine.runtime.unit_of_work import UnitOfWork

MOST_NAMED = limits.RECALLED
BODIES = ""  # in place of a lineage: large values, which several may refer to
# Derived from other rows whenever a task is read: a change of these is not a change of the task.
_COUNTED = tuple(KINDS[Task].unlogged - {"waits_on", "unmet", "children", "lineage"})


def recall(work: Rows, project: str, ids: Collection[str]) -> None:
    """Those of these tasks that are in the archive, with all their rows."""
    remember(work, work.get_many(Archived, project, ids).values())


def recall_by(work: Rows, project: str, *, most: int | None = None, **where: Any) -> list[Task]:
    """The archived tasks that match, by id."""
    rows = work.find(Archived, {"project": project, "out": False, **where}, limit=most)
    remember(work, rows)
    tasks = (work.get(Task, project, row.id) for row in rows)
    return [task for task in tasks if task is not None]


def recall_dag(work: Rows, project: str, dag: str) -> None:
    """The archived tasks of a dag, or of a single task."""
    recall_by(work, project, dag=dag)
    work.get(Task, project, ids.lone_task(dag))


def remember(work: Rows, rows: Iterable[Archived]) -> None:
    for row in rows:
        if row.out or (Task, row.project, row.id) in work.recalled:
            continue
        lineage = [row]
        if row.root is not None:
            where = {"project": row.project, "dag": row.dag, "root": row.root, "out": False}
            lineage = work.find(Archived, where)
        for member in lineage:
            _remember_one(work, member, row.root or row.id)


def _remember_one(work: Rows, archived: Archived, lineage: str) -> None:
    rows = archive.rows_in(archived)
    edges = [row for row in rows if isinstance(row, Edge)]
    states = _states(work, archived.project, [edge.needs for edge in edges])
    edges = [edge for edge in edges if edge.needs in states]
    for row in rows:
        if isinstance(row, Task):
            below = work.tx.find(Edge, {"project": row.project, "needs": row.id})
            as_it_is = replace(
                row,
                waits_on=len(edges),
                unmet=sum(not graph.is_met(e, states[e.needs]) for e in edges),
                dependents=len(below),
                height=_height(work, row.project, [e.task for e in below]),
                archived_at=row.archived_at or archived.archived_at,
            )
            work.remember(as_it_is, lineage)
        elif not isinstance(row, Edge) or row.needs in states:  # else its dependency was deleted
            work.remember(row, lineage)
    for body in archive.bodies_in(archived):
        if work.get(Body, body.project, body.id) is None:
            work.remember(body, BODIES)


def _states(work: Rows, project: str, ids: Collection[str]) -> dict[str, str]:
    """The states of tasks, archived or not."""
    if not ids:
        return {}
    tasks = {row.id: row.state for row in work.tx.load(Task, [(project, id) for id in ids])}
    for id in ids:
        mine = work.versions((Task, project, id))[1]
        if isinstance(mine, Task):
            tasks[id] = mine.state
    others = work.get_many(Archived, project, [id for id in ids if id not in tasks])
    return tasks | {row.id: row.state for row in others.values()}


def _height(work: Rows, project: str, ids: Collection[str]) -> int:
    tasks = work.tx.load(Task, [(project, id) for id in ids]) if ids else []
    return max((min(DEEPEST, t.height + 1) for t in tasks), default=0)


# --- bringing back ------------------------------------------------------------------------------------------


def bring_back(work: UnitOfWork) -> None:
    """Store every lineage again of which this unit of work has changed anything; the others stay archived."""
    back = _changed_lineages(work)
    needed: list[Body] = []
    if back:
        needed = _return(work, [key for key, lineage in work.recalled.items() if lineage in back])
    _keep_bodies(work, needed)
    for key in work.recalled:  # only read: derived counts are computed again on the next read
        work.take_back(key)


def _keep_bodies(work: UnitOfWork, needed: Iterable[Body]) -> None:
    """Store large values again that rows outside of the archive refer to: recalled rows or new ones."""
    uses: dict[Key, int] = {}
    for key in [key for key in work.recalled if key[0] is Body]:
        before, after = work.versions(key)
        assert isinstance(before, Body)
        uses[key] = after.uses - before.uses if isinstance(after, Body) else 0
    for body in needed:
        key = (Body, body.project, body.id)
        if key in uses:
            uses[key] += 1
        else:
            kept = work.require(Body, body.project, body.id)
            work.put(replace(kept, uses=kept.uses + 1))
    for key, users in uses.items():
        if users:
            again = work.recreated(key)
            del work.recalled[key]
            assert isinstance(again, Body)
            work.put(replace(again, uses=users))


def _changed_lineages(work: UnitOfWork) -> set[str]:
    changed = {
        lineage for key, lineage in work.recalled.items() if lineage != BODIES and _is_changed(*work.versions(key))
    }
    tasks = {key[1:]: lineage for key, lineage in work.recalled.items() if key[0] is Task}
    for kind, field in archive.OWNED.items():
        for key in work.changed(kind):
            row = work.versions(key)[1]
            if key not in work.recalled and row is not None:
                changed |= {tasks[owner] for owner in [(row.project, getattr(row, field))] if owner in tasks}
    return changed


def _is_changed(before: Any, after: Any) -> bool:
    if isinstance(before, Task) and isinstance(after, Task):
        after = replace(after, **{name: getattr(before, name) for name in _COUNTED})
    return bool(before != after)


def _return(work: UnitOfWork, keys: list[Key]) -> list[Body]:
    """Restore rows and counts as they were, with the event before all later changes.

    Returns the large values that they refer to, one for each task.
    """
    from tenure.engine.verbs.create import raise_height  # it imports this module, through `rows`

    rows: list[Row] = [work.recreated(key) for key in keys]
    for key in keys:
        del work.recalled[key]
    tracks: dict[tuple[str, str], Track] = {}
    bodies: list[Body] = []
    tasks = [row for row in rows if isinstance(row, Task)]
    since: dict[str, int] = {}
    for task in tasks:
        kept = work.require(Archived, task.project, task.id)
        since[task.id] = kept.archived_at
        bodies += archive.bodies_in(kept)
        work.put(archive.emptied(kept))
        tracks[task.project, task.track] = count(work, task.project, task.track, **{task.state: -1})
    fold(work, [row for row in rows if isinstance(row, Usage)], -1)
    for edge in (row for row in rows if isinstance(row, Edge)):
        needs = work.get(Task, edge.project, edge.needs)
        if needs is not None and not work.is_recalled(needs):
            work.put(replace(needs, dependents=needs.dependents + 1))
            waiting = work.get(Task, edge.project, edge.task)
            if waiting is not None and work.get(Edge, edge.project, edge.id) is not None:
                raise_height(work, needs, waiting.height + 1)
    for project in sorted({task.project for task in tasks}):
        mine = [row for row in (*rows, *tracks.values()) if row.project == project]
        here = [task for task in tasks if task.project == project]
        details: dict[str, Any] = {"tasks": sorted(task.key for task in here)[:MOST_NAMED]}
        details |= {"moved": {task.id: since[task.id] for task in here}}  # for the past: see engine/past
        work.append("archive.returned", project, stated(mine), details=details, first=True)
    return bodies

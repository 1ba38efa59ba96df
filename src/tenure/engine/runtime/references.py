"""From a name to its row: id, key, short key, or an unambiguous prefix.

Archived tasks are found too, where no other has that name; changing one brings it back (see `archive/recall.py`).
"""

from __future__ import annotations

from typing import Any

from tenure.core import ids, limits
from tenure.core.errors import Ambiguous, NotFound
from tenure.core.filters import Prefix
from tenure.core.records import Dag, Project, Task
from tenure.engine.runtime.unit_of_work import UnitOfWork

SHORTEST_BEGINNING = limits.PREFIX_MIN


def project_of(work: UnitOfWork, name: str) -> Project:
    project = work.get(Project, name, name)
    if project is None:
        raise NotFound(f"no project {name[:80]!r} here", "create it with init, or name another project")
    return project


def task_named(work: UnitOfWork, project: str, name: str) -> Task:
    """The one task with that name; raises NotFound or Ambiguous otherwise."""
    task = find_task(work, project, name)
    if task is None:
        raise NotFound(f"no task {name[:80]!r} in project {project}")
    return task


def find_task(work: UnitOfWork, project: str, name: str) -> Task | None:
    if name.startswith("task_"):
        task = work.get(Task, project, name)
        return task or _by_beginning(work, project, "id", name)
    key = ids.parse_key(name)
    if key is not None:
        task = task_by_ref(work, project, key.ref)
        if task is not None and (not key.slug or task.key == name or _begins(task, key)):
            return task
    return _by_beginning(work, project, "key", name)


def task_by_ref(work: UnitOfWork, project: str, ref: str) -> Task | None:
    found = work.find(Task, {"project": project, "ref": ref}, limit=1)
    if not found:
        # by key, so that the archive needs no index: `A-001-slug`, `A-001-slug::2`, or without a slug
        beginning = Prefix(ref.partition("::")[0] + "-")
        found = _archived(work, project, ref=ref, key=beginning) or _archived(work, project, key=ref)
    return found[0] if found else None


def tasks_by_idempotency(work: UnitOfWork, project: str, keys: str | Prefix | tuple[str, ...]) -> list[Task]:
    """The tasks with that idempotency key, or those whose name begins so."""
    found = work.find(Task, {"project": project, "idempotency_key": keys})
    there = {task.id for task in found}
    return [*found, *(t for t in _archived(work, project, idempotency_key=keys) if t.id not in there)]


def _archived(work: UnitOfWork, project: str, **where: Any) -> list[Task]:
    from tenure.engine.archive.recall import recall_by  # only after a search found nothing

    return recall_by(work, project, **where)


def _begins(task: Task, key: ids.Key) -> bool:
    own = ids.parse_key(task.key)
    return own is not None and own.slug.startswith(key.slug)


def _by_beginning(work: UnitOfWork, project: str, field: str, text: str) -> Task | None:
    if len(text) < SHORTEST_BEGINNING or len(text) > 200:
        return None
    found = work.find(Task, {"project": project, field: Prefix(text)}, order=field, limit=4)
    if not found:
        found = _archived(work, project, **{field: Prefix(text)}, most=4)
    if len(found) > 1:
        some = ", ".join(t.key for t in found[:3])
        raise Ambiguous(f"{text!r} is a prefix of several tasks: {some}{' …' if len(found) > 3 else ''}")
    return found[0] if found else None


def dag_named(work: UnitOfWork, project: str, id: str) -> Dag:
    dag = work.get(Dag, project, id)
    if dag is None:
        raise NotFound(f"no dag {id[:80]!r} in project {project}")
    return dag

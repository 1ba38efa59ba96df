"""Tasks from a template: created once per key, however often they are requested.

The tick, event or delivery is their key, so that a second leader, a repeat, or a crash between two transactions finds
the existing tasks. The source moves its cursor in the same transaction: both happen, or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from tenure.core import limits, templates
from tenure.core.commands import Template
from tenure.core.errors import StoreError, TenureError, spelled
from tenure.core.records import Dag, Project, Task, replace
from tenure.engine.reads import task_view
from tenure.engine.runtime.rows import brief_of, tasks_by_idempotency
from tenure.engine.runtime.unit_of_work import OUR_FAULTS, Refused, UnitOfWork
from tenure.engine.verbs.create import Builder
from tenure.stores.port import Transaction

T = TypeVar("T")
LINE = "project:"
MOVED = "the project was moved to "  # why claiming is stopped at the source
LONGEST_ERROR = limits.TRIGGER_ERROR
FAULTS = (TenureError, Refused, *OUR_FAULTS)  # raised by a faulty template; store errors propagate


class Cause(NamedTuple):
    """What creates tasks, by which key, and the values it passes to them."""

    key: str | None  # None: created on every request
    by: str  # `cron:nightly`
    at: int  # the instant that relative times count from
    values: Mapping[str, Any]
    metadata: Mapping[str, Any]


class Produced(NamedTuple):
    tasks: list[Task]
    dag: str | None
    again: bool = False  # it existed already

    @property
    def name(self) -> str:
        """The dag's id, or the key of the one task."""
        return self.dag or self.tasks[0].key


def projects_here(tx: Transaction) -> set[str]:
    """Projects that were not moved to another store: schedules and triggers continue there, and not in both."""
    return {row.id for row in tx.find(Project, {}) if not row.stopped.get(LINE, "").startswith(MOVED)}


def template_of(work: UnitOfWork, project: str, owner: str, stored: Mapping[str, Any]) -> Template:
    """The template of a row, which is the owner of its secrets."""
    from tenure.engine.secrets import sealed_rows  # keeps startup fast

    return sealed_rows.template_of(work, project, owner, stored)


def produce(work: UnitOfWork, project: Project, template: Template, cause: Cause) -> Produced:
    """Create the tasks of the template: all of them, or an error."""
    if cause.key is not None:
        there = tasks_by_idempotency(work, project.id, _key(cause.key, 0))
        if there:
            return Produced(there, there[0].dag if len(template.tasks) > 1 else None, again=True)
    filled = templates.filled(template, cause.values, cause.at)
    wanted = tuple(
        replace(
            new,
            metadata={**new.metadata, **cause.metadata},
            idempotency_key=None if cause.key is None else _key(cause.key, n),
        )
        for n, new in enumerate(filled.tasks)
    )
    dag = None
    if len(wanted) > 1:
        title = filled.title or filled.tasks[0].title[:200]
        id = work.new_id("dag")
        dag = Dag(project=project.id, id=id, title=title, created_by=cause.by, created_at=work.now)
        work.record("dag.created", dag, project=project.id, details={"dag": dag.id, "title": dag.title, "plan": None})
    tasks = Builder(work, project, cause.by).build(wanted, dag=dag)
    return Produced(tasks, dag.id if dag else None)


def rehearse(
    work: UnitOfWork, project: Project, template: Template, values: Mapping[str, Any], show: Callable[[Produced], T]
) -> T:
    """What `show` would return for the tasks; raises what would be wrong with them. Everything is undone."""
    bookmark = work.bookmark()
    try:
        return show(produce(work, project, template, Cause(None, work.principal.name, work.now, values, {})))
    finally:
        work.undo_to(bookmark)


def shown(work: UnitOfWork, made: Produced) -> tuple[Mapping[str, Any], ...]:
    return tuple(task_view.task_view(work, task, brief_of(work, task)) for task in made.tasks)


def attempt(work: UnitOfWork, project: Project, stored: Mapping[str, Any], cause: Cause, owner: str) -> Produced | str:
    """The created tasks, or why they could not be; then nothing of it remains. `owner`: see `template_of`."""
    bookmark = work.bookmark()
    try:
        return produce(work, project, template_of(work, project.id, owner, stored), cause)
    except StoreError:
        raise
    except FAULTS as error:
        work.undo_to(bookmark)
        return error_line(error)[:LONGEST_ERROR]


def _key(base: str, number: int) -> str:
    return f"{base}:{number}" if number else base


def error_line(error: BaseException) -> str:
    """The error in one line."""
    if isinstance(error, Refused):
        return error.outcome.message
    return spelled(error)

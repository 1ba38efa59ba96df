"""The failure watch: creates a task that investigates when failures of one tag, type or track cluster.

Read from the end of the log, at most MOST_WALKED events back, so that the project's age does not matter. One task per
subject at a time: while it is open no other is created, and failures before its end no longer count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tenure.core import commands, failure_watch, inputs, lifecycle, limits
from tenure.core import queries as q
from tenure.core.errors import InvalidInput
from tenure.core.events import Event
from tenure.core.failure_watch import Subject, WatchedAttempt
from tenure.core.filters import Prefix, Range
from tenure.core.outcomes import Outcome
from tenure.core.records import Project, Task, Track, Watch, replace
from tenure.engine.runtime.effects import Report
from tenure.engine.runtime.rows import TRACKS_LISTED, fields_of, project_of, tasks_by_idempotency
from tenure.engine.runtime.unit_of_work import Handlers, Reads, UnitOfWork
from tenure.engine.verbs.create import Builder

if TYPE_CHECKING:
    from tenure.core.views import WatchedView
    from tenure.engine.runtime.engine import Engine

MOST_WALKED = limits.WATCH_EVENTS
MOST_READ = limits.WATCH_ATTEMPTS
MOST_SHOWN = limits.WATCH_SHOWN
MOST_AT_ONCE = limits.WATCH_TASKS
_LOST = {"task.lease_expired": "lease_expired", "task.process_gone": "lease_expired", "task.aborted": "timeout"}
_ENDS = ("task.completed", "task.failed", *_LOST)


def set_watch(work: UnitOfWork, cmd: commands.SetWatch) -> Outcome:
    project = project_of(work, cmd.project)
    watch = None if cmd.watch is None else failure_watch.check_watch(cmd.watch)
    if watch is not None and watch.track is not None and work.get(Track, cmd.project, watch.track) is None:
        raise InvalidInput(f"watch.track {watch.track!r} is not defined in project {cmd.project}", TRACKS_LISTED)
    if watch == project.watch:
        return Outcome(outcome="UNCHANGED")
    work.record("project.changed", replace(project, watch=watch), project=project.id, details={"changed": ["watch"]})
    return Outcome(outcome="UPDATED", command_id=work.command_id)


# --- the leader's duty --------------------------------------------------------------------------------------


def projects_watched(engine: Engine, now: int) -> Sequence[str]:
    """Projects that watch for failures and have some to investigate."""
    watching = [row.id for row in engine.read(lambda tx: tx.find(Project, {})) if row.watch is not None]
    return [name for name in watching if engine.read_settled((name,), partial(_suspects, project=name))]


def investigate(engine: Engine, project: str) -> Report:
    """Create the tasks that investigate, where failures cluster."""
    report = Report()
    if not engine.read_settled((project,), lambda work: _suspects(work, project)):
        return report

    def decide(work: UnitOfWork) -> None:
        settings = project_of(work, project)
        already = len(work.events)
        for subject in _suspects(work, project)[:MOST_AT_ONCE]:
            assert settings.watch is not None
            work.begin_command(None, None)
            new = failure_watch.task_of(
                subject, settings.watch, failure_watch.key_of(subject.name, settings.watch, work.now)
            )
            Builder(work, settings, f"{failure_watch.CREATED_BY}{subject.name}").build((new,))
        report.note(work.events[already:])

    engine.transact((project,), decide)
    return report


def _suspects(work: UnitOfWork, project: str) -> list[Subject]:
    """Subjects that fail too often and have no open task."""
    settings = work.get(Project, project, project)
    if settings is None or settings.watch is None:
        return []
    watch = settings.watch
    asked = _last_investigations(work, project)
    found = failure_watch.counted(
        _attempts(work, project, watch), {name: task.updated_at for name, task in asked.items()}
    )
    return [
        subject
        for subject in found
        if failure_watch.is_suspect(subject, watch)
        and not _is_open(asked.get(subject.name))
        and not tasks_by_idempotency(work, project, failure_watch.key_of(subject.name, watch, work.now))
    ]


def _last_investigations(work: UnitOfWork, project: str) -> dict[str, Task]:
    """The last task about each subject."""
    tasks = tasks_by_idempotency(work, project, Prefix(failure_watch.CREATED_BY))
    last: dict[str, Task] = {}
    for task in sorted(tasks, key=lambda t: (t.created_at, t.id)):
        if task.created_by.startswith(failure_watch.CREATED_BY):
            last[failure_watch.subject_in(task.idempotency_key or "")] = task
    return last


def _is_open(task: Task | None) -> bool:
    return task is not None and task.state not in lifecycle.FINISHED


def _attempts(work: UnitOfWork, project: str, watch: Watch) -> list[WatchedAttempt]:
    """The attempts that ended in the window, oldest first, without those of the watch's own tasks."""
    last = work.tx.events({"project": project}, limit=1, last=True)
    floor = max(0, last[0].sequence - MOST_WALKED) if last else 0
    where = {"project": project, "kind": _ENDS, "time": Range(work.now - round(watch.window * inputs.SECOND))}
    events = work.tx.events(where, after=floor, limit=MOST_READ, last=True)
    tasks = work.get_many(Task, project, {event.task for event in events if event.task is not None})
    roots = work.get_many(Task, project, {task.root for task in tasks.values() if task.root is not None})
    return list(_ended_attempts(events, tasks, roots, watch))


def _ended_attempts(
    events: Iterable[Event], tasks: dict[str, Task], roots: dict[str, Task], watch: Watch
) -> Iterable[WatchedAttempt]:
    for event in events:
        task = tasks.get(event.task or "")
        first = roots.get(task.root or "", task) if task is not None else None
        if task is None or first is None or first.created_by.startswith(failure_watch.CREATED_BY):
            continue
        error_class = None
        if event.kind != "task.completed":
            error_class = _LOST.get(event.kind) or event.details.get("error_class")
            if not failure_watch.counts_as_failed(error_class):
                continue
        subjects = failure_watch.subjects_of(watch, type=task.type, track=task.track, tags=task.tags)
        yield WatchedAttempt(event.time, task.key, subjects, error_class, event.message)


# --- queries ------------------------------------------------------------------------------------------------


def watched(work: UnitOfWork, project: str) -> WatchedView:
    """Its settings, and the failure rates; where it is off, as it would be with its defaults."""
    settings = project_of(work, project)
    watch = settings.watch or Watch()
    asked = _last_investigations(work, project)
    found = failure_watch.counted(
        _attempts(work, project, watch), {name: task.updated_at for name, task in asked.items()}
    )
    answer: WatchedView = fields_of(watch, "window threshold least by track priority") | {
        "on": settings.watch is not None,
        "subjects": [_subject_view(subject, asked.get(subject.name)) for subject in found[:MOST_SHOWN]],
    }
    return answer


def _subject_view(subject: Subject, task: Task | None) -> Any:
    return {
        "subject": subject.name,
        "failed": len(subject.failed),
        "attempts": len(subject.attempts),
        "rate": round(subject.rate, 4),
        "task": task.key if task is not None and _is_open(task) else None,
    }


HANDLERS: Handlers = {commands.SetWatch: set_watch}


READS: Reads = {q.Watched: watched}

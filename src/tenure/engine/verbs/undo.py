"""Undo one earlier command by new events, if nothing has changed since.

A command is identified by the id in its outcome; its events share that id as their cause. Cancelled tasks return (a
held task becomes ready: its holder was asked to stop), a reset or retried task gets its former result or dead letter
back, edited fields get their former values, and tasks created by a plan are cancelled. No row is put back as it was:
generation and version only grow.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.core import commands, graph, inputs, lifecycle, limits, moves
from tenure.core.errors import NotAllowed, NotFound
from tenure.core.events import Event
from tenure.core.lifecycle import UNDO, Cancelled
from tenure.core.outcomes import Outcome
from tenure.core.records import Edge, Task, replace
from tenure.engine.reads import task_view
from tenure.engine.runtime.effects import cancel_task, reopened, spread
from tenure.engine.runtime.rows import current, task_named
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.verbs.create import connect, may_wait, new_edge, relink
from tenure.engine.verbs.edit import PACKED, apply_changes
from tenure.engine.verbs.graph import disconnect
from tenure.engine.verbs.operator_verbs import uncancel

MOST_EVENTS = limits.UNDO_EVENTS
_UNMADE = "the command that created it was undone"


def undo(work: UnitOfWork, cmd: commands.Undo) -> Outcome:
    events = work.tx.events({"project": cmd.project, "causation_id": cmd.command_id}, limit=MOST_EVENTS)
    task_events = [e for e in events if e.task is not None]
    if not task_events:
        raise NotFound(f"no command {cmd.command_id[:80]!r} changed a task in project {cmd.project}")
    steps = [e for e in task_events if e.kind in _OPPOSITES]
    if not steps or any(e.kind in _FINAL or e.details.get("was") == lifecycle.CANCELLED for e in task_events):
        return _refused(f"{task_events[0].kind} cannot be undone", ())
    if work.principal.role not in ("admin", "owner") and task_events[0].user != work.principal.person:
        raise NotAllowed("undoing another's command needs the role admin")
    last = {e.task: e.version or 0 for e in task_events}
    tasks = work.get_many(Task, cmd.project, [e.task for e in steps if e.task])
    moved = sorted(t.key for t in tasks.values() if t.version != last[t.id])
    if moved:
        return _refused(f"changed since then: {', '.join(moved[:5])}{' …' if len(moved) > 5 else ''}", tuple(moved))
    changed = []
    for event in reversed(steps):
        task = work.require(Task, cmd.project, event.task or "")
        _OPPOSITES[event.kind](work, task, event)
        spread(work)
        changed.append(task.key)
    details = {"command": cmd.command_id, "tasks": changed[:100]}
    work.record("command.undone", project=cmd.project, message=f"undid {cmd.command_id}", details=details)
    return Outcome(outcome="UPDATED", changed=tuple(dict.fromkeys(changed)), command_id=work.command_id)


def _refused(message: str, changed: tuple[str, ...]) -> Outcome:
    return Outcome(outcome="CANNOT_UNDO", message=f"nothing was undone: {message}", changed=changed or None)


def _uncancelled(work: UnitOfWork, task: Task, event: Event) -> None:
    if task.state == lifecycle.CANCELLED:
        uncancel(work, task)


def _unarchived(work: UnitOfWork, task: Task, event: Event) -> None:
    work.record("task.unarchived", task=replace(task, archived_at=None))


def _reset_undone(work: UnitOfWork, task: Task, event: Event) -> None:
    before = event.details["before"]
    work.record("task.reset_undone", task=moves.reset_undone(task, before))


def _retry_undone(work: UnitOfWork, task: Task, event: Event) -> None:
    before = event.details["before"]
    if "changes" in event.details:
        _unedit(work, task, event.details["changes"])
        task = current(work, task)
    dead = moves.retry_undone(task, before)
    work.record("task.retry_undone", *reopened(work, dead), task=dead)


def _unedited(work: UnitOfWork, task: Task, event: Event) -> None:
    _unedit(work, task, event.details["before"])


def _unedit(work: UnitOfWork, task: Task, old: dict[str, object]) -> None:
    values = {n: task_view.unpacked(work, task.project, v) if n in PACKED else v for n, v in old.items()}
    edited, brief, before = apply_changes(work, task, inputs.check_changes(values), is_placed=True)
    work.record("task.edited", brief, task=edited, details={"changes": list(old), "before": before, "undo": True})


def _unlinked(work: UnitOfWork, task: Task, event: Event) -> None:
    needs = task_named(work, task.project, event.details["needs"])
    edge = work.get(Edge, task.project, graph.edge_id(task.id, needs.id))
    if edge is None or not may_wait(task):
        return
    if "before" in event.details:  # the edge existed with another failure policy
        relink(work, task, needs, edge, event.details["before"])
    else:
        disconnect(work, task, edge)


def _linked_again(work: UnitOfWork, task: Task, event: Event) -> None:
    needs = task_named(work, task.project, event.details["needs"])
    edge = new_edge(task.project, task.id, needs.id, on_failure=event.details["on_failure"])
    if may_wait(task) and work.get(Edge, task.project, edge.id) is None:
        connect(work, task, needs, edge)


def _unmade(work: UnitOfWork, task: Task, event: Event) -> None:
    if task.state not in lifecycle.FINISHED:
        cancel_task(work, task, Cancelled(cause=UNDO, reason=_UNMADE), _UNMADE)


def _decision_undone(work: UnitOfWork, task: Task, event: Event) -> None:
    from tenure.engine.budgets.doubts import undone  # rarely undone

    undone(work, task, event)


_OPPOSITES: dict[str, Callable[[UnitOfWork, Task, Event], None]] = {
    "task.cancelled": _uncancelled,
    "task.archived": _unarchived,
    "task.reset": _reset_undone,
    "task.retried": _retry_undone,
    "task.edited": _unedited,
    "task.created": _unmade,
    "task.linked": _unlinked,
    "task.unlinked": _linked_again,
    "task.usage_confirmed": _decision_undone,
    "task.usage_rejected": _decision_undone,
}
# An undo that started a run over cannot be undone: the first command can be repeated.
_FINAL = ("task.reset_undone", "task.retry_undone")

HANDLERS: Handlers = {commands.Undo: undo}

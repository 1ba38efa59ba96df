"""The leader's trigger duty: fires on the events of a project's log, each event once, none skipped.

One read serves all triggers of a project. The read page and what it created are one transaction, under the leader's
term and the project's write lock, under which sequences follow the order of commits: so no event that commits late can
fall behind the cursor, a crash reads the page again, and a deposed leader writes nothing. The created tasks have the
event's id as their key, which alone would keep them unique.

The end of a dag is an event like any other; its templates are in the dag itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import limits
from tenure.core import triggers as rule
from tenure.core.events import Event
from tenure.core.records import Cursor, Dag, Project, Trigger, replace
from tenure.engine.runtime.effects import Report
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.sources.template_tasks import Cause, Produced, attempt, projects_here
from tenure.engine.sources.triggers import MOST, READER, depth_of, event_values, values_of

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine
    from tenure.stores.port import Transaction

PAGE = 500  # events per transaction
FIRINGS = 50  # per transaction
MOST_TURNS = limits.TRIGGER_TURNS


def projects_with_news(engine: Engine, now: int) -> Sequence[str]:
    """Projects whose log continues after the cursor."""

    def ask(tx: Transaction) -> list[str]:
        here = projects_here(tx)
        return [
            cursor.project
            for cursor in tx.find(Cursor, {"id": READER})
            if cursor.project in here and tx.events({"project": cursor.project}, after=cursor.sequence, limit=1)
        ]

    return engine.read(ask)


def hear(engine: Engine, project: str) -> Report:
    """Read new events, a page per transaction, and fire the triggers on them."""
    report = Report()

    def decide(work: UnitOfWork) -> bool:
        settings, cursor = work.get(Project, project, project), work.get(Cursor, project, READER)
        if settings is None or cursor is None:
            return False
        events = work.tx.events({"project": project}, after=cursor.sequence, limit=PAGE)
        already = len(work.events)
        read = _hear(work, settings, events)
        if read:
            work.put(replace(cursor, sequence=events[read - 1].sequence))
        report.note(work.events[already:])
        return read < len(events) or len(events) == PAGE

    for _ in range(MOST_TURNS):
        if not engine.transact((project,), decide):
            break
    return report


def _hear(work: UnitOfWork, project: Project, events: Sequence[Event]) -> int:
    """How many of them were handled: all, unless they create very many tasks."""
    enabled = {"project": project.id, "enabled": True}
    ours = {row.id: rule.kinds_of(row.kind) for row in work.find(Trigger, enabled, limit=MOST) if row.signature is None}
    fired = 0
    for number, event in enumerate(events):
        if fired >= FIRINGS:
            return number
        fired += sum(
            _offer(work, project, name, event) for name, kinds in ours.items() if event.kind in kinds
        ) + _end_of_dag(work, project, event)
    return len(events)


def _offer(work: UnitOfWork, project: Project, name: str, event: Event) -> bool:
    """Whether the trigger took the event up."""
    row = work.get(Trigger, project.id, name)
    if row is None or event.sequence <= row.behind:
        return False
    needs_more = rule.roots_of(row.filter) - {"event"}
    values = values_of(work, event) if needs_more else {"event": event_values(event)}
    if not rule.fits(row.filter, values):
        return False
    depth = depth_of(work, event) + 1
    if depth > rule.DEEPEST:
        hold_back(work, row, f"{event.key or event.kind} is the result of a chain of {rule.DEEPEST} triggers")
        return True
    if rule.is_spent(row, work.now):
        hold_back(work, row, f"fired {row.most} times in this hour")
        return True
    work.begin_command(None, event.trace_id)
    metadata = {"trigger": {"name": name, "event": event.id, "depth": depth}}
    cause = Cause(f"trigger:{name}:{event.id}", f"trigger:{name}", event.time, values_of(work, event), metadata)
    fire(work, project, row, cause, event=event.id, kind=event.kind, sequence=event.sequence)
    return True


def fire(work: UnitOfWork, project: Project, row: Trigger, cause: Cause, **details: Any) -> Produced | str:
    """Create the tasks of the trigger's template and append the event; or the error."""
    made = attempt(work, project, row.template, cause, rule.owner_of(row.id))
    if isinstance(made, str):
        row = replace(row, failed=row.failed + 1, last_at=work.now, last_error=made)
        details["trigger"] = row.id
        work.record("trigger.failed", row, project=project.id, level="error", message=made, details=details)
        return made
    if not made.again:
        row = replace(rule.counted(row, work.now), last_made=made.name)
        details |= {"trigger": row.id, "made": made.name, "tasks": len(made.tasks)}
        work.record("trigger.fired", row, project=project.id, details=details)
    return made


def hold_back(work: UnitOfWork, row: Trigger, why: str) -> None:
    """Count a suppressed firing; the event is appended once an hour, so that a loop does not fill the log either."""
    row = replace(row, held_back=row.held_back + 1)
    if row.reported_at is not None and work.now < row.reported_at + rule.HOUR:
        work.put(row)
        return
    fields = {"level": "warning", "message": why, "details": {"trigger": row.id}}
    work.record("trigger.held_back", replace(row, reported_at=work.now), project=row.project, **fields)


def _end_of_dag(work: UnitOfWork, project: Project, event: Event) -> bool:
    status = rule.DAG_ENDS.get(event.kind)
    dag = work.get(Dag, project.id, str(event.details.get("dag"))) if status is not None else None
    template = dag.on_end.get(status or "") if dag is not None else None
    if dag is None or template is None:
        return False
    work.begin_command(None, event.trace_id)
    metadata = {"trigger": {"name": dag.id, "event": event.id, "depth": depth_of(work, event) + 1}}
    key = f"dag:{dag.id}:{event.details.get('run')}:{status}"
    cause = Cause(key, f"trigger:{dag.id}", event.time, values_of(work, event), metadata)
    made = attempt(work, project, template, cause, rule.owner_of_end(dag.id, status or ""))
    details: dict[str, Any] = {"dag": dag.id, "event": event.id, "kind": event.kind, "sequence": event.sequence}
    if isinstance(made, str):
        work.record("trigger.failed", project=project.id, level="error", message=made, details=details)
    elif not made.again:
        details |= {"made": made.name, "tasks": len(made.tasks)}
        work.record("trigger.fired", project=project.id, details=details)
    return True

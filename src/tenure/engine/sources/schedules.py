"""Schedules: setting and reading them, and creating the tasks of a tick.

A tick belongs to the leader. It is handled in one transaction, under the leader's term: the tasks, whose key is
(schedule, tick), and the schedule's next tick. A leader that dies before leaves the tick to the next one; a deposed
leader writes nothing; and even without that, the key allows only one task per tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import commands, ids, inputs, limits, templates
from tenure.core import queries as q
from tenure.core import schedules as rule
from tenure.core.errors import InvalidInput, LimitReached, NotFound, StoreError, TenureError
from tenure.core.filters import Range
from tenure.core.outcomes import Outcome
from tenure.core.records import Project, Schedule, replace
from tenure.core.task_secrets import masked
from tenure.engine.runtime.effects import Report
from tenure.engine.runtime.rows import fields_of, project_of
from tenure.engine.runtime.unit_of_work import OUR_FAULTS, Handlers, Reads, UnitOfWork
from tenure.engine.secrets.sealed_rows import stored_template
from tenure.engine.sources.template_tasks import (
    Cause,
    Produced,
    attempt,
    error_line,
    produce,
    projects_here,
    rehearse,
    shown,
    template_of,
)
from tenure.stores.port import Transaction

if TYPE_CHECKING:
    from tenure.core.views import ScheduleInFull, ScheduleView
    from tenure.engine.runtime.engine import Engine

LONGEST_NAME = limits.SCHEDULE_NAME
MOST = limits.SCHEDULES
MOST_TICKS = limits.SCHEDULE_TICKS_SHOWN
A_PAGE = 20  # schedules per transaction
MOST_TURNS = limits.SCHEDULE_TURNS
TASKS_A_TURN = 200  # of one schedule in one transaction: more ticks take several


# --- commands -----------------------------------------------------------------------------------------------


def set_schedule(work: UnitOfWork, cmd: commands.SetSchedule) -> Outcome:
    project = project_of(work, cmd.project)
    name = check_source_name(cmd.schedule, "schedule")
    rule.check_schedule(cmd.cron, cmd.zone)
    inputs.check_choice(cmd.misfire, rule.MISFIRES, "misfire")
    templates.check_template(cmd.template)
    before = work.get(Schedule, cmd.project, name)
    if before is None and work.tally(Schedule, {"project": cmd.project}, MOST) >= MOST:
        raise LimitReached(f"{cmd.project} has {MOST} schedules, the maximum", "remove one first")
    row = before or Schedule(
        project=cmd.project,
        id=name,
        cron="",
        template={},
        created_by=work.principal.name,
        created_at=work.now,
        changed_at=work.now,
    )
    template = stored_template(work, cmd.project, rule.owner_of(name), templates.stored(cmd.template), row.template)
    filled = template_of(work, cmd.project, rule.owner_of(name), template)
    rehearse(work, project, filled, _values(name, work.now, cmd.zone), lambda _: None)
    wanted = replace(row, cron=cmd.cron, zone=cmd.zone, misfire=cmd.misfire, template=template)
    if wanted == before:
        return Outcome(outcome="UNCHANGED", schedule=view(work, wanted))
    if row.enabled and (before is None or (row.cron, row.zone) != (wanted.cron, wanted.zone)):
        wanted = replace(wanted, next_at=_next(cmd.cron, cmd.zone, work.now))
    return _kept(work, "schedule.set", replace(wanted, changed_at=work.now), "UPDATED" if before else "CREATED")


def pause_schedule(work: UnitOfWork, cmd: commands.PauseSchedule) -> Outcome:
    row = named(work, cmd.project, cmd.schedule)
    reason = inputs.check_text(cmd.reason, "reason", 1000) or f"paused by {work.principal.name}"
    if not row.enabled:
        return Outcome(outcome="UNCHANGED", schedule=view(work, row))
    return _kept(work, "schedule.paused", replace(row, enabled=False, next_at=None, reason=reason))


def resume_schedule(work: UnitOfWork, cmd: commands.ResumeSchedule) -> Outcome:
    row = named(work, cmd.project, cmd.schedule)
    if row.enabled:
        return Outcome(outcome="UNCHANGED", schedule=view(work, row))
    at = _next(row.cron, row.zone, work.now)
    return _kept(work, "schedule.resumed", replace(row, enabled=True, next_at=at, reason=None))


def remove_schedule(work: UnitOfWork, cmd: commands.RemoveSchedule) -> Outcome:
    row = named(work, cmd.project, cmd.schedule)
    work.record("schedule.removed", project=row.project, removed=[row], details={"schedule": row.id})
    return Outcome(outcome="UPDATED", command_id=work.command_id, message=f"schedule {row.id} is removed")


def run_schedule(work: UnitOfWork, cmd: commands.RunSchedule) -> Outcome:
    """Create its tasks now; its ticks are not affected."""
    row = named(work, cmd.project, cmd.schedule)
    template = template_of(work, row.project, rule.owner_of(row.id), row.template)
    made = produce(work, project_of(work, cmd.project), template, _cause(row, work.now, key=None))
    row = replace(row, fired=row.fired + 1, last_made=made.name)
    _record(work, "schedule.fired", row, **_text(made))
    message, made_tasks = f"schedule {row.id} created {made.name}", shown(work, made)
    return Outcome(
        outcome="CREATED", command_id=work.command_id, tasks=made_tasks, schedule=view(work, row), message=message
    )


def named(work: UnitOfWork, project: str, name: str) -> Schedule:
    row = work.get(Schedule, project, name) if len(name) <= LONGEST_NAME else None
    if row is None:
        known = [s.id for s in work.find(Schedule, {"project": project}, limit=MOST)]
        raise NotFound(f"no schedule {name[:80]!r} in project {project}{inputs.suggestion(name, known)}")
    return row


def check_source_name(name: str, what: str) -> str:
    """Check a name that becomes part of a key."""
    ids.check_name(name, what)
    if len(name) > LONGEST_NAME or ":" in name:
        raise InvalidInput(f"{what} {name[:80]!r} must have at most {LONGEST_NAME} characters and no ':'")
    return name


def _next(cron: str, zone: str, after: int) -> int:
    at = rule.next_tick(cron, zone, after)
    if at is None:
        raise InvalidInput(f"schedule {cron[:60]!r}: no such date in the next fifty years")
    return at


def _kept(work: UnitOfWork, kind: str, row: Schedule, outcome: str = "UPDATED") -> Outcome:
    _record(work, kind, row)
    return Outcome(outcome=outcome, command_id=work.command_id, schedule=view(work, row))


# --- the leader's duty --------------------------------------------------------------------------------------


def first_due(tx: Transaction, until: int) -> int | None:
    """When the next tick is, in any project, if not after `until`."""
    found = tx.find(Schedule, {"next_at": Range(high=until + 1)}, order="next_at", limit=1)
    return found[0].next_at if found else None


def projects_due(engine: Engine, now: int) -> Sequence[str]:
    due = {"next_at": Range(high=now + 1)}
    return engine.read(lambda tx: sorted({row.project for row in tx.find(Schedule, due)} & projects_here(tx)))


def fire(engine: Engine, project: str) -> Report:
    """Handle every tick that is due in the project."""
    report = Report()

    def decide(work: UnitOfWork) -> int:
        settings = work.get(Project, project, project)
        where = {"project": project, "next_at": Range(high=work.now + 1)}
        due = work.find(Schedule, where, order="next_at", limit=A_PAGE) if settings else []
        already = len(work.events)
        for row in due:
            assert settings is not None
            _fire_apart(work, settings, row)
        report.note(work.events[already:])
        return len(due)

    for _ in range(MOST_TURNS):  # the rest waits for the leader's next tick: other projects come first
        if not engine.transact((project,), decide):
            break
    return report


def _fire_apart(work: UnitOfWork, project: Project, row: Schedule) -> None:
    """Pause a schedule that cannot be handled, with an event, so that it does not block the others.

    For example, where this host does not know the time zone.
    """
    bookmark = work.bookmark()
    try:
        _fire(work, project, row)
    except StoreError:
        raise
    except (TenureError, *OUR_FAULTS) as error:
        work.undo_to(bookmark)
        why = f"its next tick cannot be computed: {error_line(error)}"[:1000]
        _record(work, "schedule.paused", replace(row, enabled=False, next_at=None, reason=why), "error", message=why)


def _fire(work: UnitOfWork, project: Project, row: Schedule) -> None:
    """Handle one schedule's ticks up to now, or as many as fit one transaction, and set its next tick."""
    assert row.next_at is not None
    due = rule.due_ticks(row.cron, row.zone, since=row.next_at - 1, now=work.now, misfire=row.misfire)
    after = rule.next_tick(row.cron, row.zone, work.now)
    if due.missed:
        since, row = row.next_at, replace(row, missed=row.missed + 1)
        _record(work, "schedule.missed", row, "warning", since=since, policy=row.misfire)
    if not due.ticks:
        _record(work, "schedule.set", _moved(row, after), "debug")
        return
    turn = max(1, TASKS_A_TURN // len(row.template["tasks"]))
    for tick, following in zip(due.ticks[:turn], (*due.ticks[1:], after), strict=False):
        work.begin_command(None, None)
        made = attempt(
            work, project, row.template, _cause(row, tick, key=f"cron:{row.id}:{tick}"), rule.owner_of(row.id)
        )
        row = _moved(replace(row, last_at=tick), following)
        if isinstance(made, str):
            row = replace(row, failed=row.failed + 1, last_error=made)
            _record(work, "schedule.failed", row, "error", message=made, tick=tick)
        else:
            row = replace(row, fired=row.fired + 1, last_made=made.name, last_error=None)
            _record(work, "schedule.fired", row, **_text(made), tick=tick)


def _record(work: UnitOfWork, kind: str, row: Schedule, level: str = "info", message: str = "", **details: Any) -> None:
    details = {"schedule": row.id, "next_at": row.next_at, **details}
    work.record(kind, row, project=row.project, level=level, message=message, details=details)


def _moved(row: Schedule, next_at: int | None) -> Schedule:
    """With its next tick; a schedule without one for fifty years is disabled."""
    if next_at is None:
        return replace(row, next_at=None, enabled=False, reason="it has no further tick")
    return replace(row, next_at=next_at)


def _cause(row: Schedule, tick: int, *, key: str | None) -> Cause:
    at = rule.local_time(tick, row.zone).isoformat()
    metadata = {"schedule": {"name": row.id, "tick": at}}
    return Cause(key, f"cron:{row.id}", tick, _values(row.id, tick, row.zone), metadata)


def _values(name: str, tick: int, zone: str) -> dict[str, Any]:
    local = rule.local_time(tick, zone)
    spelled = {"at": local.isoformat(), "date": f"{local:%Y-%m-%d}", "time": f"{local:%H:%M}", "zone": zone}
    return {"schedule": {"name": name}, "tick": spelled}


def _text(made: Produced) -> dict[str, Any]:
    return {"made": made.name, "tasks": len(made.tasks), **({"again": True} if made.again else {})}


# --- queries ------------------------------------------------------------------------------------------------


def schedules(work: UnitOfWork, project: str) -> list[ScheduleView]:
    return [view(work, row) for row in work.find(Schedule, {"project": project}, limit=MOST)]


def schedule(work: UnitOfWork, project: str, name: str, *, ticks: int = 5) -> ScheduleInFull:
    row = named(work, project, name)
    count = inputs.check_count(ticks, MOST_TICKS, "ticks")
    coming: list[Any] = []
    at = work.now
    while len(coming) < count:
        tick = rule.next_tick(row.cron, row.zone, at)
        if tick is None:
            break
        coming.append({"at": tick, "local": f"{rule.local_time(tick, row.zone):%Y-%m-%d %H:%M %Z}"})
        at = tick
    return {**view(work, row), "template": masked(row.template), "ticks": coming}


def view(work: UnitOfWork, row: Schedule) -> ScheduleView:
    fields = "cron zone misfire enabled reason next_at last_at last_made last_error fired missed failed created_by"
    answer: ScheduleView = fields_of(row, fields + " created_at changed_at") | {
        "name": row.id,
        "title": row.template["tasks"][0]["title"],
        "tasks": len(row.template["tasks"]),
        "next_in": work.seconds_to(row.next_at),
    }
    return answer


HANDLERS: Handlers = {
    commands.SetSchedule: set_schedule,
    commands.PauseSchedule: pause_schedule,
    commands.ResumeSchedule: resume_schedule,
    commands.RemoveSchedule: remove_schedule,
    commands.RunSchedule: run_schedule,
}


READS: Reads = {q.Schedules: schedules, q.ShowSchedule: schedule}

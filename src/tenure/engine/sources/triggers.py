"""Triggers: setting, trying and reading them. `trigger_duty.py` fires on events, `deliveries.py` on requests from
outside.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tenure.core import commands, inputs, limits, signatures, templates
from tenure.core import queries as q
from tenure.core import triggers as rule
from tenure.core.commands.command import digest_of
from tenure.core.errors import InvalidInput, LimitReached, NotFound
from tenure.core.events import Event
from tenure.core.outcomes import Outcome
from tenure.core.records import Brief, Cursor, Dag, Task, Trigger, replace
from tenure.core.task_secrets import masked, shown_details
from tenure.engine.runtime.decision import is_repeat
from tenure.engine.runtime.rows import fields_of, project_of
from tenure.engine.runtime.unit_of_work import Handlers, Reads, UnitOfWork
from tenure.engine.secrets import trigger_secrets
from tenure.engine.secrets.sealed_rows import stored_template
from tenure.engine.sources.schedules import check_source_name
from tenure.engine.sources.template_tasks import rehearse, shown, template_of
from tenure.sinks.fields import told

if TYPE_CHECKING:
    from tenure.core.views import TriggerInFull, TriggerView

READER = "triggers"  # the name of their cursor
MOST = limits.TRIGGERS
LONGEST_GRACE = limits.WEBHOOK_GRACE
LOOKED_BACK = 1000  # events searched for one to try a trigger with
HINT = "save it now: it is not shown again"

_EVENT_FIELDS = (
    "id", "kind", "level", "project", "task", "key", "track", "generation", "agent", "session", "user",
    "previous_state", "new_state", "message", "details", "trace_id",
)  # fmt: skip


# --- commands -----------------------------------------------------------------------------------------------


def set_trigger(work: UnitOfWork, cmd: commands.SetTrigger) -> Outcome:
    project = project_of(work, cmd.project)
    name = check_source_name(cmd.trigger, "trigger")
    rule.check_kind(cmd.on)
    where = rule.check_filter(cmd.where)
    rule.check_most(cmd.most)
    templates.check_template(cmd.template)
    before = work.get(Trigger, cmd.project, name)
    if before is None and work.tally(Trigger, {"project": cmd.project}, MOST) >= MOST:
        raise LimitReached(f"{cmd.project} has {MOST} triggers, the maximum", "remove one first")
    row = before or Trigger(
        project=cmd.project,
        id=name,
        kind="",
        filter={},
        template={},
        behind=last_sequence(work, cmd.project),
        created_at=work.now,
        created_by=work.principal.name,
        changed_at=work.now,
    )
    if before is not None and before.kind != cmd.on:  # earlier events were not for it
        row = replace(row, behind=last_sequence(work, cmd.project))
    stored = templates.stored(cmd.template)
    template = stored_template(work, cmd.project, rule.owner_of(name), stored, row.template)
    rehearse(work, project, template_of(work, cmd.project, rule.owner_of(name), template), SAMPLE, lambda _: None)
    wanted = replace(row, kind=cmd.on, filter=where, most=cmd.most, template=template, signature=_form(cmd))
    wanted, secret = _with_secret(work, cmd, before, wanted)
    if wanted == before:
        return _shown(work, "UNCHANGED", wanted, secret)
    if cmd.on != rule.WEBHOOK:
        listen(work, cmd.project)
    wanted = replace(wanted, changed_at=work.now)
    _record(work, "trigger.set", wanted)
    return _shown(work, "UPDATED" if before else "CREATED", wanted, secret)


def _form(cmd: commands.SetTrigger) -> str | None:
    if cmd.on == rule.WEBHOOK:
        return inputs.check_choice(cmd.signature, signatures.FORMS, "signature")
    if cmd.secret is not None:
        raise InvalidInput(f"a trigger on {cmd.on} takes no secret", "only on = webhook is signed")
    return None


def _with_secret(
    work: UnitOfWork, cmd: commands.SetTrigger, before: Trigger | None, row: Trigger
) -> tuple[Trigger, str | None]:
    """The trigger with its key, and the secret to show: a new one, or the one that this request was shown before."""
    if row.signature is None:
        return replace(row, secret=b"", previous=b"", previous_until=None), None
    if before is not None and is_repeat(work, before, cmd):
        key = trigger_secrets.key_of(work, before, before.secret)
        return replace(row, secret=before.secret), signatures.spelled(row.signature, key)
    if before is not None and before.secret and before.signature == row.signature and cmd.secret is None:
        return row, None
    return _keyed(work, cmd, row)


def _keyed(work: UnitOfWork, cmd: commands.SetTrigger | commands.RotateSecret, row: Trigger) -> tuple[Trigger, str]:
    form = row.signature or signatures.STANDARD
    key = signatures.key_for(form, cmd.secret, work.random.token)
    digest = None if cmd.request_id is None else digest_of(cmd, work.principal.owner)
    sealed = trigger_secrets.sealed(work, row, key)
    row = replace(row, secret=sealed, request_id=cmd.request_id, request_hash=digest)
    return row, signatures.spelled(form, key)


def rotate_secret(work: UnitOfWork, cmd: commands.RotateSecret) -> Outcome:
    row = named(work, cmd.project, cmd.trigger)
    grace = inputs.micros(cmd.grace, "grace", high=LONGEST_GRACE)
    if row.signature is None:
        raise InvalidInput(f"trigger {row.id} is on {row.kind} and has no secret", "only on = webhook is signed")
    if is_repeat(work, row, cmd):
        key = trigger_secrets.key_of(work, row, row.secret)
        return replace(_shown(work, "UPDATED", row, signatures.spelled(row.signature, key)), again=True)
    before = row.secret if grace else b""
    row, secret = _keyed(work, cmd, row)
    row = replace(row, previous=before, previous_until=work.now + grace if grace else None, changed_at=work.now)
    _record(work, "trigger.rotated", row)
    return _shown(work, "UPDATED", row, secret)


def pause_trigger(work: UnitOfWork, cmd: commands.PauseTrigger) -> Outcome:
    row = named(work, cmd.project, cmd.trigger)
    if not row.enabled:
        return _shown(work, "UNCHANGED", row)
    row = replace(row, enabled=False)
    _record(work, "trigger.paused", row)
    return _shown(work, "UPDATED", row)


def resume_trigger(work: UnitOfWork, cmd: commands.ResumeTrigger) -> Outcome:
    row = named(work, cmd.project, cmd.trigger)
    if row.enabled:
        return _shown(work, "UNCHANGED", row)
    row = replace(row, enabled=True, behind=last_sequence(work, cmd.project))
    _record(work, "trigger.resumed", row)
    return _shown(work, "UPDATED", row)


def remove_trigger(work: UnitOfWork, cmd: commands.RemoveTrigger) -> Outcome:
    row = named(work, cmd.project, cmd.trigger)
    work.record("trigger.removed", project=row.project, removed=[row], details={"trigger": row.id})
    return Outcome(outcome="UPDATED", command_id=work.command_id, message=f"trigger {row.id} is removed")


def try_trigger(work: UnitOfWork, cmd: commands.TryTrigger) -> Outcome:
    """What it would create for a sample; nothing is stored."""
    row = named(work, cmd.project, cmd.trigger)
    values = cmd.sample if cmd.sample is not None else _last_heard(work, row)
    if not rule.fits(row.filter, values):
        message = "the filter does not match: nothing would be created"
        return Outcome(outcome="OK", tasks=(), trigger=view(row), message=message)
    project = project_of(work, cmd.project)
    template = template_of(work, row.project, rule.owner_of(row.id), row.template)
    tasks = rehearse(work, project, template, values, lambda made: shown(work, made))
    return Outcome(outcome="OK", tasks=tasks, trigger=view(row), message="nothing was stored; it would create:")


def _last_heard(work: UnitOfWork, row: Trigger) -> dict[str, Any]:
    if row.kind == rule.WEBHOOK:
        raise InvalidInput(f"trigger {row.id}: deliveries are not kept", 'give a sample, as in {"body": {…}}')
    last = last_sequence(work, row.project)
    where = {"project": row.project, "kind": tuple(sorted(rule.kinds_of(row.kind)))}
    found = work.tx.events(where, after=max(0, last - LOOKED_BACK), limit=1, last=True)
    if not found:
        raise NotFound(f"no {row.kind} among the last events", 'give a sample, as in {"event": {…}}')
    return values_of(work, found[0])


# --- what they share ----------------------------------------------------------------------------------------


def listen(work: UnitOfWork, project: str) -> None:
    """Have the project's log read from here on, for triggers and ends of dags."""
    if work.get(Cursor, project, READER) is None:
        work.put(Cursor(project=project, id=READER, sequence=last_sequence(work, project)))


def last_sequence(work: UnitOfWork, project: str) -> int:
    """The end of the project's stored log; what this transaction appends comes after it."""
    last = work.tx.events({"project": project}, limit=1, last=True)
    return last[0].sequence if last else 0


def named(work: UnitOfWork, project: str, name: str) -> Trigger:
    row = work.get(Trigger, project, name) if len(name) <= inputs.LONGEST_NAME else None
    if row is None:
        known = [t.id for t in work.find(Trigger, {"project": project}, limit=MOST)]
        raise NotFound(f"no trigger {name[:80]!r} in project {project}{inputs.suggestion(name, known)}")
    return row


class _Any(dict[str, Any]):
    """Has a value at every path."""

    def get(self, key: str, default: Any = None) -> Any:
        return _Any()


SAMPLE = dict.fromkeys(templates.ROOTS, _Any())  # values to check a template with before any event


def _record(work: UnitOfWork, kind: str, row: Trigger) -> None:
    work.record(kind, row, project=row.project, details={"trigger": row.id, "on": row.kind})


def _shown(work: UnitOfWork, outcome: str, row: Trigger, secret: str | None = None) -> Outcome:
    command_id = work.command_id if outcome != "UNCHANGED" else None
    hint = HINT if secret is not None else None
    return Outcome(outcome=outcome, command_id=command_id, trigger=view(row), secret=secret, hint=hint)


# --- values of an event, for filters and templates ------------------------------------------------------------


def values_of(work: UnitOfWork, event: Event) -> dict[str, Any]:
    """`event`, and the `task` or `dag` that it is about in their current state."""
    values: dict[str, Any] = {"event": event_values(event)}
    task = _task(work, event)
    if task is not None:
        brief = work.get(Brief, task.project, task.id)
        shown = "id key type track priority state attempts created_by dag"
        values["task"] = fields_of(task, shown) | {"title": brief.title if brief else "", "tags": list(task.tags)}
    dag = _dag(work, event)
    if dag is not None:
        values["dag"] = fields_of(dag, "id title plan status run total completed dead")
    return values


def event_values(event: Event) -> dict[str, Any]:
    """The event alone, without a query to the store."""
    time = datetime.fromtimestamp(event.time // 1_000_000, UTC)
    return {name: getattr(event, name) for name in _EVENT_FIELDS} | {
        "details": told(event.kind, shown_details(event)),
        "time": f"{time:%Y-%m-%dT%H:%M:%SZ}",
    }


def depth_of(work: UnitOfWork, event: Event) -> int:
    """How many triggers, one after the other, led to the event's subject."""
    task = _task(work, event)
    dag = _dag(work, event)
    if task is None and dag is not None and dag.created_by.startswith("trigger:"):
        task = next(iter(work.find(Task, {"project": event.project, "dag": dag.id}, limit=1)), None)
    if task is None:
        return 0
    first = task if task.root is None else work.get(Task, task.project, task.root)
    brief = work.get(Brief, event.project, (first or task).id)
    return rule.depth_in(brief.metadata) if brief is not None else 0


def _task(work: UnitOfWork, event: Event) -> Task | None:
    return work.get(Task, event.project, event.task) if event.task is not None else None


def _dag(work: UnitOfWork, event: Event) -> Dag | None:
    id = event.details.get("dag") if event.kind.startswith("dag.") else None
    return work.get(Dag, event.project, id) if isinstance(id, str) else None


# --- queries ------------------------------------------------------------------------------------------------


def triggers(work: UnitOfWork, project: str) -> list[TriggerView]:
    return [view(row) for row in work.find(Trigger, {"project": project}, limit=MOST)]


def trigger(work: UnitOfWork, project: str, name: str) -> TriggerInFull:
    row = named(work, project, name)
    return {**view(row), "template": masked(row.template)}


def view(row: Trigger) -> TriggerView:
    fields = "filter enabled most signature previous_until fired failed held_back last_at last_made last_error"
    answer: TriggerView = fields_of(row, fields + " created_by created_at changed_at") | {
        "name": row.id,
        "on": row.kind,
        "title": row.template["tasks"][0]["title"],
        "tasks": len(row.template["tasks"]),
    }
    return answer


HANDLERS: Handlers = {
    commands.SetTrigger: set_trigger,
    commands.PauseTrigger: pause_trigger,
    commands.ResumeTrigger: resume_trigger,
    commands.RemoveTrigger: remove_trigger,
    commands.RotateSecret: rotate_secret,
    commands.TryTrigger: try_trigger,
}


READS: Reads = {q.Triggers: triggers, q.ShowTrigger: trigger}

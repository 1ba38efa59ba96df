"""The log, for people and programs: events of a project or a task, with their sentences, traces and stack traces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import inputs, limits, notices, roles
from tenure.core import queries as q
from tenure.core.event_text import event_text
from tenure.core.events import Event, kinds_of, levels_from
from tenure.core.filters import Range
from tenure.core.records import Claim, Task
from tenure.core.redaction import TRACE
from tenure.core.task_secrets import shown_details
from tenure.core.trace_ids import trace_of
from tenure.engine.runtime.rows import archived_events, task_named
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.sinks.fields import told

if TYPE_CHECKING:
    from tenure.core import views as v
    from tenure.stores.port import Transaction

MOST_EVENTS = limits.EVENTS_LISTED


def log(
    work: UnitOfWork,
    project: str,
    *,
    after: int = 0,
    limit: int = 100,
    last: bool = True,
    since: int | None = None,
    store: bool = False,
    **where: Any,
) -> list[v.EventView]:
    """Events of the project, oldest first, without the patches that only replay needs."""
    where = {name: value for name, value in where.items() if value is not None}
    if since is not None:
        where["time"] = Range(since, None)
    if "kind" in where:
        where["kind"] = kinds_of(where["kind"])
    if "level" in where:
        where["level"] = levels_from(where["level"])
    older: list[Event] = []
    if "task" in where:
        where["task"] = task_named(work, project, where["task"]).id
        older = archived_events(work, project, where) if after == 0 else []
    events = work.tx.events({"project": project, **where}, after=after, limit=limit, last=last)
    if store and "task" not in where:
        seen = roles.store_kinds(work.principal)
        kinds = tuple(sorted(seen.intersection(where.get("kind", seen))))
        if kinds:
            others = work.tx.events({**where, "project": "", "kind": kinds}, after=after, limit=limit, last=last)
            events = sorted([*events, *others], key=lambda event: event.sequence)
    events = [*older, *events][-limit:] if last else [*older, *events][:limit]
    named = {event.task for event in events if event.task is not None}
    tasks = work.get_many(Task, project, named)
    ends = work.get_many(Claim, project, [claim for event in events if (claim := claim_before(event)) is not None])
    return [
        event_view(event, tasks.get(event.task or ""), work.context.tenant, ends.get(claim_before(event) or ""))
        for event in events
    ]


def task_log(work: UnitOfWork, project: str, task: str, **filters: Any) -> list[v.EventView]:
    return log(work, project, task=task, **filters)


def tasks_of(tx: Transaction, events: Iterable[Event]) -> dict[str, Task]:
    """The tasks of these events, which may be of several projects, by id."""
    wanted = {(event.project, event.task) for event in events if event.task is not None}
    return {task.id: task for task in tx.load(Task, sorted(wanted))} if wanted else {}


def claim_before(event: Event) -> str | None:
    """The id of the claim of the generation before, if the event is of a later claim."""
    before = event.details.get("previous_generation") if event.kind == "task.claimed" else None
    return f"{event.task}@{before}" if before else None


def event_view(event: Event, task: Task | None, tenant: str, before: Claim | None = None) -> v.EventView:
    """An event with its sentence, without the patch that only replay needs and without fields that are not set.

    `trace_id` is the task's, from its creation to its end; the request's own is beside it. `before`: the claim of the
    generation before.
    """
    fields: Any = {f: x for f, x in msgspec.structs.asdict(event).items() if f != "patch" and x not in (None, "", {})}
    if "details" in fields:
        fields["details"] = told(event.kind, shown_details(event))
    fields["tenant"] = tenant
    if event.kind == "task.claimed" and "lease_until" in event.details:
        fields["lease"] = (event.details["lease_until"] - event.time) / inputs.SECOND
        if before is not None:
            fields["previous_claim"] = before.reason or before.state
    if event.task is not None:
        fields["trace_id"] = trace_of(task, event)
        if event.trace_id is not None:
            fields["request_trace_id"] = event.trace_id
    stack_trace = _stack_trace(event)
    if stack_trace:
        fields["stack_trace"] = stack_trace
    notice = notices.kind_of(event)
    if notice is not None:
        fields["notice"] = notice
    return {**fields, "text": event_text(event)}  # type: ignore[typeddict-item]


def _stack_trace(event: Event) -> str | None:
    """That of a failure, which its patch has for the claim."""
    if event.kind != "task.failed":
        return None
    for table, _, fields in event.patch:
        if table == "claim" and fields is not None:
            found = (fields.get("metadata") or {}).get(TRACE)
            return None if found is None else str(found)
    return None


READS: Reads = {q.Log: log, q.TaskLog: task_log}

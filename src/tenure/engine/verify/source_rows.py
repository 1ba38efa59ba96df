"""Verify schedules and triggers: ticks follow the rule, and the log is read for every trigger."""

from __future__ import annotations

from collections.abc import Iterator

from tenure.core import schedules
from tenure.core.errors import TenureError
from tenure.core.records import Cursor, Dag, Schedule, Trigger
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.sources.triggers import READER, last_sequence
from tenure.engine.verify.replay import Tables


def source_rows(rows: Tables, work: UnitOfWork) -> Iterator[str]:
    for schedule in rows[Schedule].values():
        yield from _ticks(schedule)
    for trigger in rows[Trigger].values():
        if (trigger.signature is not None) != bool(trigger.secret):
            yield f"trigger {trigger.id}: signed by {trigger.signature}, {len(trigger.secret)} bytes of secret"
        if trigger.signature is None and (trigger.project, READER) not in rows[Cursor]:
            yield f"trigger {trigger.id}: no cursor reads the log for it"
    for dag in rows[Dag].values():
        if dag.on_end and (dag.project, READER) not in rows[Cursor]:
            yield f"{dag.id}: has end templates, but no cursor reads the log for them"
    for cursor in rows[Cursor].values():
        if cursor.sequence > last_sequence(work, cursor.project):
            yield f"cursor {cursor.id} of {cursor.project}: stands at {cursor.sequence}, beyond the end of the log"


def _ticks(row: Schedule) -> Iterator[str]:
    if row.enabled != (row.next_at is not None):
        yield f"schedule {row.id}: enabled is {row.enabled}, its next tick {row.next_at}"
    if row.next_at is None:
        return
    try:
        wanted = schedules.next_tick(row.cron, row.zone, row.next_at - 1)
    except TenureError as error:
        yield f"schedule {row.id}: {error.message}"
        return
    if wanted != row.next_at:
        yield f"schedule {row.id}: its next tick is {row.next_at}; {row.cron} in {row.zone} says {wanted}"

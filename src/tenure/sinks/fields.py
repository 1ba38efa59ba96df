"""The payload fields of every kind of event. The shipped schemas and the reference page are generated from this table.

A row is `name type` for each field, separated by commas. `name?` may be absent; a type that ends in `?` may be null.
The types: text, integer, number, flag, instant (RFC 3339 text in UTC), texts (a list), object (fields of rows),
instants (an object whose values are instants), any (as its author wrote it). A duration has its unit in its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from tenure.core.instants import format_instant, is_instant

# Of every event. Cut payloads have the first part and `truncated` only.
IDS = (
    "task_id text?, key text?, type text?, previous_state text?, new_state text?, generation integer?, "
    "agent_id text?, session_id text?, attempt integer?"
)
MORE = "level text, message text, at? instant, user? text, holder? text, by? text"

# Details whose name means something else in a payload, by kind: their name there.
RENAMED: dict[str, dict[str, str]] = {
    "agent.emitted": {"type": "agent_type"},
    "key.created": {"key": "key_id"},
    "key.rotated": {"key": "key_id"},
    "key.revoked": {"key": "key_id"},
    "message.sent": {"message": "mail_id", "type": "mail_type"},
    "task.artifact": {"type": "media_type"},
    "task.retry_scheduled": {"retry_at": "next_attempt_at"},
}

# Details of earlier events that had no unit in their name: the name now, and how many of them are one of those.
FORMER: dict[str, dict[str, tuple[str, int]]] = {
    "clock.accepted": {"back": ("back_ms", 1000)},
    "task.result_refused": {"processing_time": ("processing_ms", 1)},
}

# fmt: off
EVENTS: dict[str, str] = {
    "project.created": "",
    "project.key_rotated": "master flag, lost? flag, keys integer",
    "project.changed": "changed texts, lowered? object",
    "project.stopped": "scope text",
    "project.started": "scope text",
    "track.defined": "track text",
    "dag.created": "dag text, title text, plan? text?",
    "dag.reopened": "dag text, run integer",
    "dag.completed": "dag text, run integer, title text",
    "dag.failed": "dag text, run integer, title text",
    "dag.cancelled": "dag text, run integer, title text",
    "dag.changed": "dag text, on_end texts",
    "task.created": "created_by text, title text",
    "task.published": "",
    "task.ready": "after? text",
    "task.pending": "waits_for text",
    "task.linked": "needs text, on_failure text, before? text",
    "task.unlinked": "needs text, on_failure text",
    "task.claimed":
        "lease_until instant, previous_generation integer, previous_claim text?, term? integer, funds? object, "
        "next_claims? instants, caused_by? text",
    "task.started": "",
    "task.progress": "percent integer?, step text?",
    "task.checkpoint": "",
    "task.landing": "branch text, new text, old text",
    "task.artifact": "digest text, name text, size integer, media_type text",
    "task.waiting": "waits_for texts",
    "task.validating": "result text, validator text, late flag, phase? text, commit? text, onto? text",
    "task.validation_taken": "holder text, try integer, validator text",
    "task.validated": "commit text, onto text, validator text",
    "task.validation_undecided": "retry_at instant, try integer, validator text",
    "task.output_refused": "count integer, reasons texts",
    "task.completed": "result text, result_ref text?, work_product text, duration_ms integer, cost number?, late flag, "
        "validator? text, onto? text, judged_by? text",
    "task.result_refused": "submitted_generation integer, current_generation integer, reason text, work_lost flag, "
        "result text, result_size integer, processing_ms integer",
    "task.failed": "error_class text?, error text, given_back? flag, reasons? texts, validator? text",
    "task.retry_scheduled": "next_attempt_at instant, backoff_ms integer, error_class text",
    "task.retry_due": "changes? object",
    "task.dead_lettered": "error_class text, error text, attempts integer, poison_pill flag",
    "task.lease_expired": "lease_until instant",
    "task.process_gone": "lease_until instant, said_by text, host? text, pid? integer, spawn? text",
    "task.released": "",
    "task.aborted": "error_class text, error text",
    "task.epoch_ended": "",
    "task.clock_ended": "",
    "task.warned": "",
    "task.drain_requested": "",
    "task.paused": "cause? text, budget? text, percent? integer, result? text, validator? text, tries? integer, "
        "lines? integer, tokens? integer",
    "task.pause_lifted": "lifted texts, left? texts",
    "task.resumed": "lifted texts",
    "task.question": "",
    "task.answered": "lifted texts, left? texts",
    "task.change_seen": "brief integer",
    "task.cancelled": "cause text, reason text, before object, source? text",
    "task.uncancelled": "",
    "task.retried": "run integer, before object, changes? object, was? text",
    "task.reset": "before object",
    "task.reset_undone": "",
    "task.retry_undone": "",
    "task.adopted": "result text, work_product text",
    "task.archived": "",
    "task.unarchived": "",
    "task.edited": "changes texts, before object, undo? flag",
    "task.offered": "agent text, until instant, term? integer",
    "task.reordered": "order text",
    "task.offer_ended": "agent text",
    "task.recovered": "",
    "task.reassigned": "",
    "task.deadline_missed": "",
    "task.resealed": "",
    "task.noted": "term? integer",
    "task.usage_doubted": "amount_usd text, reported_usd text, by? text",
    "task.usage_confirmed": "amount_usd text, reported_usd text, by? text",
    "task.usage_rejected": "amount_usd text, reported_usd text, by? text",
    "agent.registered": "",
    "agent.updated": "",
    "agent.draining": "",
    "agent.stale": "",
    "agent.recovered": "",
    "agent.terminating": "graceful flag",
    "agent.terminated": "",
    "agent.resumed": "",
    "agent.left": "",
    "agent.died": "host text, pid integer, said_by text",
    "session.started": "",
    "session.keyed": "fingerprint text",
    "session.ended": "",
    "message.sent": "mail_id text, mail_type text, to text, recipients texts, action? text, text? text, "
        "reply_to? text?, expires_at? instant?",
    "budget.set": "budget text, allocated? integer, currency? text, task? text, earlier? integer",
    "budget.removed": "budget text",
    "budget.moved": "budget text, from text, to text, amount integer",
    "budget.alert": "budget text, threshold integer, percent integer",
    "budget.alert_ended": "budget text, threshold integer, percent integer",
    "reservation.taken": "patterns texts, mode text",
    "reservation.released": "patterns texts",
    "track.assigned": "track text, agent text",
    "track.released": "track text, agent text",
    "leader.elected": "for text, term integer",
    "leader.lost": "term integer, why? text, ended_at? instant",
    "archive.moved": "tasks integer, documents? object",
    "archive.returned": "tasks texts, moved? instants",
    "archive.pruned": "tasks integer, until? instant, leaves? text",
    "schedule.set": "schedule text, next_at instant?",
    "schedule.paused": "schedule text, next_at instant?",
    "schedule.resumed": "schedule text, next_at instant?",
    "schedule.removed": "schedule text",
    "schedule.fired": "schedule text, made text, tasks integer, next_at instant?, tick? instant, again? flag",
    "schedule.missed": "schedule text, since instant, policy text, next_at instant?",
    "schedule.failed": "schedule text, tick instant, next_at instant?",
    "trigger.set": "trigger text, on text",
    "trigger.paused": "trigger text, on text",
    "trigger.resumed": "trigger text, on text",
    "trigger.removed": "trigger text",
    "trigger.rotated": "trigger text, on text",
    "trigger.fired": "trigger? text, made text, tasks integer, dag? text, delivery? text, event? text, kind? text, "
        "sequence? integer",
    "trigger.failed": "trigger text, delivery? text, event? text, kind? text, sequence? integer",
    "trigger.held_back": "trigger text",
    "key.created": "key_id text, name text, role text, by text",
    "key.rotated": "key_id text, name text, role text, by text",
    "key.revoked": "key_id text, name text, role text, by text",
    "tenant.added": "tenant text, by text",
    "tenant.changed": "tenant text, by text, changed texts",
    "tenant.closed": "tenant text, by text",
    "tenant.reopened": "tenant text, by text",
    "tenant.leaving": "tenant text, by text, move integer, region text?",
    "tenant.moved": "tenant text, by text, move integer, region text?",
    "tenant.arrived": "tenant text, by text, move integer, region text?",
    "tenant.stayed": "tenant text, by text, move integer, region text?",
    "member.invited": "member text, role text, projects texts, by text",
    "member.joined": "member text, role text, projects texts, by text",
    "member.changed": "member text, role text, projects texts, by text",
    "member.removed": "member text, role text, projects texts, by text",
    "sink.added": "sink text, url text",
    "sink.paused": "sink text",
    "sink.resumed": "sink text",
    "sink.rewound": "sink text, from integer, to integer",
    "sink.removed": "sink text",
    "sink.behind": "sink text, after integer",
    "sink.gap": "sink text, from integer, to integer",
    "sink.forgot": "sink text",
    "webhook.set": "webhook text, url text",
    "webhook.paused": "webhook text, url text",
    "webhook.resumed": "webhook text, url text",
    "webhook.rotated": "webhook text, url text",
    "webhook.replayed": "webhook text, url text",
    "webhook.removed": "webhook text",
    "webhook.disabled": "webhook text, url text, why text",
    "webhook.test": "webhook text",
    "pool.set": "pool text, program text, size integer, spawner text",
    "pool.paused": "pool text, program text, size integer, spawner text",
    "pool.resumed": "pool text, program text, size integer, spawner text",
    "pool.removed": "pool text",
    "spawn.starting": "pool text, spawn text, agent text, task text, task_key text, spawner text, term integer",
    "spawn.running": "pool text, spawn text, agent text, task text, task_key text, session text?",
    "spawn.ended": "pool text, spawn text, agent text, task text, task_key text, session text?, why text, claimed flag",
    "spawn.lost": "pool text, spawn text, agent text, task text, task_key text, session text?, why text, claimed flag",
    "agent.emitted": "name text, data any, agent_type text",
    "source.files_changed": "paths texts, more integer",
    "epoch.started": "epoch text",
    "clock.accepted": "back_ms integer, moved integer",
    "command.undone": "command text, tasks texts",
}
# fmt: on

EXECUTE = "task_id text, key text, target_agent_type text, reason text, version integer"
AGENT_COMMAND = (  # also mail to one agent
    "message text, from text?, to text, type text, text text, action text?, reply_to text?, expires_at instant?, "
    "recipients? texts"
)
DEAD_LETTER = (
    "id text, project text, task text, run integer, dag text, error_class text, error text, history any, "
    "poison_pill flag, dead_lettered_at instant, reviewed_by? text?, reviewed_at? instant?, resolution? text?, "
    "note? text?"
)


class Field(NamedTuple):
    name: str
    type: str
    is_optional: bool = False
    may_be_null: bool = False


def fields_of(row: str) -> tuple[Field, ...]:
    """The fields of a row of the table."""
    pairs = [part.split() for part in row.split(",") if part.strip()]
    return tuple(
        Field(name.removesuffix("?"), type.removesuffix("?"), name.endswith("?"), type.endswith("?"))
        for name, type in pairs
    )


# --- what a reader sees of an event's details ----------------------------------------------------------------


@cache
def _types_of(kind: str) -> dict[str, str]:
    """The types of the details of a kind, under their own names."""
    fields = fields_of(f"{MORE},{EVENTS.get(kind, '')}")
    return {former_name(kind, field.name): field.type for field in fields}


def former_name(kind: str, name: str) -> str:
    """The name of a detail that has this name in a payload."""
    return next((own for own, renamed in RENAMED.get(kind, {}).items() if renamed == name), name)


def told(kind: str, details: Mapping[str, Any]) -> dict[str, Any]:
    """The details as every interface shows them: instants as text, by the types of their fields."""
    types, former = _types_of(kind), FORMER.get(kind, {})
    shown: dict[str, Any] = {}
    for name, value in details.items():
        if name in former:
            now, parts = former[name]
            shown[now] = value // parts
        else:
            shown[name] = _spelled(value, types.get(name, "object"), name)
    return shown


def _spelled(value: Any, type_: str, name: str) -> Any:
    match type_:
        case "any":
            return value
        case "instant":
            return format_instant(value) if type(value) is int else value
        case "instants":
            return {key: _spelled(part, "instant", key) for key, part in value.items()}
        case _:
            return row_fields(value, name)


def row_fields(value: Any, name: str = "") -> Any:
    """Fields of rows, with the instants in them as text."""
    if type(value) is int:
        return format_instant(value) if is_instant(name) else value
    if isinstance(value, Mapping):
        return {inner: row_fields(part, inner) for inner, part in value.items()}
    if isinstance(value, list | tuple):
        return [row_fields(part) for part in value]
    return value

"""The envelope of every message, version v1, and the messages that one event becomes. Pure.

An event becomes `evt.KIND.v1`. If it made a task ready, it also becomes the command `cmd.task.execute.v1`; a dead
letter also goes out in full as `dlq.task.TYPE.v1`. `fields.py` lists the fields of every kind: the shipped JSON Schemas
are generated from it, and the suite validates each message that is sent.

The payload has no receipt, nonce or sealed value: it is built from the event's own fields and details, never from its
patch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tenure.core import limits
from tenure.core.events import Event
from tenure.core.instants import format_instant, is_instant
from tenure.core.records import DeadLetter, Task
from tenure.core.records import Message as Mail
from tenure.core.task_secrets import shown_details
from tenure.core.team import TYPE
from tenure.core.trace_ids import trace_of
from tenure.sinks import fields, names
from tenure.sinks.port import Message

SCHEMA_VERSION = names.VERSION
LONGEST = limits.MESSAGE_BYTES
EMITTED = "agent.emitted"
_IDS = tuple(field.name for field in fields.fields_of(fields.IDS))
_UNCHANGED: dict[str, str] = {}

# Why a task is offered to workers: by the kind of the event that made it ready.
_NEW = frozenset({"task.created", "task.ready", "task.published"})
_RETRY = frozenset({"task.retry_due", "task.retried", "task.reset", "task.resumed", "task.uncancelled"})
NEW_TASK, RETRY_DUE, LEASE_EXPIRED = REASONS = ("new_task", "retry_due", "lease_expired")


class Facts(NamedTuple):
    """What an envelope needs beside its event, read by the relay in the same transaction as the page."""

    tenant: str
    task: Task | None = None
    agent_type: str | None = None
    target: str | None = None  # the agent type that a ready task is for
    previous_claim: str | None = None  # how the generation before ended
    cost: int | None = None  # nano-dollars, of a completed task
    letter: DeadLetter | None = None
    mail: Sequence[Mail] = ()  # one row for each recipient


def messages_of(event: Event, facts: Facts, *, short_names: bool = False) -> list[Message]:
    """Every message that the event becomes, in the order in which they are sent."""
    payload = _payload(event, facts)
    name = names.event_name(event.kind, facts.agent_type, payload.get("name") if event.kind == EMITTED else None)
    found = [_message(event, facts, event.id, name, payload)]
    if short_names and event.kind == "task.dead_lettered":
        found.append(_message(event, facts, f"{event.id}-short", f"evt.task.dead.{SCHEMA_VERSION}", payload))
    if facts.letter is not None:
        whole = payload | _times(msgspec.to_builtins(facts.letter))
        name = names.dead_letter_name(facts.task.type if facts.task else "unknown")
        found.append(_message(event, facts, f"{event.id}-dlq", name, whole))
    if facts.task is not None and made_ready(event):
        found.append(execute(facts, facts.task, event.version or 0, reason_of(event.kind), event=event))
    if event.kind == "message.sent":
        found += _mail(event, facts)
    return found


def _mail(event: Event, facts: Facts) -> Iterator[Message]:
    """Mail for the recipients' mailboxes; a command to a type of agent goes to one worker of that type."""
    details = event.details
    address, action = str(details.get("to")), details.get("action")
    if action is not None and address.startswith(TYPE):
        payload = _times({**details, "from": event.agent})
        name = names.agent_command_name(address.removeprefix(TYPE), action)
        yield _message(event, facts, f"{event.id}-cmd", name, payload)
        return
    for mail in facts.mail:
        payload = _times(
            {
                "message": mail.message,
                "from": mail.sender,
                "to": mail.recipient,
                "type": mail.type,
                "action": mail.action,
                "text": mail.text,
                "reply_to": mail.reply_to,
                "expires_at": mail.expires_at,
            }
        )
        yield _message(
            event, facts, f"{event.id}-{names.safe(mail.recipient)}", names.mailbox_name(mail.recipient), payload
        )


def made_ready(event: Event) -> bool:
    return event.task is not None and (
        (event.new_state == "ready" and event.previous_state != "ready") or event.kind == "task.offer_ended"
    )


def reason_of(kind: str) -> str:
    return NEW_TASK if kind in _NEW else RETRY_DUE if kind in _RETRY else LEASE_EXPIRED


def execute(
    facts: Facts, task: Task, version: int, reason: str, *, event: Event | None = None, now: int = 0
) -> Message:
    """The command to work on a ready task. Its id names the task's version: the event and the sweep send the same."""
    payload = {
        "task_id": task.id,
        "key": task.key,
        "target_agent_type": facts.target or task.type,
        "reason": reason,
        "version": version,
    }
    id = hashlib.sha256(f"{task.id} {version}".encode()).hexdigest()[:32]
    body = _encoded(
        id, names.EXECUTE, payload, trace=trace_of(task, event), cause=event.id if event else None,
        time=event.time if event else now, tenant=facts.tenant, project=task.project,
        sequence=event.sequence if event else 0,
    )  # fmt: skip
    return Message(id=id, name=names.EXECUTE, body=body, sequence=event.sequence if event else 0, task=task.id)


def _message(event: Event, facts: Facts, id: str, name: str, payload: dict[str, Any]) -> Message:
    body = _encoded(
        id, name, payload, trace=trace_of(facts.task, event), cause=event.causation_id, time=event.time,
        tenant=facts.tenant, project=event.project, sequence=event.sequence,
    )  # fmt: skip
    return Message(id=id, name=name, body=body, sequence=event.sequence, task=event.task)


def _encoded(
    id: str,
    name: str,
    payload: dict[str, Any],
    *,
    trace: str,
    cause: str | None,
    time: int,
    tenant: str,
    project: str,
    sequence: int,
) -> bytes:
    envelope = {
        "schema_version": SCHEMA_VERSION,
        "message_id": id,
        "trace_id": trace,
        "causation_id": cause,
        "kind": name.removesuffix(f".{SCHEMA_VERSION}"),
        "emitted_at": format_instant(time),
        "tenant": tenant,
        "project": project,
        "sequence": sequence,
    }
    body = _encode(envelope | {"payload": payload})
    if len(body) > LONGEST:
        cut = {field: payload.get(field) for field in _IDS} | {"truncated": True}
        body = _encode(envelope | {"payload": cut})
    return body


_encode = msgspec.json.Encoder().encode


# --- the payload --------------------------------------------------------------------------------------------


def _payload(event: Event, facts: Facts) -> dict[str, Any]:
    task, kind = facts.task, event.kind
    details = shown_details(event)
    payload = _details(kind, details) if details else {}
    payload |= {
        "task_id": event.task,
        "key": event.key,
        "type": task.type if task is not None else None,
        "previous_state": event.previous_state,
        "new_state": event.new_state,
        "generation": event.generation,
        "agent_id": event.agent,
        "session_id": event.session,
        "attempt": details.get("attempt", task.attempts if task is not None else None),
        "level": event.level,
        "message": event.message,
    }
    match kind:
        case "task.claimed":
            payload["previous_claim"] = facts.previous_claim
        case "task.completed":
            result = details.get("result")
            payload["result_ref"] = f"db://{event.project}/results/{result}" if result else None
            payload["cost"] = None if facts.cost is None else facts.cost / 1e9
        case "task.failed" | "task.dead_lettered":
            payload["error_class"] = details.get("error_class")
            payload["error"] = details.get("error") or event.message
    return payload


def _details(kind: str, details: Mapping[str, Any]) -> dict[str, Any]:
    """The details under their names in the payload, with their instants as text."""
    renamed, instants = fields.RENAMED.get(kind, _UNCHANGED), fields.instants_of(kind)
    found = {renamed.get(name, name): value for name, value in details.items()}
    return {
        name: format_instant(value) if name in instants and type(value) is int else _times(value, name)
        for name, value in found.items()
    }


def _times(value: Any, name: str = "") -> Any:
    """The value, with the instants in it as text."""
    if type(value) is int:
        return format_instant(value) if is_instant(name) else value
    if isinstance(value, Mapping):
        return {inner: _times(part, inner) for inner, part in value.items()}
    if isinstance(value, list | tuple):
        return [_times(part) for part in value]
    return value

"""The envelope of every message, version v1, and the messages that one event becomes. Pure.

An event becomes `evt.KIND.v1`. If it made a task ready, it also becomes the command `cmd.task.execute.v1`; a dead
letter also goes out in full as `dlq.task.TYPE.v1`. `fields.py` lists the fields of every kind: the shipped JSON Schemas
are generated from it, and the suite validates each message that is sent.

The payload has no receipt, nonce or sealed value: it is built from the event's own fields and details, never from its
patch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from tenure.core import limits
from tenure.core.events import Event
from tenure.core.instants import format_instant
from tenure.core.records import DeadLetter, Task
from tenure.core.records import Message as Mail
from tenure.core.task_secrets import shown_details
from tenure.core.team import TYPE
from tenure.core.trace_ids import trace_of
from tenure.sinks import fields, names
from tenure.sinks.fields import row_fields
from tenure.sinks.port import Message

SCHEMA_VERSION = names.VERSION
LONGEST = limits.MESSAGE_BYTES
EMITTED = "agent.emitted"
_IDS = tuple(field.name for field in fields.fields_of(fields.IDS))
_UNCHANGED: dict[str, str] = {}

# Why a task is offered to workers.
NEW_TASK, RETRY_DUE, LEASE_EXPIRED, GIVEN_BACK, CLAIM_ENDED, RESUMED, OFFER_ENDED, ANNOUNCED_AGAIN = REASONS = (
    "new_task", "retry_due", "lease_expired", "given_back", "claim_ended", "resumed", "offer_ended", "announced_again",
)  # fmt: skip
# By the kind of the event that made it ready; a failure is given back or retried at once.
WHY_READY = {
    "task.created": NEW_TASK, "task.ready": NEW_TASK, "task.published": NEW_TASK, "task.unlinked": NEW_TASK,
    "task.linked": NEW_TASK, "task.waiting": NEW_TASK,  # what it waits for is done already

    "task.retry_due": RETRY_DUE, "task.retried": RETRY_DUE, "task.reset": RETRY_DUE, "task.failed": RETRY_DUE,
    "task.lease_expired": LEASE_EXPIRED, "task.released": GIVEN_BACK, "task.recovered": CLAIM_ENDED,
    "task.process_gone": CLAIM_ENDED, "task.epoch_ended": CLAIM_ENDED, "task.clock_ended": CLAIM_ENDED,
    "task.aborted": CLAIM_ENDED, "task.reassigned": CLAIM_ENDED, "task.edited": CLAIM_ENDED,
    "task.resumed": RESUMED, "task.answered": RESUMED, "task.uncancelled": RESUMED, "task.offer_ended": OFFER_ENDED,
}  # fmt: skip
# Of two events with one change of state, the later has in its payload the state before both.
STATE_BEFORE = "state_before"


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
    name = names.event_name(event.kind, facts.agent_type)
    if event.kind == EMITTED:  # a person has no row of an agent
        name = names.event_name(event.kind, payload.get("agent_type") or facts.agent_type, payload.get("name"))
    found = [_message(event, facts, event.id, name, payload)]
    if short_names and event.kind == "task.dead_lettered":
        found.append(_message(event, facts, f"{event.id}-short", f"evt.task.dead.{SCHEMA_VERSION}", payload))
    if facts.letter is not None:
        whole = payload | row_fields(msgspec.to_builtins(facts.letter))
        name = names.dead_letter_name(facts.task.type if facts.task else "unknown")
        found.append(_message(event, facts, f"{event.id}-dlq", name, whole))
    if facts.task is not None and made_ready(event):
        found.append(execute(facts, facts.task, event.version or 0, reason_of(event), event=event))
    if event.kind == "message.sent":
        found += _mail(event, facts)
    return found


def _mail(event: Event, facts: Facts) -> Iterator[Message]:
    """Mail for the recipients' mailboxes; a command to a type of agent goes to one worker of that type."""
    details = event.details
    address, action = str(details.get("to")), details.get("action")
    if action is not None and address.startswith(TYPE):
        payload = row_fields({**details, "from": event.agent})
        name = names.agent_command_name(address.removeprefix(TYPE), action)
        yield _message(event, facts, f"{event.id}-cmd", name, payload)
        return
    for mail in facts.mail:
        payload = row_fields(
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


def reason_of(event: Event) -> str:
    if event.kind == "task.failed" and event.details.get("given_back"):
        return GIVEN_BACK
    return WHY_READY.get(event.kind, NEW_TASK)


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
    cause = event.details.get("caused_by") or event.causation_id
    body = _encoded(
        id, name, payload, trace=trace_of(facts.task, event), cause=cause, time=event.time,
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
    renamed = fields.RENAMED.get(kind, _UNCHANGED)
    payload = {renamed.get(name, name): value for name, value in fields.told(kind, details).items()} if details else {}
    payload |= {
        "task_id": event.task,
        "key": event.key,
        "type": task.type if task is not None else None,
        "previous_state": payload.pop(STATE_BEFORE, event.previous_state),
        "new_state": event.new_state,
        "generation": event.generation,
        "agent_id": event.agent,
        "session_id": event.session,
        "attempt": details.get("attempt", task.attempts if task is not None else None),
        "level": event.level,
        "message": event.message,
    }
    if event.user is not None:
        payload["user"] = event.user
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

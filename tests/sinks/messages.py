"""What the messages of a log must be: valid by the shipped schemas, with the fields of the table, without secrets."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema_rs
import msgspec

from tenure.core.events import Event
from tenure.core.records import DeadLetter, Task
from tenure.sinks import envelope, fields, names
from tenure.sinks.port import Message
from tenure.testing.factories import Scene


@cache
def validator(family: str) -> jsonschema_rs.Validator:
    text = files("tenure.sinks").joinpath("schemas", f"{family}.{names.VERSION}.json").read_text()
    return jsonschema_rs.validator_for(json.loads(text), validate_formats=True)


def errors_of(message: Message) -> list[str]:
    body = msgspec.json.decode(message.body)
    return [f"{message.name}: {error.message}" for error in validator(names.family_of(message.name)).iter_errors(body)]


def unknown_fields(event: Event, message: Message) -> list[str]:
    """Fields of a payload that the table does not have."""
    rows = f"{fields.IDS},{fields.MORE},{fields.EVENTS[event.kind]}"
    known = {field.name for field in fields.fields_of(rows)}
    return [f"{event.kind}: {name}" for name in msgspec.json.decode(message.body)["payload"] if name not in known]


def raw_instants(value: Any, where: str) -> list[str]:
    """Microseconds of our time, which no reader should have to know as such."""
    if isinstance(value, dict):
        return [fault for name, part in value.items() for fault in raw_instants(part, f"{where}.{name}")]
    if isinstance(value, list | tuple):
        return [fault for part in value for fault in raw_instants(part, where)]
    return [f"{where}: {value}"] if type(value) is int and 10**15 < value < 4 * 10**15 else []


def faults_of(events: Iterable[Event], tasks: dict[str, Task], letters: dict[str, DeadLetter]) -> list[str]:
    found = []
    for event in events:
        letter = letters.get(event.task or "") if event.kind == "task.dead_lettered" else None
        facts = envelope.Facts(
            tenant="local", task=tasks.get(event.task or ""), agent_type="code~er", letter=letter, cost=1
        )
        messages = envelope.messages_of(event, facts, short_names=True)
        found += [error for message in messages for error in errors_of(message)]
        found += unknown_fields(event, messages[0])
        found += raw_instants(fields.told(event.kind, event.details), event.kind)
        if envelope.made_ready(event) and event.kind not in envelope.WHY_READY:
            found.append(f"{event.kind} makes a task ready, and nothing says why")
    return found


def faults_in(scene: Scene) -> list[str]:
    """Of every message that the log of a scene becomes."""
    events = scene.events()
    with scene.store.begin("local", write=False) as tx:
        tasks = {task.id: task for task in tx.find(Task, {})}
        letters = {letter.task: letter for letter in tx.find(DeadLetter, {})}
    return faults_of(events, tasks, letters)

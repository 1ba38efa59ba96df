"""The shipped JSON Schemas of messages, and their reference page, from the table of fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tenure.core.events import KINDS
from tenure.sinks import envelope, fields, names
from tests.docs.tables import table

TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "instant": {"type": "string", "format": "date-time"},
    "texts": {"type": "array", "items": {"type": "string"}},
    "object": {"type": "object"},
    "instants": {"type": "object", "additionalProperties": {"type": "string", "format": "date-time"}},
    "any": {},
}
CUT = {"properties": {"truncated": {"const": True}}, "required": ["truncated"]}


def schema_of(field: fields.Field) -> dict[str, Any]:
    schema = dict(TYPES[field.type])
    if field.may_be_null and "type" in schema:
        schema["type"] = [schema["type"], "null"]
    return schema


def payload(row: str, basis: str | None = None) -> dict[str, Any]:
    """What a cut payload lacks is required of a whole one alone. `basis`: the definition that it adds to."""
    rest = fields.fields_of(row)
    whole = {"required": list(dict.fromkeys(field.name for field in rest if not field.is_optional))}
    schema = {} if basis is None else {"$ref": f"#/$defs/{basis}"}
    if rest:
        schema |= {"properties": {field.name: schema_of(field) for field in rest}, "anyOf": [whole, CUT]}
    return schema


def of_every_event() -> dict[str, Any]:
    ids = fields.fields_of(fields.IDS)
    return {
        "type": "object",
        "properties": {field.name: schema_of(field) for field in (*ids, *fields.fields_of(fields.MORE))},
        "required": [field.name for field in ids],
    }


def family(name: str, title: str, kinds: dict[str, str], definitions: dict[str, Any]) -> str:
    """`kinds`: a pattern of the envelope's kind → the name of the payload's definition."""
    text, nullable = {"type": "string"}, {"type": ["string", "null"]}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:tenure:schemas:{name}.{names.VERSION}",
        "title": title,
        "type": "object",
        "properties": {
            "schema_version": {"const": names.VERSION},
            "message_id": {"type": "string", "minLength": 1},
            "trace_id": {"type": "string", "minLength": 1},
            "causation_id": nullable,
            "kind": {"type": "string", "pattern": f"^{name}\\."},
            "emitted_at": {"type": "string", "format": "date-time"},
            "tenant": text,
            "project": text,
            "sequence": {"type": "integer", "minimum": 0},
            "payload": {"type": "object"},
        },
        "allOf": [
            {
                "if": {"properties": {"kind": {"pattern": f"^{kind}$"}}},
                "then": {"properties": {"payload": {"$ref": f"#/$defs/{definition}"}}},
            }
            for kind, definition in kinds.items()
        ],
        "$defs": definitions,
    }
    schema["required"] = list(schema["properties"])
    return json.dumps(schema, indent=1) + "\n"


def events() -> str:
    patterns = {}
    of_agents = "|".join(kind.removeprefix("agent.") for kind in KINDS if kind.startswith("agent."))
    for kind in KINDS:
        noun, _, verb = kind.partition(".")
        of_type = "(?:[A-Za-z0-9_~-]+\\.)?" if noun == "agent" else ""
        verb = f"(?!(?:{of_agents})$)[a-z][a-z0-9_]*" if kind == envelope.EMITTED else verb
        patterns[f"evt\\.{noun}\\.{of_type}{verb}"] = kind
    patterns["evt\\.task\\.dead"] = "task.dead_lettered"
    rows = {kind: payload(fields.EVENTS[kind], "event") for kind in KINDS}
    return family("evt", "Something has happened", patterns, {"event": of_every_event(), **rows})


def commands() -> str:
    execute = payload(fields.EXECUTE)
    execute["properties"]["reason"] = {"enum": list(envelope.REASONS)}
    patterns = {names.EXECUTE.removesuffix(f".{names.VERSION}").replace(".", "\\."): "task.execute"}
    patterns["cmd\\.agent\\.[^.]+\\.[^.]+"] = "agent"
    rows = {"task.execute": execute, "agent": payload(fields.AGENT_COMMAND)}
    return family("cmd", "Something should be done", patterns, rows)


def dead_letters() -> str:
    row = f"{fields.EVENTS['task.dead_lettered']},{fields.DEAD_LETTER}"
    rows = {"event": of_every_event(), "letter": payload(row, "event")}
    return family("dlq", "A dead letter in full", {"dlq\\.task\\.[^.]+": "letter"}, rows)


FILES: dict[str, Callable[[], str]] = {
    f"../../src/tenure/sinks/schemas/{name}.{names.VERSION}.json": make
    for name, make in (("evt", events), ("cmd", commands), ("dlq", dead_letters))
}


def page() -> str:
    rows = [(f"`{kind}`", _row(fields.EVENTS[kind])) for kind in KINDS]
    return (
        "# Messages\n\n"
        "Every message has the same envelope. `message_id` is the same on every redelivery; `sequence` is that of the\n"
        "event in the log, or 0. The package ships JSON Schemas in its folder `sinks/schemas/`: `evt.v1.json`,\n"
        "`cmd.v1.json`, `dlq.v1.json`. Version v1 may gain fields, so a reader ignores those it does not know.\n\n"
        "## Payload of every event\n\n"
        f"{_row(fields.IDS)}, {_row(fields.MORE)}.\n\n"
        f"Over {envelope.LONGEST // 1024} KiB the payload has the first nine of them and `truncated`.\n\n"
        "## Further fields, by kind\n\n"
        "`?` after a name: it may be absent. `?` after a type: it may be null. An `instant` is RFC 3339 text in UTC.\n"
        "`agent_id` and `user` acted; `holder` is the agent whose claim it is, where that is another: `generation`\n"
        "and `session_id` are those of the claim. `by` acted where `agent_id` is the agent that the event is about.\n"
        "Amounts of budgets are in billionths of their currency, `cost` is in dollars.\n\n"
        + table(("kind", "fields"), rows)
        + "\n## Commands and dead letters\n\n"
        f"`{names.EXECUTE}`: {_row(fields.EXECUTE)}. The reason is one of "
        f"{', '.join(f'`{reason}`' for reason in envelope.REASONS)}.\n\n"
        f"`cmd.agent.TYPE.ACTION.{names.VERSION}` and, to one agent, `cmd.agent.instance.ID.{names.VERSION}`: "
        f"{_row(fields.AGENT_COMMAND)}.\n\n"
        f"`dlq.task.TYPE.{names.VERSION}`: the payload of `task.dead_lettered`, and {_row(fields.DEAD_LETTER)}.\n"
    )


def _row(row: str) -> str:
    return ", ".join(
        f"`{field.name}`{'?' if field.is_optional else ''} {field.type}{'?' if field.may_be_null else ''}"
        for field in fields.fields_of(row)
    )

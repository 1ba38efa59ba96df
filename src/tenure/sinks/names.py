"""Names of messages: subjects of NATS, routing keys of RabbitMQ, streams of Redis. Always `FAMILY.REST.VERSION`.

Families are `evt` (something has happened), `cmd` (something should be done) and `dlq` (a dead letter in full).
"""

from __future__ import annotations

import re

from tenure.core import team

VERSION = "v1"
EVENTS, COMMANDS, DEAD_LETTERS = FAMILIES = ("evt", "cmd", "dlq")
INSTANCE = team.INSTANCE
EXECUTE = f"{COMMANDS}.task.execute.{VERSION}"

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def safe(part: str) -> str:
    """A text as one part of a name: other characters than letters, digits, `_` and `-` become `~` and their hex."""
    return _UNSAFE.sub(lambda found: "".join(f"~{byte:02x}" for byte in found[0].encode()), part)


def event_name(kind: str, agent_type: str | None = None, emitted: str | None = None) -> str:
    """`evt.task.completed.v1`; of agents `evt.agent.TYPE.EVENT.v1`, where an emitted one has its own name."""
    noun, _, verb = kind.partition(".")
    if noun == "agent" and agent_type is not None:
        return f"{EVENTS}.agent.{safe(agent_type)}.{emitted or verb}.{VERSION}"
    return f"{EVENTS}.{kind}.{VERSION}"


def dead_letter_name(task_type: str) -> str:
    return f"{DEAD_LETTERS}.task.{safe(task_type)}.{VERSION}"


def agent_command_name(agent_type: str, action: str) -> str:
    return f"{COMMANDS}.agent.{safe(agent_type)}.{safe(action)}.{VERSION}"


def mailbox_name(agent: str) -> str:
    return f"{COMMANDS}.agent.{INSTANCE}.{safe(agent)}.{VERSION}"


def queue_of(name: str) -> str:
    """Where a message waits, in a broker with queues: `evt`, `dlq`, `cmd.task.execute`, `cmd.agent.TYPE`,
    `cmd.agent.instance.ID`."""
    parts = name.split(".")
    if parts[0] != COMMANDS:
        return parts[0]
    return ".".join(parts[:4] if parts[1:3] == ["agent", INSTANCE] else parts[:3])


def family_of(name: str) -> str:
    return name.partition(".")[0]

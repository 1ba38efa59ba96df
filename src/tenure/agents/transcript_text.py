"""Transcripts for people: an agent's messages and tool calls, from the output of each CLI.

A line of a transcript has the agent's own output, which most CLIs print as one JSON event a line. The table below has
the events with text for a reader; all others are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from tenure.agents.runner.agent_output import event_of
from tenure.core import limits

MOST_ARGUMENT = limits.TOOL_CALL_TEXT
Event = Mapping[str, Any]


def readable(line: str) -> str | None:
    """The text for a reader of one line of a transcript file; None where it has none."""
    try:
        entry = msgspec.json.decode(line)
        origin, text = entry["from"], str(entry["text"]).rstrip("\n")
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError):
        return None
    return of_output(text) if origin == "agent" else f"[{origin}] {text}"


def of_output(text: str) -> str | None:
    """The same of a line that an agent printed."""
    event = event_of(text)
    if event is None:
        return text
    reader = _READERS.get(str(event.get("type")))
    try:
        found = [part for part in reader(event) if part] if reader else []
    except (AttributeError, TypeError):  # an event of another shape than the CLI's versions that we know
        return None
    return "\n".join(found) or None


def _call(tool: Any, given: Any) -> str:
    """A tool call in one line, with its main argument."""
    given = given if isinstance(given, Mapping) else {}
    first = next(
        (given[name] for name in ("command", "file_path", "path", "pattern", "prompt") if name in given), given
    )
    text = first if isinstance(first, str) else msgspec.json.encode(first).decode()
    return f"→ {tool}: {' '.join(text.split())[:MOST_ARGUMENT]}"


def _claude(event: Event) -> Iterator[str]:
    for part in event["message"].get("content") or ():
        if part.get("type") == "text":
            yield str(part.get("text") or "")
        elif part.get("type") == "tool_use":
            yield _call(part.get("name"), part.get("input"))


def _codex(event: Event) -> Iterator[str]:
    item = event["item"]
    if item.get("type") == "agent_message":
        yield str(item.get("text") or "")
    elif item.get("type") == "command_execution":
        yield _call("command", item)


def _gemini(event: Event) -> Iterator[str]:
    if event.get("role") == "assistant":
        yield str(event.get("content") or "")


def _tool_use(event: Event) -> Iterator[str]:
    """Of Gemini CLI, or of OpenCode, which has a `part`."""
    part = event.get("part")
    if part is None:
        yield _call(event.get("tool_name"), event.get("parameters"))
    else:
        yield _call(part.get("tool"), part.get("state", {}).get("input"))


def _opencode(event: Event) -> Iterator[str]:
    yield str(event["part"].get("text") or "")


def _copilot(event: Event) -> Iterator[str]:
    data = event["data"]
    yield str(data.get("content") or "")
    for request in data.get("toolRequests") or ():
        yield _call(request.get("name"), request.get("arguments"))


_READERS: dict[str, Callable[[Event], Iterator[str]]] = {
    "assistant": _claude,
    "item.completed": _codex,
    "message": _gemini,
    "tool_use": _tool_use,
    "text": _opencode,
    "assistant.message": _copilot,
}

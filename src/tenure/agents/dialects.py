"""Translates between the hook payloads of each agent and one internal form.

Payloads differ in the names of events and fields; answers differ in the place of a text, a denial or a continuation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from tenure.core.safe_text import neutral

START, BEFORE_EDIT, AFTER_TOOL, COMPACTING, STOP, END = "start", "before", "after", "compacting", "stop", "end"

EVENTS = {
    "SessionStart": START, "sessionStart": START,
    "PreToolUse": BEFORE_EDIT, "BeforeTool": BEFORE_EDIT, "preToolUse": BEFORE_EDIT,
    "PostToolUse": AFTER_TOOL, "AfterTool": AFTER_TOOL, "postToolUse": AFTER_TOOL,
    "PreCompact": COMPACTING, "preCompact": COMPACTING,  # not Gemini CLI's PreCompress: it fires at every turn
    "Stop": STOP, "AfterAgent": STOP, "agentStop": STOP,
    "SessionEnd": END, "sessionEnd": END,
}  # fmt: skip

# Tools that change files, under the names of all agents.
EDITING = frozenset(
    {
        "Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "write_file", "replace", "edit", "write", "create",
        "Create", "patch", "multiedit", "str_replace", "str_replace_editor",
    }
)  # fmt: skip
_PATHS = ("file_path", "notebook_path", "path", "filePath", "absolute_path")
_PATCHES = ("command", "input", "patch", "patchText", "patch_text")
_PATCH = b"*** Begin Patch"
_PATCHED = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


class _Payload(msgspec.Struct, rename=None):
    """The fields in use, in snake case and in camel case; others, such as a tool's output, are not decoded."""

    hook_event_name: str = ""
    session_id: str = ""
    sessionId: str = ""  # noqa: N815 as in the payload
    cwd: str = ""
    source: str = ""
    reason: str = ""
    tool_name: str = ""
    toolName: str = ""  # noqa: N815
    tool_use_id: str = ""
    tool_input: msgspec.Raw = msgspec.Raw(b"null")
    toolArgs: msgspec.Raw = msgspec.Raw(b"null")  # noqa: N815
    stop_hook_active: bool = False
    transcript_path: str = ""
    transcriptPath: str = ""  # noqa: N815
    timestamp: Any = None


class Event(NamedTuple):
    kind: str | None  # START … END; None: an event that is ignored
    name: str  # the agent's name of the event
    session: str  # the agent's session id
    folder: str
    tool: str
    id: str  # of the tool call, or the event's instant; the same for all settings files that fire for it
    label: str  # distinguishes two events that have no id
    input: bytes
    is_again: bool  # the agent continues because a hook asked it to
    transcript: str = ""  # the path of the agent's own transcript


def read(payload: bytes, name: str | None = None) -> Event:
    """The event of a payload; `name` is of the command line, for agents whose payload lacks it."""
    hook_input = msgspec.json.decode(payload or b"{}", type=_Payload)
    event = name or hook_input.hook_event_name
    given = hook_input.tool_input if bytes(hook_input.tool_input) != b"null" else hook_input.toolArgs
    return Event(
        EVENTS.get(event),
        event,
        hook_input.session_id or hook_input.sessionId,
        hook_input.cwd,
        hook_input.tool_name or hook_input.toolName,
        hook_input.tool_use_id or _instant(hook_input.timestamp),
        hook_input.source or hook_input.reason,
        bytes(given),
        hook_input.stop_hook_active,
        hook_input.transcript_path or hook_input.transcriptPath,
    )


def _instant(timestamp: object) -> str:
    """Milliseconds from a number or a text: Copilot sends its own hooks a number, and those of Claude Code a text."""
    if isinstance(timestamp, str):
        from datetime import datetime

        try:
            return str(round(datetime.fromisoformat(timestamp).timestamp() * 1000))
        except ValueError:
            return timestamp
    return str(timestamp or "")


def edited_files(event: Event) -> list[str]:
    """The paths that the tool is about to change, as the agent gives them."""
    if event.tool not in EDITING and _PATCH not in event.input:
        return []
    given = msgspec.json.decode(event.input)
    if isinstance(given, str):
        return _patched(given)
    if not isinstance(given, dict):
        return []
    named = [given[key] for key in _PATHS if isinstance(given.get(key), str) and event.tool in EDITING]
    patched = [path for key in _PATCHES if isinstance(given.get(key), str) for path in _patched(given[key])]
    return [path for path in dict.fromkeys((*named, *patched)) if path]


def _patched(patch: str) -> list[str]:
    lines = (line.strip() for line in patch.splitlines())
    return [line[len(mark) :].strip() for line in lines for mark in _PATCHED if line.startswith(mark)]


# --- answers ------------------------------------------------------------------------------------------------


def text_for(agent: str, event: Event, text: str) -> dict[str, Any]:
    """The text reaches the model."""
    text = neutral(text)
    if agent == "copilot":  # it also fires Claude Code's hooks, and reads their denials but no text
        return {"additionalContext": text}
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


def deny(agent: str, event: Event, why: str) -> dict[str, Any]:
    """The tool does not run; the model gets the reason."""
    why = neutral(why)
    if agent == "gemini":
        return {"decision": "deny", "reason": why}
    denied = {"permissionDecision": "deny", "permissionDecisionReason": why}
    if agent == "copilot" and event.name[:1].islower():
        return denied
    return {"hookSpecificOutput": {"hookEventName": event.name, **denied}}


def go_on(agent: str, why: str) -> dict[str, Any]:
    """The agent does not stop, but continues with this prompt."""
    return {"decision": "deny" if agent == "gemini" else "block", "reason": neutral(why)}

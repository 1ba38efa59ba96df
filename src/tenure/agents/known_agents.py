"""The CLI agents that are recognised by the variables that they set for their commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Known(NamedTuple):
    type: str
    title: str
    markers: tuple[str, ...]  # variables that are set inside this agent
    session: str | None  # the variable with the agent's session id
    programs: tuple[str, ...]  # names of its process


KNOWN: dict[str, Known] = {
    agent.type: agent
    for agent in (
        Known("claude", "Claude Code", ("CLAUDECODE",), "CLAUDE_CODE_SESSION_ID", ("claude",)),
        Known("codex", "Codex", ("CODEX_SESSION_ID", "CODEX_SANDBOX"), "CODEX_SESSION_ID", ("codex",)),
        Known("gemini", "Gemini CLI", ("GEMINI_CLI",), None, ("gemini",)),
        Known("opencode", "OpenCode", ("OPENCODE",), None, ("opencode",)),
        Known("copilot", "Copilot CLI", ("COPILOT_AGENT_SESSION_ID",), "COPILOT_AGENT_SESSION_ID", ("copilot",)),
    )
}


def marked(environ: Mapping[str, str]) -> list[Known]:
    """The agents whose marker is set; several where one agent started another."""
    return [agent for agent in KNOWN.values() if any(environ.get(marker) for marker in agent.markers)]

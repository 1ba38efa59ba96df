"""Claude Code: CLAUDE.md, a skill, `.mcp.json`, hooks in `.claude/settings.json`."""

from __future__ import annotations

import os
import re
from typing import Any

from tenure.agents.recipes.json_pieces import HookGroups, McpEntry
from tenure.agents.recipes.pieces import Piece
from tenure.agents.recipes.recipe import TIMEOUT, Gate, Place, Recipe, own_instructions, settings_of, skill

_IMPORT = re.compile(r"^[ \t]*(?:[-*] )?@(?:\./)?AGENTS\.md\b", re.MULTILINE)
EDITS = "Edit|MultiEdit|Write|NotebookEdit"


def pieces(place: Place, chosen: frozenset[str]) -> list[Piece]:
    if place.is_global:
        # The user's MCP servers stand in a file that Claude Code rewrites while it runs: that is left to its own verb.
        return [skill(place, _folder(place)), hooks(place)]
    return [
        *own_instructions(place, "CLAUDE.md", "@AGENTS.md", lambda text: _IMPORT.search(text) is not None),
        skill(place, ".claude"),
        mcp(place),
        hooks(place),
    ]


def _folder(place: Place) -> str:
    return (place.environ.get("CLAUDE_CONFIG_DIR") or place.user(".claude")) if place.is_global else ".claude"


def mcp(place: Place) -> McpEntry:
    """Copilot CLI reads it, too."""
    command, *words = place.command
    # Without alwaysLoad the first request goes out before the server has answered, with no word of its tools.
    value = {"type": "stdio", "command": command, "args": [*words, "mcp"], "alwaysLoad": True}
    return McpEntry(place.path(".mcp.json"), ("mcpServers", "tenure"), value)


def hooks(place: Place) -> HookGroups:
    """Copilot CLI fires them, too: so they do not say whose they are, and the hook finds out by its environment."""
    run: dict[str, Any] = {"type": "command", "command": place.hook(), "timeout": TIMEOUT}
    groups: dict[str, dict[str, Any]] = {
        "SessionStart": {"hooks": [run]},
        "PreToolUse": {"matcher": EDITS, "hooks": [run]},
        "PostToolUse": {"matcher": "*", "hooks": [run]},
        "Stop": {"hooks": [run]},
        "SessionEnd": {"hooks": [run]},
    }
    return HookGroups(place.path(_folder(place), "settings.json"), groups)


def gates(place: Place) -> list[Gate]:
    if place.is_global:
        told = " ".join([*place.command, "mcp"])
        return [Gate(f"for the MCP tools in every project: `claude mcp add --scope user tenure -- {told}`", None)]
    folder = place.environ.get("CLAUDE_CONFIG_DIR")
    user = settings_of(os.path.join(folder, ".claude.json") if folder else place.user(".claude.json"))
    projects = user.get("projects")
    project = projects.get(os.path.realpath(place.root), {}) if isinstance(projects, dict) else {}
    local = settings_of(place.path(".claude", "settings.local.json"))
    is_used = any(
        "tenure" in (said.get("enabledMcpjsonServers") or ()) or said.get("enableAllProjectMcpServers")
        for said in (project, local)
    )
    return [
        Gate("start `claude` here and trust the folder", bool(project.get("hasTrustDialogAccepted"))),
        Gate("say yes when it asks about the MCP server `tenure`", is_used),
    ]


RECIPE = Recipe("claude", pieces, gates, (".claude", "CLAUDE.md"), (".claude",), linked=("copilot",))

"""Claude Code: CLAUDE.md, a skill, `.mcp.json`, hooks in `.claude/settings.json`."""

from __future__ import annotations

import os
import re
from typing import Any

from tenure.agents.recipes.json_pieces import HookGroups, McpEntry
from tenure.agents.recipes.pieces import Piece
from tenure.agents.recipes.recipe import (
    TIMEOUT,
    Gate,
    Recipe,
    SetupTarget,
    hook_groups,
    own_instructions,
    settings_of,
    skill,
)

_IMPORT = re.compile(r"^[ \t]*(?:[-*] )?@(?:\./)?AGENTS\.md\b", re.MULTILINE)
EDITS = "Edit|MultiEdit|Write|NotebookEdit"


def pieces(target: SetupTarget, chosen: frozenset[str]) -> list[Piece]:
    if target.is_global:
        # The user's MCP servers are in a file that Claude Code rewrites while it runs: `claude mcp add` changes it.
        return [skill(target, _folder(target)), hooks(target)]
    return [
        *own_instructions(target, "CLAUDE.md", "@AGENTS.md", lambda text: _IMPORT.search(text) is not None),
        skill(target, ".claude"),
        mcp(target),
        hooks(target),
    ]


def _folder(target: SetupTarget) -> str:
    return (target.environ.get("CLAUDE_CONFIG_DIR") or target.user(".claude")) if target.is_global else ".claude"


def mcp(target: SetupTarget) -> McpEntry:
    """Copilot CLI reads it, too."""
    # Without alwaysLoad the first request is sent before the server has answered, without its tools.
    value = {"type": "stdio", **target.mcp, "alwaysLoad": True}
    return McpEntry(target.path(".mcp.json"), ("mcpServers", "tenure"), value)


def hooks(target: SetupTarget) -> HookGroups:
    """Copilot CLI runs them too: so they do not name the agent, and the hook recognises it by its environment."""
    run: dict[str, Any] = {"type": "command", "command": target.hook(), "timeout": TIMEOUT}
    events = {"SessionStart": "", "PreToolUse": EDITS, "PostToolUse": "*", "Stop": "", "SessionEnd": ""}
    return HookGroups(target.path(_folder(target), "settings.json"), hook_groups(run, events))


def gates(target: SetupTarget) -> list[Gate]:
    if target.is_global:
        command = " ".join([*target.command, "mcp"])
        return [Gate(f"for the MCP tools in every project: `claude mcp add --scope user tenure -- {command}`", None)]
    folder = target.environ.get("CLAUDE_CONFIG_DIR")
    user = settings_of(os.path.join(folder, ".claude.json") if folder else target.user(".claude.json"))
    projects = user.get("projects")
    project = projects.get(os.path.realpath(target.root), {}) if isinstance(projects, dict) else {}
    local = settings_of(target.path(".claude", "settings.local.json"))
    is_used = any(
        "tenure" in (settings.get("enabledMcpjsonServers") or ()) or settings.get("enableAllProjectMcpServers")
        for settings in (project, local)
    )
    return [
        Gate("start `claude` here and trust the folder", bool(project.get("hasTrustDialogAccepted"))),
        Gate("say yes when it asks about the MCP server `tenure`", is_used),
    ]


RECIPE = Recipe("claude", pieces, gates, (".claude", "CLAUDE.md"), (".claude",), linked=("copilot",))

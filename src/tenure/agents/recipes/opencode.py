"""OpenCode: AGENTS.md, a skill, an MCP entry in `opencode.json`, and a plugin in place of hooks."""

from __future__ import annotations

import json
import os

from tenure.agents.recipes.json_pieces import McpEntry
from tenure.agents.recipes.pieces import HOOKS, Piece
from tenure.agents.recipes.recipe import Gate, Recipe, SetupTarget, instructions, skill, text
from tenure.agents.recipes.sections import WholeFile

# OpenCode adds it to settings that lack it, at its first start: a worktree would have a change that nobody made.
SCHEMA = (("$schema", "https://opencode.ai/config.json"),)


def pieces(target: SetupTarget, chosen: frozenset[str]) -> list[Piece]:
    own: list[Piece] = [skill(target, ".agents"), _mcp(target), _plugin(target)]
    return own if target.is_global else [instructions(target), *own]


def _user_folder(target: SetupTarget) -> str:
    return os.path.join(target.environ.get("XDG_CONFIG_HOME") or target.user(".config"), "opencode")


def _mcp(target: SetupTarget) -> McpEntry:
    folder = _user_folder(target) if target.is_global else target.root
    names = [os.path.join(folder, name) for name in ("opencode.json", "opencode.jsonc")]
    path = next((p for p in names if os.path.lexists(p)), names[0])
    value = {"type": "local", "command": [*target.command, "mcp"], "enabled": True}
    return McpEntry(path, ("mcp", "tenure"), value, SCHEMA)


def _plugin(target: SetupTarget) -> WholeFile:
    folder = _user_folder(target) if target.is_global else target.path(".opencode")
    command = json.dumps([*target.command, "hook", "--from", "opencode"])
    body = text("plugin.ts").replace('["tenure", "hook", "--from", "opencode"]', command)
    return WholeFile(os.path.join(folder, "plugin", "tenure.ts"), body, HOOKS, "// {}")


def gates(target: SetupTarget) -> list[Gate]:
    return []


RECIPE = Recipe("opencode", pieces, gates, (".opencode", "opencode.json", "opencode.jsonc"), (".config/opencode",))

"""OpenCode: AGENTS.md, a skill, an MCP entry in `opencode.json`, and a plugin, which is what it has for hooks."""

from __future__ import annotations

import json
import os

from tenure.agents.recipes.json_pieces import McpEntry
from tenure.agents.recipes.pieces import HOOKS, Piece
from tenure.agents.recipes.recipe import Gate, Place, Recipe, instructions, skill, text
from tenure.agents.recipes.sections import WholeFile


def pieces(place: Place, chosen: frozenset[str]) -> list[Piece]:
    own: list[Piece] = [skill(place, ".agents"), _mcp(place), _plugin(place)]
    return own if place.is_global else [instructions(place), *own]


def _user_folder(place: Place) -> str:
    return os.path.join(place.environ.get("XDG_CONFIG_HOME") or place.user(".config"), "opencode")


def _mcp(place: Place) -> McpEntry:
    folder = _user_folder(place) if place.is_global else place.root
    names = [os.path.join(folder, name) for name in ("opencode.json", "opencode.jsonc")]
    path = next((p for p in names if os.path.lexists(p)), names[0])
    value = {"type": "local", "command": [*place.command, "mcp"], "enabled": True}
    return McpEntry(path, ("mcp", "tenure"), value)


def _plugin(place: Place) -> WholeFile:
    folder = _user_folder(place) if place.is_global else place.path(".opencode")
    command = json.dumps([*place.command, "hook", "--from", "opencode"])
    body = text("plugin.ts").replace('["tenure", "hook", "--from", "opencode"]', command)
    return WholeFile(os.path.join(folder, "plugin", "tenure.ts"), body, HOOKS, "// {}")


def gates(place: Place) -> list[Gate]:
    return []


RECIPE = Recipe("opencode", pieces, gates, (".opencode", "opencode.json", "opencode.jsonc"), (".config/opencode",))

"""Copilot CLI: AGENTS.md, a skill, `.mcp.json`, and hooks.

It fires Claude Code's hooks as well as its own. So it gets a file of its own only where Claude Code is not set up.
"""

from __future__ import annotations

import os

from tenure.agents.recipes import claude
from tenure.agents.recipes.json_pieces import HookGroups, McpEntry
from tenure.agents.recipes.pieces import Piece
from tenure.agents.recipes.recipe import TIMEOUT, Gate, Place, Recipe, instructions, is_below, settings_of, skill

EVENTS = ("sessionStart", "preToolUse", "postToolUse", "agentStop", "preCompact", "sessionEnd")


def pieces(place: Place, chosen: frozenset[str]) -> list[Piece]:
    is_served = "claude" in chosen
    served: list[Piece] = [claude.hooks(place)] if is_served else []
    own: list[Piece] = [skill(place, ".agents"), *served, _hooks(place, is_wanted=not is_served)]
    if place.is_global:
        return [*own, _user_mcp(place)]
    return [instructions(place), *own, claude.mcp(place)]


def _hooks(place: Place, *, is_wanted: bool) -> HookGroups:
    # Its payloads do not name the event; so the command does.
    groups = {
        event: {"type": "command", "bash": place.hook(event, "--from", "copilot"), "timeoutSec": TIMEOUT}
        for event in EVENTS
    }
    folder = ".copilot" if place.is_global else ".github"
    return HookGroups(place.path(folder, "hooks", "tenure.json"), groups, (("version", 1),), is_wanted=is_wanted)


def _user_mcp(place: Place) -> McpEntry:
    command, *words = place.command
    value = {"type": "local", "command": command, "args": [*words, "mcp"], "tools": ["*"]}
    return McpEntry(place.user(".copilot", "mcp-config.json"), ("mcpServers", "tenure"), value)


def gates(place: Place) -> list[Gate]:
    if place.is_global:
        return []
    folders = settings_of(place.user(".copilot", "config.json")).get("trusted_folders")
    trusted = is_below(place.root, folders if isinstance(folders, list) else [])
    return [Gate("start `copilot` here and trust the folder: until then MCP and hooks are off", trusted)]


RECIPE = Recipe(
    "copilot", pieces, gates, (os.path.join(".github", "hooks"), os.path.join(".github", "copilot-instructions.md")),
    (".copilot",),
)  # fmt: skip

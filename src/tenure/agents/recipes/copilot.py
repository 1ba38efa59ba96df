"""Copilot CLI: AGENTS.md, a skill, `.mcp.json`, and hooks.

It runs Claude Code's hooks as well as its own. So it gets its own file only where Claude Code is not set up.
"""

from __future__ import annotations

import os

from tenure.agents.recipes import claude
from tenure.agents.recipes.json_pieces import HookGroups, McpEntry
from tenure.agents.recipes.pieces import Piece
from tenure.agents.recipes.recipe import TIMEOUT, Gate, Recipe, SetupTarget, instructions, is_below, settings_of, skill

EVENTS = ("sessionStart", "preToolUse", "postToolUse", "agentStop", "preCompact", "sessionEnd")


def pieces(target: SetupTarget, chosen: frozenset[str]) -> list[Piece]:
    is_served = "claude" in chosen
    served: list[Piece] = [claude.hooks(target)] if is_served else []
    own: list[Piece] = [skill(target, ".agents"), *served, _hooks(target, is_wanted=not is_served)]
    if target.is_global:
        return [*own, _user_mcp(target)]
    return [instructions(target), *own, claude.mcp(target)]


def _hooks(target: SetupTarget, *, is_wanted: bool) -> HookGroups:
    # Its payloads do not name the event, so the command does.
    groups = {
        event: {"type": "command", "bash": target.hook(event, "--from", "copilot"), "timeoutSec": TIMEOUT}
        for event in EVENTS
    }
    folder = ".copilot" if target.is_global else ".github"
    return HookGroups(target.path(folder, "hooks", "tenure.json"), groups, (("version", 1),), is_wanted=is_wanted)


def _user_mcp(target: SetupTarget) -> McpEntry:
    value = {"type": "local", **target.mcp, "tools": ["*"]}
    return McpEntry(target.user(".copilot", "mcp-config.json"), ("mcpServers", "tenure"), value)


def gates(target: SetupTarget) -> list[Gate]:
    if target.is_global:
        return []
    folders = settings_of(target.user(".copilot", "config.json")).get("trusted_folders")
    trusted = is_below(target.root, folders if isinstance(folders, list) else [])
    return [Gate("start `copilot` here and trust the folder: until then MCP and hooks are off", trusted)]


RECIPE = Recipe(
    "copilot",
    pieces,
    gates,
    (os.path.join(".github", "hooks"), os.path.join(".github", "copilot-instructions.md")),
    (".copilot",),
)

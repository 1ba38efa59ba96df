"""Gemini CLI: the context file that it reads, a skill, and `.gemini/settings.json` for MCP and hooks."""

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
    instructions,
    is_below,
    own_instructions,
    settings_of,
    skill,
)
from tenure.agents.recipes.sections import Section

DEFAULT = "GEMINI.md"
_IMPORT = re.compile(r"^[ \t]*@(?:\./)?AGENTS\.md\b", re.MULTILINE)


def pieces(target: SetupTarget, chosen: frozenset[str]) -> list[Piece]:
    own: list[Piece] = [skill(target, ".agents"), _mcp(target), _hooks(target)]
    return own if target.is_global else [*_instructions(target), *own]


def _instructions(target: SetupTarget) -> list[Piece]:
    names = context_files(target)
    earlier: list[Piece] = [] if DEFAULT in names else [Section(target.path(DEFAULT), None)]
    if "AGENTS.md" in names:
        return [*earlier, instructions(target)]
    own = own_instructions(target, names[0], "@./AGENTS.md", lambda text: _IMPORT.search(text) is not None)
    return [*earlier, *own]


def context_files(target: SetupTarget) -> list[str]:
    """The context files of Gemini CLI: of the project's settings, else of the user's, else GEMINI.md."""
    for path in (target.path(".gemini", "settings.json"), target.user(".gemini", "settings.json")):
        context = settings_of(path).get("context")
        named = context.get("fileName") if isinstance(context, dict) else None
        names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        inside = [n for n in names if isinstance(n, str) and n and os.path.basename(n) == n]
        if inside:
            return inside
    return [DEFAULT]


def _mcp(target: SetupTarget) -> McpEntry:
    return McpEntry(target.path(".gemini", "settings.json"), ("mcpServers", "tenure"), target.mcp)


def _hooks(target: SetupTarget) -> HookGroups:
    run: dict[str, Any] = {
        "name": "tenure",
        "type": "command",
        "command": target.hook("--from", "gemini"),
        "timeout": TIMEOUT * 1000,
    }
    tools = "write_file|replace"
    events = {"SessionStart": "", "BeforeTool": tools, "AfterTool": "*", "AfterAgent": "", "SessionEnd": ""}
    return HookGroups(target.path(".gemini", "settings.json"), hook_groups(run, events))


def gates(target: SetupTarget) -> list[Gate]:
    if target.is_global:
        return []
    trusted = settings_of(target.user(".gemini", "trustedFolders.json"))
    folders = [f for f, word in trusted.items() if word == "TRUST_FOLDER"]
    folders += [os.path.dirname(f) for f, word in trusted.items() if word == "TRUST_PARENT"]
    text = "start `gemini` here and trust the folder: until then MCP and hooks are off"
    return [Gate(text, is_below(target.root, folders))]


RECIPE = Recipe("gemini", pieces, gates, (".gemini", "GEMINI.md"), (".gemini",))

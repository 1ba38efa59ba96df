"""Codex: AGENTS.md, a skill, an MCP table in `.codex/config.toml`, hooks in `.codex/hooks.json`."""

from __future__ import annotations

import os
import subprocess
import tomllib
from typing import Any

from tenure.agents.recipes.json_pieces import HookGroups
from tenure.agents.recipes.pieces import Piece
from tenure.agents.recipes.recipe import TIMEOUT, Gate, Recipe, SetupTarget, hook_groups, instructions, skill
from tenure.agents.recipes.toml_pieces import TomlEntry
from tenure.core.child_environments import ChildKind, for_child


def pieces(target: SetupTarget, chosen: frozenset[str]) -> list[Piece]:
    own: list[Piece] = [skill(target, ".agents"), _mcp(target), _hooks(target)]
    return own if target.is_global else [instructions(target), *own]


def _folder(target: SetupTarget) -> str:
    return _user_folder(target) if target.is_global else target.path(".codex")


def _user_folder(target: SetupTarget) -> str:
    return target.environ.get("CODEX_HOME") or target.user(".codex")


def _mcp(target: SetupTarget) -> TomlEntry:
    return TomlEntry(os.path.join(_folder(target), "config.toml"), ("mcp_servers", "tenure"), target.mcp)


def _hooks(target: SetupTarget) -> HookGroups:
    run: dict[str, Any] = {"type": "command", "command": target.hook("--from", "codex"), "timeout": TIMEOUT}
    # Models without the tool apply_patch call it in the shell.
    events = {"SessionStart": "", "PreToolUse": "apply_patch|Bash", "PostToolUse": "*", "Stop": "", "SessionEnd": ""}
    return HookGroups(os.path.join(_folder(target), "hooks.json"), hook_groups(run, events))


def gates(target: SetupTarget) -> list[Gate]:
    user = _user_settings(target)
    file = os.path.join(_folder(target), "hooks.json")
    state = user.get("hooks", {}).get("state", {}) if isinstance(user.get("hooks"), dict) else {}
    events = ("session_start", "pre_tool_use", "post_tool_use", "stop", "session_end")
    trusted = all(any(str(key).startswith(f"{file}:{event}:") for key in state) for event in events)
    found = [
        Gate("in `codex` open /hooks and trust those of tenure: until then they are skipped silently", trusted),
        Gate(
            "put `tenure` where a login shell finds it, such as /usr/local/bin: Codex runs commands in one",
            _in_login_shell(),
        ),
    ]
    if target.is_global:
        return found
    projects = user.get("projects", {})
    project = projects.get(os.path.realpath(target.root), {}) if isinstance(projects, dict) else {}
    return [Gate("start `codex` here and trust the folder", project.get("trust_level") == "trusted"), *found]


def _user_settings(target: SetupTarget) -> dict[str, Any]:
    try:
        with open(os.path.join(_user_folder(target), "config.toml"), "rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def _in_login_shell() -> bool | None:
    try:
        asked = subprocess.run(
            ["bash", "-lc", "command -v tenure"], capture_output=True, check=False, timeout=5, stdin=subprocess.DEVNULL,
            env=for_child(ChildKind.PROGRAM, os.environ),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.returncode == 0


RECIPE = Recipe("codex", pieces, gates, (".codex",), (".codex",))

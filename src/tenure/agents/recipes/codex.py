"""Codex: AGENTS.md, a skill, an MCP table in `.codex/config.toml`, hooks in `.codex/hooks.json`."""

from __future__ import annotations

import os
import subprocess
import tomllib
from typing import Any

from tenure.agents.recipes.json_pieces import HookGroups
from tenure.agents.recipes.pieces import Piece
from tenure.agents.recipes.recipe import TIMEOUT, Gate, Place, Recipe, instructions, skill
from tenure.agents.recipes.toml_pieces import TomlEntry


def pieces(place: Place, chosen: frozenset[str]) -> list[Piece]:
    own: list[Piece] = [skill(place, ".agents"), _mcp(place), _hooks(place)]
    return own if place.is_global else [instructions(place), *own]


def _folder(place: Place) -> str:
    return _user_folder(place) if place.is_global else place.path(".codex")


def _user_folder(place: Place) -> str:
    return place.environ.get("CODEX_HOME") or place.user(".codex")


def _mcp(place: Place) -> TomlEntry:
    command, *words = place.command
    return TomlEntry(
        os.path.join(_folder(place), "config.toml"), ("mcp_servers", "tenure"),
        {"command": command, "args": [*words, "mcp"]},
    )  # fmt: skip


def _hooks(place: Place) -> HookGroups:
    run: dict[str, Any] = {"type": "command", "command": place.hook("--from", "codex"), "timeout": TIMEOUT}
    # Models without the tool apply_patch call it in the shell.
    groups: dict[str, dict[str, Any]] = {
        "SessionStart": {"hooks": [run]},
        "PreToolUse": {"matcher": "apply_patch|Bash", "hooks": [run]},
        "PostToolUse": {"matcher": "*", "hooks": [run]},
        "Stop": {"hooks": [run]},
        "SessionEnd": {"hooks": [run]},
    }
    return HookGroups(os.path.join(_folder(place), "hooks.json"), groups)


def gates(place: Place) -> list[Gate]:
    user = _user_settings(place)
    file = os.path.join(_folder(place), "hooks.json")
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
    if place.is_global:
        return found
    projects = user.get("projects", {})
    project = projects.get(os.path.realpath(place.root), {}) if isinstance(projects, dict) else {}
    return [Gate("start `codex` here and trust the folder", project.get("trust_level") == "trusted"), *found]


def _user_settings(place: Place) -> dict[str, Any]:
    try:
        with open(os.path.join(_user_folder(place), "config.toml"), "rb") as file:
            return tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def _in_login_shell() -> bool | None:
    try:
        asked = subprocess.run(
            ["bash", "-lc", "command -v tenure"], capture_output=True, check=False, timeout=5, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.returncode == 0


RECIPE = Recipe("codex", pieces, gates, (".codex",), (".codex",))

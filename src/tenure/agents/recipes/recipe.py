"""The type of a recipe: the pieces of one agent, and the confirmations that its user must give."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tenure.agents.recipes.pieces import CannotMerge, Piece
from tenure.agents.recipes.sections import Section, WholeFile, without
from tenure.core import limits

TEXTS = Path(__file__).with_name("texts")
TIMEOUT = limits.HOOK_TIMEOUT


class SetupTarget(NamedTuple):
    """The target of a setup: a repository, or (`is_global`) the user's settings."""

    root: str
    home: str
    is_global: bool
    command: tuple[str, ...]  # that starts tenure: ("tenure",) or (interpreter, "-m", "tenure")
    environ: Mapping[str, str]

    def path(self, *parts: str) -> str:
        return os.path.join(self.root, *parts)

    def user(self, *parts: str) -> str:
        return os.path.join(self.home, *parts)

    @property
    def mcp(self) -> dict[str, Any]:
        """How other tools' settings name the command of the MCP server."""
        command, *words = self.command
        return {"command": command, "args": [*words, "mcp"]}

    def hook(self, *words: str) -> str:
        """The hook's command line for a shell. It succeeds even where tenure is missing or older than its settings."""
        return shlex.join([*self.command, "hook", *words]) + " || true"


class Gate(NamedTuple):
    """What a user must confirm before a file takes effect; `is_open` is None where that is unknown."""

    text: str
    is_open: bool | None


class Recipe(NamedTuple):
    name: str
    pieces: Callable[[SetupTarget, frozenset[str]], list[Piece]]  # for the target and all agents that are set up there
    gates: Callable[[SetupTarget], list[Gate]]
    signs: tuple[str, ...]  # files or folders in a repository that show the agent's use
    user_signs: tuple[str, ...]  # the same in the user's home
    linked: tuple[str, ...] = ()  # agents whose files depend on whether this one is set up


# --- pieces that several recipes share ----------------------------------------------------------------------


def hook_groups(hook: dict[str, Any], matchers: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """One group of hooks per event; `matchers`: event → the tools it is for, empty for events without tools."""
    return {
        event: {**({"matcher": matcher} if matcher else {}), "hooks": [hook]} for event, matcher in matchers.items()
    }


def text(name: str) -> str:
    return (TEXTS / name).read_text(encoding="utf-8")


def instructions(target: SetupTarget) -> Section:
    return Section(target.path("AGENTS.md"), text("section.md"))


def skill(target: SetupTarget, *folder: str) -> WholeFile:
    return WholeFile(target.path(*folder, "skills", "tenure", "SKILL.md"), text("skill.md"))


def own_instructions(target: SetupTarget, name: str, import_line: str, imports: Callable[[str], bool]) -> list[Piece]:
    """For an agent with its own instructions file: that file imports AGENTS.md, or has the section itself.

    A user's file that does not import AGENTS.md gets the section, since an import would add more than that.
    """
    path = target.path(name)
    if os.path.realpath(path) == os.path.realpath(target.path("AGENTS.md")):
        return [instructions(target)]
    theirs = _readable(path)
    if not theirs.strip():
        return [Section(path, import_line + "\n"), instructions(target)]
    if imports(theirs):
        return [Section(path, None), instructions(target)]
    return [Section(path, text("section.md")), Section(target.path("AGENTS.md"), None)]


def _readable(path: str) -> str:
    """The user's part of a file; empty where it cannot be read, which the insertion reports."""
    try:
        with open(path, encoding="utf-8") as file:
            return without(file.read())
    except (OSError, UnicodeDecodeError, CannotMerge):
        return ""


def settings_of(path: str) -> dict[str, Any]:
    """JSON settings of a user, for reading only; empty where there are none."""
    from tenure.agents.recipes.json_text import read_loosely

    try:
        with open(path, encoding="utf-8") as file:
            found = read_loosely(file.read())
    except (OSError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def is_below(root: str, folders: Any) -> bool:
    """Is the target one of these folders, or below one?"""
    real = os.path.realpath(root) + os.sep
    return any(isinstance(f, str) and real.startswith(os.path.realpath(f).rstrip(os.sep) + os.sep) for f in folders)

"""Pieces of a recipe, each a pure function over the text of one file.

A piece reports its state in a text (`state`), inserts itself into a text that lacks it (`steps`), and removes itself
(`take`). It never touches a file, and changes no byte outside of itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

VERSION = "v1"

MISSING = "missing"
ACTIVE = "active"
OUTDATED = "outdated"  # ours, written by another version or with another command to start tenure
EDITED = "edited"  # changed by a user, or not ours
UNREADABLE = "unreadable"

INSTRUCTIONS, SKILL, MCP, HOOKS = "instructions", "skill", "mcp", "hooks"


class CannotMerge(Exception):
    """The file cannot be edited without risk to its other content."""

    def __init__(self, why: str, path: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.why = why
        self.path = tuple(path)


class Piece(Protocol):
    @property
    def what(self) -> str:
        """One of INSTRUCTIONS, SKILL, MCP, HOOKS."""

    @property
    def path(self) -> str:
        """The file, absolute."""

    @property
    def is_wanted(self) -> bool:
        """False: the piece must not be there, and is listed only so that an old one is removed."""

    def state(self, text: str | None) -> str:
        """The state of the piece in the file's text; None: there is no file."""

    def steps(self, text: str | None) -> list[str]:
        """The text, which lacks the piece, after each single insertion; the last one has the whole piece.

        CannotMerge where it cannot be inserted without risk.
        """

    def take(self, text: str) -> str | None:
        """The text without the piece; None where the file becomes empty and can be removed."""


def digest(text: str) -> str:
    """A digest that detects manual edits; line ends do not count, since git may change them."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()[:16]


def standing(here: Any, keys: Sequence[str], wanted: Mapping[str, Any]) -> str:
    """The state of the entry at `keys` in a file's value."""
    for key in keys:
        here = here.get(key) if isinstance(here, dict) else None
    if here is None:
        return MISSING
    if here == dict(wanted):
        return ACTIVE
    return OUTDATED if _differs_by_start(here, wanted) else EDITED


def _differs_by_start(here: Any, wanted: Mapping[str, Any]) -> bool:
    """Is this our entry of the MCP server, except for the command that starts tenure?"""
    if not isinstance(here, dict) or set(here) != set(wanted):
        return False
    same = all(here[key] == wanted[key] for key in wanted if key not in ("command", "args"))
    return same and _words(here)[-2:] == ["tenure", "mcp"]


def _words(entry: Mapping[str, Any]) -> list[str]:
    command, args = entry.get("command"), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    return [str(word).rpartition("/")[2] for word in words]

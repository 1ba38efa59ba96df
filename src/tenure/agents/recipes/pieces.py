"""What a recipe is made of: pieces, each a pure function over the text of one file.

A piece can tell how it stands in a text (`state`), put itself into a text that does not have it (`steps`), and take
itself out again (`take`). It never touches a file, and no byte that is not its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

VERSION = "v1"

MISSING = "missing"
ACTIVE = "active"
OUTDATED = "outdated"  # ours, as another version or another way to start tenure wrote it
EDITED = "edited"  # ours once; somebody has changed it since, or it is somebody else's
UNREADABLE = "unreadable"

INSTRUCTIONS, SKILL, MCP, HOOKS = "instructions", "skill", "mcp", "hooks"


class CannotMerge(Exception):
    """The file is not such that something could be put in without risk to the rest."""

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
        """False: it must not be there; it is only listed so that an old one is found and taken out."""

    def state(self, text: str | None) -> str:
        """How the piece stands in the file's text; None: there is no file."""

    def steps(self, text: str | None) -> list[str]:
        """The text, which has not the piece yet, after each single insertion; the last one has it all.

        CannotMerge where it cannot be put in without risk.
        """

    def take(self, text: str) -> str | None:
        """The text without the piece; None where nothing of worth is left, and the file can go."""


def digest(text: str) -> str:
    """Tells a text that was edited by hand; line ends do not count, since git may change them."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()[:16]


def standing(here: Any, keys: Sequence[str], wanted: Mapping[str, Any]) -> str:
    """How an entry stands at `keys` in what a file says."""
    for key in keys:
        here = here.get(key) if isinstance(here, dict) else None
    if here is None:
        return MISSING
    if here == dict(wanted):
        return ACTIVE
    return OUTDATED if _differs_by_start(here, wanted) else EDITED


def _differs_by_start(here: Any, wanted: Mapping[str, Any]) -> bool:
    """Is this the entry of an MCP server that we want, but for the way that tenure is started?"""
    if not isinstance(here, dict) or set(here) != set(wanted):
        return False
    same = all(here[key] == wanted[key] for key in wanted if key not in ("command", "args"))
    return same and _words(here)[-2:] == ["tenure", "mcp"]


def _words(entry: Mapping[str, Any]) -> list[str]:
    command, args = entry.get("command"), entry.get("args", [])
    words = [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]
    return [str(word).rpartition("/")[2] for word in words]

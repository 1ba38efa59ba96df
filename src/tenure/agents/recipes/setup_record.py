"""What was put into which file, so that taking it out gives the file back to the byte.

Only places and lengths are kept, and hashes: a copy of somebody's settings might hold their secrets. Without this
memory (another clone, or a file that has changed since) a piece is found by its own marks instead.
"""

from __future__ import annotations

import hashlib
import os

import msgspec

from tenure.agents.recipes.settings_files import write

NAME = "setup.json"


class Insertions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file: its hash after, and the insertions (offset, length) in the order in which they were made."""

    after: str
    edits: tuple[tuple[int, int], ...] = ()
    made: bool = False  # there was no file
    blank: str = ""  # all that there was, where that was nothing but white space


class SetupRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One target: the agents that are set up there, and what that took."""

    agents: list[str] = []
    files: dict[str, Insertions] = {}
    folders: list[str] = []  # that were made, innermost first


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def inserted(before: str | None, texts: list[str]) -> Insertions | None:
    """How the last of the texts came from `before`; None where it was not by insertions alone."""
    if before is None:
        return Insertions(after=fingerprint(texts[-1]), made=True)
    if not before.strip():
        return Insertions(after=fingerprint(texts[-1]), blank=before)
    edits = []
    for old, new in zip([before, *texts], texts, strict=False):
        length = len(new) - len(old)
        at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        if length < 0 or old[at:] != new[at + length :]:
            return None
        edits.append((at, length))
    return Insertions(after=fingerprint(texts[-1]), edits=tuple(edits))


def undone(text: str, kept: Insertions) -> str | None:
    """The text as it was before; None where there was no file."""
    if kept.made:
        return None
    for at, length in reversed(kept.edits):
        text = text[:at] + text[at + length :]
    return text if kept.edits else kept.blank


def load(path: str, root: str) -> SetupRecord:
    return _all(path).get(root, SetupRecord())


def save(path: str, root: str, record: SetupRecord) -> None:
    """Keep it for this place; other places in the same file stay. CannotMerge where it cannot be written."""
    every = _all(path)
    every.pop(root, None)
    if record.agents or record.files:
        every[root] = record
    if every:
        write(path, msgspec.json.format(msgspec.json.encode(every), indent=1).decode() + "\n", mode=0o600)
    elif os.path.exists(path):
        os.unlink(path)


def _all(path: str) -> dict[str, SetupRecord]:
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=dict[str, SetupRecord])
    except (OSError, msgspec.DecodeError):
        return {}  # as another clone: pieces are found by their marks

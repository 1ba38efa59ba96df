"""Records insertions into files, so that removal restores each file to the byte.

Only offsets, lengths and hashes are kept: a copy of a user's settings might contain secrets. Without the record (in
another clone, or after a change of the file) a piece is found by its own marks.
"""

from __future__ import annotations

import hashlib
import os

import msgspec

from tenure.agents.recipes.settings_files import write

NAME = "setup.json"


class Insertions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file: its hash afterwards, and the insertions (offset, length) in their order."""

    after: str
    edits: tuple[tuple[int, int], ...] = ()
    made: bool = False  # there was no file
    blank: str = ""  # the former content, where it was only white space


class SetupRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One target: the agents that are set up there, and the changes for them."""

    agents: list[str] = []
    files: dict[str, Insertions] = {}
    folders: list[str] = []  # that were created, innermost first


def fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def inserted(before: str | None, texts: list[str]) -> Insertions | None:
    """The insertions that lead from `before` to the last text; None where there were other changes."""
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
    """The former text; None where there was no file."""
    if kept.made:
        return None
    for at, length in reversed(kept.edits):
        text = text[:at] + text[at + length :]
    return text if kept.edits else kept.blank


def load(path: str, root: str) -> SetupRecord:
    return _all(path).get(root, SetupRecord())


def save(path: str, root: str, record: SetupRecord) -> None:
    """Save the record of this target; those of other targets stay. CannotMerge where it cannot be written."""
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
        return {}  # as in another clone: pieces are found by their marks

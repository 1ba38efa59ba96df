"""The last sequence that was seen of a file, noted in the user's state folder: a file that says less was put back.

`cp backup.db tenure.db` keeps device and inode, so the file itself cannot tell. The note is kept by device and inode,
since a file with another one is known as a copy anyway. It has one line for each epoch, `EPOCH SEQUENCE`.

Guaranteed: a note never says more than what was committed and acknowledged, so no new epoch begins without a reason.
Not guaranteed: that it says all of it. A process notes about once a second and when it closes the store; what one that
was killed did in its last second may be missing. A note that cannot be read or written is no error.
"""
# ruff: noqa: PTH105, PTH108, PTH116, PTH118, PTH123, PTH208 - pathlib costs every command 7 ms at its start

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress

from tenure.core import limits
from tenure.user_state import make_private_folder, user_states

EVERY = 1.0  # seconds between two notes of a process
MOST_EPOCHS = limits.STORE_NOTE_EPOCHS
MOST_FILES = limits.STORE_NOTES


def noted(place: str, environ: Mapping[str, str]) -> dict[str, int]:
    """The last sequence noted for each epoch of the file with this device and inode."""
    found: dict[str, int] = {}
    for base in user_states(environ):
        for epoch, sequence in _read(os.path.join(base, "places", place)).items():
            found[epoch] = max(sequence, found.get(epoch, 0))
    return found


def note(place: str, seen: Mapping[str, int], environ: Mapping[str, str]) -> None:
    """Note the last sequences seen, by epoch, in the first state folder that can be written."""
    for base in user_states(environ):
        with suppress(OSError):
            _write(os.path.join(base, "places"), place, seen)
            return


def _read(path: str) -> dict[str, int]:
    try:
        with open(path, encoding="ascii") as file:
            lines = [line.split() for line in file]
        return {epoch: int(sequence) for epoch, sequence in lines}
    except (OSError, ValueError):
        return {}


def _write(folder: str, place: str, seen: Mapping[str, int]) -> None:
    path = os.path.join(folder, place)
    known = _read(path)
    if not known:
        make_private_folder(folder)
        _make_room(folder)
    for epoch, sequence in seen.items():
        known[epoch] = max(sequence, known.pop(epoch, 0))  # and it is the last line now
    text = "".join(f"{epoch} {sequence}\n" for epoch, sequence in list(known.items())[-MOST_EPOCHS:])
    draft = f"{path}.{os.getpid()}.new"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)
    os.replace(draft, path)


def _make_room(folder: str) -> None:
    names = os.listdir(folder)
    if len(names) < MOST_FILES:
        return
    paths = [os.path.join(folder, name) for name in names]
    for path in sorted(paths, key=_changed)[: len(paths) // 2]:
        with suppress(OSError):
            os.unlink(path)


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0

"""What git tracks, read from its index without starting git: a repository's own configuration may start things.

Versions 2, 3 and 4 of the format, split and sparse indexes too. What cannot be read raises Unreadable, and the caller
takes the path for tracked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

EXTENDED = 0x4000


class Unreadable(Exception):
    """The index is there, and is not what git writes."""


def is_tracked(path: str) -> bool:
    """Whether the index of the repository around `path` has this file, or anything below this folder."""
    folder = os.path.dirname(os.path.abspath(path))
    root = folder
    while (gitdir := _git_folder(root)) is None:
        if root == os.path.dirname(root):
            return False
        root = os.path.dirname(root)
    # Folders of a case-insensitive file system are found under any spelling.
    wanted = os.path.relpath(os.path.abspath(path), root).encode(errors="surrogateescape").lower()
    width = _hash_width(gitdir)
    return any(_covers(name.lower(), wanted) for index in _indexes(gitdir) for name in _names(index, width))


def _covers(name: bytes, wanted: bytes) -> bool:
    # A sparse index has whole folders, which end in a slash.
    return name == wanted or name.startswith(wanted + b"/") or (name.endswith(b"/") and wanted.startswith(name))


def _git_folder(root: str) -> str | None:
    """The git folder of a worktree's root; of a linked one or a submodule its own."""
    path = os.path.join(root, ".git")
    if os.path.isfile(os.path.join(path, "HEAD")):
        return path
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            kind, _, named = file.read(4096).strip().partition(": ")
    except OSError:
        return None
    return os.path.join(root, named) if kind == "gitdir" else None


def _hash_width(gitdir: str) -> int:
    common = gitdir
    try:
        with open(os.path.join(gitdir, "commondir"), encoding="utf-8", errors="surrogateescape") as file:
            common = os.path.join(gitdir, file.read(4096).strip())
    except OSError:
        pass
    try:
        with open(os.path.join(common, "config"), encoding="utf-8", errors="replace") as file:
            words = file.read().lower().replace(" ", "").replace("\t", "")
    except OSError:
        return 20
    return 32 if "objectformat=sha256" in words else 20


def _indexes(gitdir: str) -> Iterator[bytes]:
    try:
        names = [name for name in os.listdir(gitdir) if name == "index" or name.startswith("sharedindex.")]
        for name in names:
            with open(os.path.join(gitdir, name), "rb") as file:
                yield file.read()
    except OSError as error:
        raise Unreadable(str(error)) from None


def _names(index: bytes, width: int) -> Iterator[bytes]:
    version = int.from_bytes(index[4:8], "big")
    if index[:4] != b"DIRC" or version not in (2, 3, 4):
        raise Unreadable("not an index that is known here")
    at, name = 12, b""
    for _ in range(int.from_bytes(index[8:12], "big")):
        start = at
        flags = int.from_bytes(index[at + 40 + width : at + 42 + width], "big")
        at += 42 + width + (2 if flags & EXTENDED else 0)
        cut = 0
        if version == 4:  # how much of the previous name's end is dropped, in seven bits per byte
            cut = index[at] & 0x7F if at < len(index) else 0
            while at < len(index) and index[at] & 0x80:
                at += 1
                cut = ((cut + 1) << 7) | (index[at] & 0x7F)
            at += 1
        end = index.find(b"\0", at)
        if end < 0 or cut > len(name):
            raise Unreadable("its entries end too early")
        name = (name[: len(name) - cut] if version == 4 else b"") + index[at:end]
        yield name
        at = end + 1 if version == 4 else start + ((end - start) // 8 + 1) * 8

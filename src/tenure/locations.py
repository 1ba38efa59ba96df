"""Where the store and the files of settings are: upward from the working folder, as git finds its own.

From a linked worktree the way leads through the git common folder. No git is started for that: a command must not pay
for a process it may not need.

`tenure.toml` < the `.tenure/config.toml` beside the store < a nearer one without a store < the file that TENURE_CONFIG
names. A nearer file adds to the store's own and cannot hide it: it may have come with a clone below.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from tenure.core.errors import StoreUnavailable

FOLDER = ".tenure"
DATABASE = "tenure.db"
SHARED = "tenure.toml"  # in the repository, for everybody
LOCAL = "config.toml"  # in .tenure, for this clone
NAMED = "TENURE_CONFIG"  # the operator's file of settings: see `trust/operator_file.py`


def upward(start: str) -> list[str]:
    """`start` and every folder above it."""
    folders = [os.path.realpath(start)]
    while (parent := os.path.dirname(folders[-1])) != folders[-1]:
        folders.append(parent)
    return folders


def main_worktree(folder: str) -> str | None:
    """The main worktree of the repository that `folder` is a linked worktree of."""
    try:
        with open(os.path.join(folder, ".git"), encoding="utf-8") as file:
            kind, _, path = file.read().strip().partition(": ")
        if kind != "gitdir":
            return None
        own = os.path.join(folder, path)
        with open(os.path.join(own, "commondir"), encoding="utf-8") as file:
            common = os.path.realpath(os.path.join(own, file.read().strip()))
    except OSError:  # no .git, or a folder; a submodule has no commondir
        return None
    return os.path.dirname(common) if os.path.basename(common) == ".git" else common


def folders(start: str) -> Iterator[str]:
    """Each place of a `.tenure` that would serve `start`, the nearest first."""
    for folder in upward(start):
        for place in dict.fromkeys((folder, main_worktree(folder))):
            if place is not None:
                yield os.path.join(place, FOLDER)


def find_folder(start: str) -> str | None:
    """The `.tenure` folder of the store that serves `start`."""
    for found in folders(start):
        if os.path.isfile(os.path.join(found, DATABASE)):
            refuse_links(found)
            return found
    return None


def local_files(start: str) -> list[str]:
    """Each `.tenure/config.toml` that serves `start`: that of the store, and the nearest without a store."""
    found: list[str] = []
    for folder in folders(start):
        has_store = os.path.isfile(os.path.join(folder, DATABASE))
        path = os.path.join(folder, LOCAL)
        if os.path.isfile(path) and (has_store or not found):
            refuse_links(folder)
            found.insert(0, path)
        if has_store:
            break
    return found


def refuse_links(folder: str) -> None:
    """A repository can bring links: through one, files of `.tenure` would be read or written elsewhere."""
    try:
        inside = os.scandir(folder)
    except PermissionError as error:
        from tenure.store_folder import unreadable

        raise StoreUnavailable(*unreadable(folder, error)) from None
    links = [folder] if os.path.islink(folder) else [entry.path for entry in inside if entry.is_symlink()]
    if links:
        from tenure.trust.grants import Untrusted

        raise Untrusted(
            f"{sorted(links)[0]} is a symbolic link, and links in {FOLDER} are not followed",
            hint="Put the file or folder itself there; TENURE_URL names a store elsewhere.",
        )


def shared_file(start: str) -> str | None:
    """The `tenure.toml` whose commands apply in `start`; for a linked worktree the main one's."""
    for folder in upward(start):
        path = os.path.join(main_worktree(folder) or folder, SHARED)
        if os.path.isfile(path):
            return path
    return None


def nearest_shared(start: str) -> str | None:
    """The `tenure.toml` whose settings apply in `start`."""
    return next((p for f in upward(start) if os.path.isfile(p := os.path.join(f, SHARED))), None)


def named_file(environ: Mapping[str, str]) -> str | None:
    """The file that TENURE_CONFIG names."""
    return os.path.abspath(environ[NAMED]) if environ.get(NAMED) else None

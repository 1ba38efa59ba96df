"""The folder of a new store: `.tenure`, private, with its own `.gitignore`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from tenure.config import PROJECT
from tenure.core.errors import InvalidInput
from tenure.core.ids import fitted_name
from tenure.locations import DATABASE, FOLDER, main_worktree, refuse_links, upward

if TYPE_CHECKING:
    from tenure.engine import Engine

IGNORED = "# Created by tenure: the store is not part of the repository.\n*\n"


def worktree_of(folder: str) -> str | None:
    """The root of the git worktree that contains `folder`."""
    return next((place for place in upward(folder) if _has_git(place)), None)


def _has_git(folder: str) -> bool:
    """A file marks a linked worktree. A folder without a HEAD is not a repository; sandboxes create such briefly."""
    path = os.path.join(folder, ".git")
    return os.path.isfile(path) or os.path.isfile(os.path.join(path, "HEAD"))


def place_for(folder: str) -> str:
    """The parent folder of `.tenure`: the main worktree, so that all worktrees share one store."""
    worktree = worktree_of(folder)
    if worktree is None:
        inside = next((p for p in upward(folder) if os.path.isfile(os.path.join(p, FOLDER, DATABASE))), None)
        return inside or os.path.realpath(folder)
    main = main_worktree(worktree)
    if main is None:
        return worktree
    if os.path.isdir(os.path.join(main, ".git")):
        return main
    # A bare repository has no main worktree, and `.tenure` must not be among git's files.
    above = os.path.dirname(main)
    if above in upward(worktree):
        return above
    raise InvalidInput(
        f"{worktree} is a worktree of the bare repository {main}, which has no main worktree to put the store in",
        "set TENURE_URL to the path of a store file for all its worktrees",
    )


def make_folder(place: str) -> str:
    """Create `.tenure` in `place`, 0700, with a `.gitignore`; existing files are kept."""
    folder = os.path.join(place, FOLDER)
    try:
        os.mkdir(folder, 0o700)
        os.chmod(folder, 0o700)  # whatever the umask
    except FileExistsError:
        if not os.path.isdir(folder):
            raise InvalidInput(f"{folder} exists and is not a folder", "move it away, then run init again") from None
    except OSError as error:
        raise InvalidInput(f"{folder}: cannot be created: {error.strerror}") from None
    refuse_links(folder)
    _write_new(os.path.join(folder, ".gitignore"), IGNORED)
    return folder


def named_after(place: str) -> str:
    """A project's name, as new ones may be, from that of its folder."""
    return fitted_name(folder_name(place), "default")


def folder_name(place: str) -> str:
    return os.path.basename(os.path.realpath(place))


def keep_project(folder: str, project: str) -> None:
    """Make `project` the default for commands in this folder."""
    _write_new(os.path.join(folder, PROJECT), project + "\n")


def _write_new(path: str, text: str) -> None:
    with (
        suppress(FileExistsError),
        open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file,
    ):
        file.write(text)


def note_store(engine: Engine, project: str, environ: Mapping[str, str]) -> None:
    """Note a new store in the user's state folder: should its file be lost, commands say until when it was here."""
    from tenure.store_folder import KnownStore, remember
    from tenure.stores.sqlite.store import Sqlite

    store = engine.store
    if isinstance(store, Sqlite):
        remember(KnownStore(store.path, store.place, engine.read(lambda tx: tx.epoch), project), environ)

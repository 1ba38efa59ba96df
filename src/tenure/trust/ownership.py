"""Whether a file of `.tenure` is the user's: owned by them, closed to others, and not from a checkout.

Owner and modes are checked each time. Git's index may be large, so the user's state folder records files that were not
in it, by path, device, inode, time and size: a checkout that replaces a file changes them.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Protocol

from tenure.core import limits
from tenure.trust.git_index import Unreadable, is_tracked
from tenure.user_state import make_private_folder, user_state

FILE = "own-files.json"
MOST_REMEMBERED = limits.TRUST_CACHED


def why_foreign(path: str, found: os.stat_result, environ: Mapping[str, str]) -> str | None:
    """Why this file of `.tenure` is not trusted; None where it is."""
    folder = os.lstat(os.path.dirname(path))
    if found.st_uid != os.geteuid() or folder.st_uid != os.geteuid():
        return "it belongs to another user"
    if stat.S_IMODE(folder.st_mode) & 0o077:
        return f"its folder has mode {stat.S_IMODE(folder.st_mode):04o}, and only 0700 is closed to others"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return f"it has mode {stat.S_IMODE(found.st_mode):04o}, and only 0600 is closed to others"
    mark = [found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size]
    known = _remembered(environ)
    if known.get(path) == mark:
        return None
    why = why_tracked(path)
    if why is None:
        _remember(environ, {**known, path: mark})
    return why


def why_store_foreign(path: str) -> str | None:
    """Why this database is not the user's; None where it is."""
    try:
        found, folder = os.lstat(path), os.lstat(os.path.dirname(path))
    except FileNotFoundError:
        return None
    if found.st_uid != os.geteuid() or folder.st_uid != os.geteuid():
        return "it belongs to another user"
    return why_tracked(path)


# The record of `tenure trust` for a store that somebody else made.
STORE_SECTION = {"store": "its keys sign in at `serve`, its tasks go to the agents of `run` and `mcp`"}


class FoundStore(Protocol):
    """Where a store was found: `config.Home`."""

    @property
    def folder(self) -> str: ...

    @property
    def url(self) -> str: ...


def check_store(home: FoundStore, environ: Mapping[str, str]) -> None:
    """Raise Untrusted where the store came with a cloned repository and the user has not allowed it.

    Its rows are data to every command. But its keys sign in at a server, and agents work on its tasks.
    """
    if os.path.dirname(home.url) != home.folder:
        return  # it is named by its URL
    why = why_store_foreign(home.url)
    if why is not None:
        from tenure.trust.grants import Trusted

        Trusted(user_state(environ)).check(home.url, STORE_SECTION, why)


def why_tracked(path: str) -> str | None:
    try:
        return "git tracks it: it came with the repository" if is_tracked(path) else None
    except Unreadable as error:
        return f"git's index could not be read ({error})"


def _remembered(environ: Mapping[str, str]) -> dict[str, list[int]]:
    try:
        handle = os.open(os.path.join(user_state(environ), FILE), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return {}
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            return {}
        try:
            known = json.loads(file.read())
        except (ValueError, RecursionError):
            return {}
    return known if isinstance(known, dict) else {}


def _remember(environ: Mapping[str, str], known: Mapping[str, list[int]]) -> None:
    """Best effort: of two concurrent writes one may be lost, and is computed again later."""
    folder = user_state(environ)
    new = os.path.join(folder, f"{FILE}.{os.getpid()}")
    with suppress(OSError):
        make_private_folder(folder)
        with suppress(FileNotFoundError):
            os.unlink(new)
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(dict(list(known.items())[-MOST_REMEMBERED:]), file)
        os.replace(new, os.path.join(folder, FILE))

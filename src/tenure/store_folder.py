"""Who may read an embedded store, and traces of one that is gone.

The state folder knows each store at its path: a file `store.json`, made by `init` and by processes that make copies,
and the copies beside it (`EPOCH-SEQUENCE.db`), each of one store at one moment. So `git clean -xdf` leaves a trace.
Two clones have two paths; a folder that was moved takes its copies along (`moved_here`); a new
store at the path of a former one has another epoch, and its copies stand beside those of the former.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from tenure.core.errors import NoStore, StoreUnavailable
from tenure.user_state import (
    is_own,
    listed,
    make_private_folder,
    noted,
    read_record,
    store_states,
    user_states,
    writable_store_state,
    write_private,
)

if TYPE_CHECKING:
    from tenure.core.store_copies import Copy

KNOWN = "store.json"
COPIES = "copies"


# --- another user's store -------------------------------------------------------------------------------------


def unreadable(path: str, error: OSError) -> tuple[str, str]:
    """Why a path cannot be read, and what to do: most often it belongs to another user, as after `sudo tenure`."""
    path = os.path.abspath(path)
    while not _may_look(path):
        path = os.path.dirname(path)
    status = os.stat(path)
    if status.st_uid == os.geteuid() or not isinstance(error, PermissionError):
        what = f"{path} cannot be read: {error.strerror}"
        if isinstance(error, PermissionError):
            what += f" (it is yours, with mode {stat.S_IMODE(status.st_mode):04o})"
        return what, "Give yourself the right to read it, or name another store with TENURE_URL."
    owner = owner_name(status.st_uid)
    what = "written" if os.access(path, os.R_OK) else "read"
    return f"{path} belongs to {owner} and cannot be {what}", (
        f"Work as {owner}, or have {owner} give it to you; TENURE_URL names another store."
    )


def _may_look(path: str) -> bool:
    try:
        os.stat(path)
    except OSError:
        return False
    return True


def owner_name(user: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"


def unreadable_of(folders: Iterable[str]) -> StoreUnavailable | None:
    """The first of these folders that is there, and that this user cannot look into."""
    for folder in folders:
        if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK):
            return StoreUnavailable(*unreadable(folder, PermissionError(13, os.strerror(13))))
    return None


# --- a store that is gone -------------------------------------------------------------------------------------


class KnownStore(msgspec.Struct, frozen=True):
    """A store that is, or was, at a path. `place`: device and inode, by which its last event is noted."""

    path: str
    place: str
    epoch: str
    project: str = ""


class LostStore(NoStore):
    """A store was here, and its file is gone. `copy` is the newest that there is."""

    def __init__(self, path: str, sequence: int, copy: Copy | None, project: str) -> None:
        import shlex

        if copy is None:
            hint = "There is no copy of it: put the file back from a backup, or begin an empty one with `tenure init`."
        else:
            made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(copy.made))
            hint = (
                f"`tenure db restore {shlex.quote(copy.path)}` brings it back as it was at event {copy.sequence}, "
                f"{made}; `tenure init` begins an empty one."
            )
        super().__init__(f"a store was here until event {sequence}: {path} is gone", hint)
        self.path, self.sequence, self.copy, self.project = path, sequence, copy, project


def remember(known: KnownStore, environ: Mapping[str, str]) -> None:
    """Note the store at its path. A failure to note it is ignored."""
    with suppress(OSError):
        folder = writable_store_state(environ, known.path)
        write_private(os.path.join(folder, KNOWN), msgspec.json.encode(known))


def why_none(paths: Sequence[str], environ: Mapping[str, str]) -> StoreUnavailable | None:
    """Why there is no store at any of these paths: its folder cannot be read, or it was there and is gone."""
    unread = unreadable_of(map(os.path.dirname, paths))
    return unread or next(filter(None, (lost_at(path, environ) for path in paths)), None)


def lost_at(path: str, environ: Mapping[str, str]) -> LostStore | None:
    """The store that was at this path; None where a file is there, or none is known."""
    if os.path.lexists(path):
        return None
    known = next(filter(None, (read_record(os.path.join(s, KNOWN), KnownStore) for s in _own(environ, path))), None)
    copies = copies_at(path, environ)
    if known is None and not copies:
        return None
    newest = max(copies, key=lambda copy: (copy.made, copy.sequence), default=None)
    last = max((copy.sequence for copy in copies if newest and copy.epoch == newest.epoch), default=0)
    if known is not None:
        last = max(last, noted(known.place, environ).get(known.epoch, 0))
    return LostStore(path, last, newest, known.project if known else "")


def copies_at(path: str, environ: Mapping[str, str]) -> list[Copy]:
    """The copies of stores at this path."""
    return [copy for state in _own(environ, path) for copy in copies_in(os.path.join(state, COPIES))]


def all_copies(environ: Mapping[str, str]) -> list[Copy]:
    """The copies of every store of this user."""
    found = []
    for root in filter(is_own, user_states(environ)):
        stores = os.path.join(root, "stores")
        for name in listed(stores):
            found += copies_in(os.path.join(stores, name, COPIES))
    return found


def copies_in(folder: str) -> list[Copy]:
    from tenure.core.store_copies import Copy

    found = []
    for name in listed(folder):
        epoch, _, sequence = name.removesuffix(".db").partition("-")
        if not name.endswith(".db") or not sequence.isdecimal():
            continue
        path = os.path.join(folder, name)
        with suppress(OSError):  # deleted meanwhile
            status = os.stat(path)
            found.append(Copy(path, epoch, int(sequence), status.st_mtime, status.st_size))
    return found


def folder_for_copies(path: str, environ: Mapping[str, str]) -> str:
    """Where copies of the store at this path go, created with mode 0700. Raises OSError where it cannot be."""
    folder = os.path.join(writable_store_state(environ, path), COPIES)
    make_private_folder(folder)
    return folder


def moved_here(known: KnownStore, environ: Mapping[str, str]) -> None:
    """Take the copies of a store along that was moved: its file is the same, and gone from its former path."""
    for root in filter(is_own, user_states(environ)):
        stores = os.path.join(root, "stores")
        for name in listed(stores):
            before = read_record(os.path.join(stores, name, KNOWN), KnownStore)
            if before is None or before.path == known.path or os.path.lexists(before.path):
                continue
            if (before.place, before.epoch) != (known.place, known.epoch):
                continue
            with suppress(OSError):
                folder = folder_for_copies(known.path, environ)
                for copy in copies_in(os.path.join(stores, name, COPIES)):
                    os.replace(copy.path, os.path.join(folder, os.path.basename(copy.path)))
                os.unlink(os.path.join(stores, name, KNOWN))


def _own(environ: Mapping[str, str], path: str) -> list[str]:
    return [state for state in store_states(environ, path) if is_own(state)]

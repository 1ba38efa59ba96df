"""The user's state folder: a user's files on this machine outside every repository.

Receipts, the outbox and trust decisions are here and not in `.tenure`, because `git clean -xdf` and a replaced store
must not remove them. Some agents run commands in a sandbox that cannot write to the home folder; their files go to
a private folder below the temporary one, and readers look in both.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TypeVar

from tenure.core import limits

T = TypeVar("T")
NOTE_EVERY = 1.0  # seconds between two notes of a process
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")


def user_state(environ: Mapping[str, str]) -> str:
    """`TENURE_STATE`, or `tenure` in `XDG_STATE_HOME` or `~/.local/state`. The folder may not exist yet."""
    if environ.get("TENURE_STATE"):
        return os.path.abspath(environ["TENURE_STATE"])
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.join(environ.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state"), "tenure")


def user_states(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Folders of the user's state, the preferred one first. Readers look in those that are `is_own`."""
    return user_state(environ), _sandbox_state(environ)


def writable_state(environ: Mapping[str, str]) -> str:
    """The first of `user_states` that can be written, created with mode 0700. Raises OSError where none can."""
    return _first_writable(user_states(environ), "")


def store_states(environ: Mapping[str, str], url: str) -> tuple[str, ...]:
    """Folders of the state of one store, the preferred one first. Readers look in all of them."""
    return tuple(os.path.join(root, _store_folder(url)) for root in user_states(environ))


def writable_store_state(environ: Mapping[str, str], url: str) -> str:
    """The first of `store_states` that can be written, created with mode 0700. Raises OSError where none can."""
    return _first_writable(user_states(environ), _store_folder(url))


def is_own(folder: str) -> bool:
    """Does the folder exist, owned by this user? Anybody may create one below the temporary folder."""
    try:
        found = os.stat(folder, follow_symlinks=False)
    except OSError:
        return False
    return found.st_uid == os.getuid()


def make_private_folder(path: str) -> None:
    """Create the folder and its missing parents with mode 0700, to outlast a power cut.

    Raises OSError where another user owns it.
    """
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            continue
        sync_folder(os.path.dirname(folder))
    owner = missing[0] if missing else path
    if os.stat(owner).st_uid != os.getuid():
        raise PermissionError(f"{owner} belongs to another user")


def sync_folder(folder: str) -> None:
    """Make a new name in the folder outlast a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# --- small files that only the user can read ----------------------------------------------------------------


def listed(folder: str) -> list[str]:
    """Names in the folder, sorted; none where there is no folder."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_record(path: str, type: type[T]) -> T | None:
    """The record in a JSON file; None where there is none, or the file is not one."""
    import msgspec

    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=type)
    except (OSError, msgspec.DecodeError):
        return None


def write_private(path: str, content: bytes) -> None:
    """Write a file that only the user can read, atomically by a rename."""
    new = f"{path}.{os.getpid()}"
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            os.unlink(new)
        raise


def transcripts_of(folder: str, project: str, key: str) -> str:
    """Where the transcripts of a task are. `.` and `..`, which may be stored as names, would lead out of the folder."""
    return os.path.join(folder, safe_name(project) if project in (".", "..") else project, key)


def safe_name(name: str) -> str:
    """A file name for any text; a text that is not safe as a name becomes its hash."""
    if name and set(name) <= _PLAIN and not name.startswith(".") and len(name) <= 100:
        return name
    import hashlib

    return "h-" + hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:40]


# --- the last event of each store ---------------------------------------------------------------------------
#
# `cp backup.db tenure.db` keeps device and inode, so the file itself cannot show that it was replaced. Notes keep, by
# device and inode, the last sequence seen in each epoch, as lines `EPOCH SEQUENCE`. A file with a lower one was
# restored. A note never exceeds the acknowledged commits, so no new epoch begins without a reason. It may be less: a
# process writes it about once a second and when it closes the store. Errors with a note are ignored.


def noted(place: str, environ: Mapping[str, str]) -> dict[str, int]:
    """The last sequence noted for each epoch of the file with this device and inode."""
    found: dict[str, int] = {}
    for base in user_states(environ):
        for epoch, sequence in _read_note(os.path.join(base, "places", place)).items():
            found[epoch] = max(sequence, found.get(epoch, 0))
    return found


def note(place: str, seen: Mapping[str, int], environ: Mapping[str, str]) -> None:
    """Record the last sequence seen in each epoch, in the first state folder that can be written."""
    for base in user_states(environ):
        with suppress(OSError):
            _write_note(os.path.join(base, "places"), place, seen)
            return


def _read_note(path: str) -> dict[str, int]:
    try:
        with open(path, encoding="ascii") as file:
            lines = [line.split() for line in file]
        return {epoch: int(sequence) for epoch, sequence in lines}
    except (OSError, ValueError):
        return {}


def _write_note(folder: str, place: str, seen: Mapping[str, int]) -> None:
    path = os.path.join(folder, place)
    known = _read_note(path)
    if not known:
        make_private_folder(folder)
        _make_room(folder)
    for epoch, sequence in seen.items():
        known[epoch] = max(sequence, known.pop(epoch, 0))  # now the last line
    text = "".join(f"{epoch} {sequence}\n" for epoch, sequence in list(known.items())[-limits.STORE_NOTE_EPOCHS :])
    draft = f"{path}.{os.getpid()}.new"
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)
    os.replace(draft, path)


def _make_room(folder: str) -> None:
    """Delete the older half of the notes where there are too many."""
    entries = list(os.scandir(folder))
    if len(entries) < limits.STORE_NOTES:
        return
    found = []
    for entry in entries:
        with suppress(OSError):
            found.append((entry.stat().st_mtime, entry.path))
    for _, path in sorted(found)[: len(found) // 2]:
        with suppress(OSError):
            os.unlink(path)


# --- folders ------------------------------------------------------------------------------------------------


def _first_writable(roots: tuple[str, ...], inner: str) -> str:
    for root in roots[:-1]:
        folder = os.path.join(root, inner) if inner else root
        try:
            make_private_folder(folder)
            if os.access(folder, os.W_OK):
                return folder
        except OSError:
            continue
    # Its parent is everybody's: the root itself must be ours before anything is created below it.
    make_private_folder(roots[-1])
    if not is_own(roots[-1]):
        raise PermissionError(f"{roots[-1]} belongs to another user")
    folder = os.path.join(roots[-1], inner) if inner else roots[-1]
    make_private_folder(folder)
    return folder


def _store_folder(url: str) -> str:
    """A name for the store, the same however its file is spelled."""
    import hashlib  # a fifth of what a bare start costs: only commands that look up a receipt pay for it

    path = url.removeprefix("sqlite://")
    named = url if "://" in path else os.path.realpath(path)
    return os.path.join("stores", hashlib.sha256(named.encode()).hexdigest()[:16])


def _sandbox_state(environ: Mapping[str, str]) -> str:
    return os.path.join(environ.get("TMPDIR") or "/tmp", f"tenure-{os.getuid()}")  # noqa: S108 - private, owner checked

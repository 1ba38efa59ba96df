"""Writes an artifact into a folder under its name, whatever else lies in that folder.

Every folder of the path is opened from the one above it, and no symbolic link is followed: neither a name nor a link
that an agent left there leads outside.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from tenure.core.artifacts import checked_name
from tenure.core.errors import InvalidInput, TenureError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NotPlaced(TenureError):
    """The file could not be written; there is none."""

    code = "NOT_PLACED"


def place(folder: str | Path, name: str, content: Iterable[bytes], *, replace: bool = False) -> Path:
    """Write the file, synced; returns its path. An existing one stays, unless `replace` is True."""
    *above, last = checked_name(name).split("/")
    path = Path(folder, *above, last)
    try:
        with ExitStack() as stack:
            at = _opened(stack, os.open(folder, _FOLDER))
            for part in above:
                at = _opened(stack, _below(at, part, path))
            _write(at, last, content, path, replace)
    except OSError as error:
        raise NotPlaced(f"{path}: {error.strerror or error}") from error
    return path


def _below(at: int, part: str, path: Path) -> int:
    with suppress(FileExistsError):
        os.mkdir(part, 0o700, dir_fd=at)
    try:
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
    except NotADirectoryError:  # O_NOFOLLOW raises it for a symbolic link too
        raise NotPlaced(f"{path}: {part!r} in its path is a link or a file, not a folder") from None


def _write(at: int, name: str, content: Iterable[bytes], path: Path, replace: bool) -> None:
    if not replace and _is_there(at, name):  # before a large content is written in vain
        raise _taken(path)
    # No name of an artifact begins with a dot, so this one is free.
    temporary = f".{secrets.token_hex(16)}"
    handle = os.open(temporary, _NEW, 0o600, dir_fd=at)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in content:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            _refuse_folder(at, name, path)
            os.replace(temporary, name, src_dir_fd=at, dst_dir_fd=at)
        else:
            os.link(temporary, name, src_dir_fd=at, dst_dir_fd=at)
        os.fsync(at)
    except FileExistsError:
        raise _taken(path) from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=at)


def _is_there(at: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _refuse_folder(at: int, name: str, path: Path) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
            raise NotPlaced(f"{path} is a folder")


def _opened(stack: ExitStack, handle: int) -> int:
    stack.callback(os.close, handle)
    return handle


def _taken(path: Path) -> InvalidInput:
    return InvalidInput(f"{path} exists already", "Choose another folder, or replace it (--force).")

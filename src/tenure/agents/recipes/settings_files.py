"""Reads and writes other tools' files: atomically, and never outside of the setup target.

A link that leads to a file inside the target is followed and stays a link; one that leads outside is refused. Modes are
kept.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from tenure.agents.recipes.pieces import CannotMerge


def real_path(path: str, within: str) -> str:
    """The file that `path` leads to; CannotMerge where that is outside of `within`."""
    real, place = os.path.realpath(path), os.path.realpath(within)
    if not (real + os.sep).startswith(place.rstrip(os.sep) + os.sep):
        raise CannotMerge(f"is a link that leads to {real}, outside of {within}; nothing is written there")
    return real


def read(path: str) -> str | None:
    """The file's text with its line ends; None where there is no file. CannotMerge where it is not text."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise CannotMerge("cannot be created: a folder on its path is a file") from None
    except IsADirectoryError:
        raise CannotMerge("is a folder") from None
    except UnicodeDecodeError:
        raise CannotMerge("is not UTF-8 text, so it cannot be edited safely") from None
    except OSError as error:
        raise CannotMerge(f"cannot be read: {error.strerror}") from None


def write(path: str, text: str, *, mode: int | None = None) -> list[str]:
    """Write `text` atomically by a rename; returns the folders that were created.

    A file keeps its mode; a new one has what the user's umask allows, unless `mode` is given.
    """
    made = []
    try:
        folder = os.path.dirname(path)
        while not os.path.isdir(folder):
            made.append(folder)
            folder = os.path.dirname(folder)
        for missing in reversed(made):
            os.mkdir(missing)
        if mode is None:
            mode = os.stat(path).st_mode & 0o7777 if os.path.exists(path) else 0o666 & ~_umask()
        handle, new = tempfile.mkstemp(prefix=".tenure-", dir=os.path.dirname(path))
        try:
            with open(handle, "w", encoding="utf-8", newline="") as file:
                os.fchmod(file.fileno(), mode)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(new)
            raise
    except OSError as error:
        for folder in made:
            with suppress(OSError):
                os.rmdir(folder)
        raise CannotMerge(f"cannot be written: {error.strerror}") from None
    return made


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise CannotMerge(f"cannot be removed: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

"""Artifacts in a folder: `ab/cd/abcd…`, readable by the user alone.

A content is written to a file in `incoming`, synced, and then linked to its final name, atomically. Its writer holds a
lock on that file; so a file without a lock was left by a writer that died, and is swept.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tenure.artifacts import port
from tenure.core.errors import StoreUnavailable, close_all
from tenure.user_state import sync_folder

INCOMING = "incoming"


class LocalArtifacts:
    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.url = str(self.folder)
        self._is_swept = False

    def begin(self, *, largest: int) -> _Writing:
        try:
            _make(self.folder / INCOMING)
            if not self._is_swept:  # once per process
                self._is_swept = True
                self.sweep()
            return _Writing(self.folder, largest)
        except OSError as error:
            raise _away(self.folder, error) from error

    def read(self, digest: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        path = _place(self.folder, digest)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise port.missing(digest) from None
        except OSError as error:
            raise _away(path, error) from error
        try:
            size = os.fstat(handle).st_size
            start, end = port.checked_range(digest, size, start, end)
        except BaseException:
            os.close(handle)
            raise
        return port.verified(digest, size, _Pieces(handle, path, start, end), start, end)

    def size(self, digest: str) -> int | None:
        path = _place(self.folder, digest)
        try:
            return path.lstat().st_size
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _away(path, error) from error

    def delete(self, digest: str) -> None:
        path = _place(self.folder, digest)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _away(path, error) from error

    def listed(self) -> Iterator[port.Listed]:
        now = time.time()
        for path in self.folder.glob("[0-9a-f][0-9a-f]/[0-9a-f][0-9a-f]/*"):
            if port.is_digest(path.name):
                with suppress(FileNotFoundError):  # deleted meanwhile
                    found = path.lstat()
                    yield port.Listed(path.name, found.st_size, max(0.0, now - found.st_mtime))

    def sweep(self) -> int:
        swept = 0
        for path in self.folder.glob(f"{INCOMING}/*"):
            try:
                handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:  # kept meanwhile, or not one of ours
                continue
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
                swept += 1
            except BlockingIOError:  # its writer lives
                pass
            finally:
                os.close(handle)
        return swept

    def close(self) -> None:
        pass


class _Writing:
    def __init__(self, folder: Path, largest: int) -> None:
        self._folder = folder
        self._measured = port.Measured(largest)
        self._path, self._handle = _incoming(folder)

    def write(self, piece: bytes) -> None:
        self._measured.add(piece)
        rest = memoryview(piece)
        try:
            while rest:
                rest = rest[os.write(self._handle, rest) :]
        except OSError as error:
            self._measured.stop()
            raise _away(self._path, error) from error

    def keep(self, expected: str | None = None) -> port.Kept:
        digest = self._measured.digest(expected)
        path = _place(self._folder, digest)
        try:
            os.fsync(self._handle)
            _make(path.parent)
            is_new = self._link(path)
            # All three: the process that created the upper ones may not have synced them yet.
            for folder in (path.parent, path.parent.parent, self._folder):
                _sync(folder)
        except OSError as error:
            raise _away(path, error) from error
        return port.Kept(digest, self._measured.size, is_new)

    def _link(self, path: Path) -> bool:
        """Give it its final name; returns whether it is new. Concurrent puts of one content all succeed."""
        try:
            path.hardlink_to(self._path)
        except FileExistsError:
            # Replacing repairs a damaged file, and renews an old one's age for the retention.
            self._path.replace(path)
            return False
        except OSError:  # a file system without hard links
            is_new = not path.exists()
            self._path.replace(path)
            return is_new
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        unlink = partial(self._path.unlink, missing_ok=True)
        close_all(self._measured.stop, unlink, partial(os.close, self._handle))


def _incoming(folder: Path) -> tuple[Path, int]:
    """A new file, locked before a sweep could delete it."""
    while True:
        path = folder / INCOMING / secrets.token_hex(16)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)  # whatever the umask
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.fstat(handle).st_nlink:  # otherwise a sweep came before the lock
                return path, handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


class _Pieces:
    """An open file from `start` to `end`, closed with its last reference, also if it is never read."""

    def __init__(self, handle: int, path: Path, start: int, end: int) -> None:
        self._handle, self._path, self._at, self._end = handle, path, start, end

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            piece = os.pread(self._handle, min(port.PIECE, self._end - self._at), self._at)
        except OSError as error:
            raise _away(self._path, error) from error
        if not piece:
            raise StopIteration
        self._at += len(piece)
        return piece

    def __del__(self) -> None:
        os.close(self._handle)


def _place(folder: Path, digest: str) -> Path:
    port.checked_digest(digest)
    return folder / digest[:2] / digest[2:4] / digest


def _make(folder: Path) -> None:
    """Create the folder and its missing parents, private and synced."""
    if folder.is_dir():
        return
    _make(folder.parent)
    with suppress(FileExistsError):
        folder.mkdir(0o700)
        folder.chmod(0o700)  # whatever the umask
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    sync_folder(str(folder))


def _away(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"artifacts: {path}: {error.strerror or error}")

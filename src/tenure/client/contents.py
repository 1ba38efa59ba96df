"""Bytes on their way to a place for artifacts, and back: in pieces, so that none has to fit into memory."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, NamedTuple, Self

from tenure.core.errors import InvalidInput

PIECE = 1 << 20
IN_MEMORY = 4 << 20  # bytes of a stream that are gathered before a file is made
ANYTHING = "application/octet-stream"

Given = bytes | os.PathLike[str] | BinaryIO


def type_of(name: str) -> str:
    """The media type that a name's ending speaks of."""
    guessed, encoding = mimetypes.guess_type(name, strict=False)
    return guessed if guessed and encoding is None else ANYTHING


class Source:
    """What shall be put: read twice, once for its digest and once to be sent; and sent again where that must be.

    A file is read from where it stands; what cannot be read twice, as a pipe, is gathered first.
    """

    def __init__(self, given: Given) -> None:
        self._file, self._is_ours = _opened(given)
        self._start = self._file.tell()
        hashed, size = hashlib.sha256(), 0
        for piece in self._read():
            hashed.update(piece)
            size += len(piece)
        self.digest, self.size = hashed.hexdigest(), size

    def pieces(self) -> Iterator[bytes]:
        """All of it, as it was when it was first read; InvalidInput where it has changed in length since."""
        self._file.seek(self._start)
        left = self.size
        while left and (piece := self._file.read(min(PIECE, left))):
            left -= len(piece)
            yield piece
        if left:
            raise InvalidInput(f"what is put became shorter by {left} bytes while it was read", "put it again")

    def close(self) -> None:
        """Somebody else's file is left as it was found, for the case that it is to be put once more."""
        if self._is_ours:
            self._file.close()
        else:
            self._file.seek(self._start)

    def _read(self) -> Iterator[bytes]:
        while piece := self._file.read(PIECE):
            yield piece

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _opened(given: Given) -> tuple[IO[bytes], bool]:
    if isinstance(given, bytes):
        import io

        return io.BytesIO(given), True
    if isinstance(given, os.PathLike):
        try:
            return _repeatable(Path(given).open("rb"))
        except OSError as error:
            raise InvalidInput(f"{os.fspath(given)}: {error.strerror or error}") from None
    if not hasattr(given, "read"):  # a text: as likely a path as the content itself
        raise InvalidInput(
            f"an artifact of {type(given).__name__}: bytes, a Path, or a file opened for bytes",
            'a text is put as `text.encode()`, a file as `Path("name")`',
        )
    file, is_ours = _repeatable(given)
    return file, is_ours and file is not given


def _repeatable(file: IO[bytes]) -> tuple[IO[bytes], bool]:
    if file.seekable():
        return file, True
    gathered = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 closed with the source
    while piece := file.read(PIECE):
        gathered.write(piece)
    gathered.seek(0)
    return gathered, True


class Putting(NamedTuple):
    """One artifact that shall be put."""

    project: str
    receipt: str
    name: str
    type: str
    source: Source


class Wanted(NamedTuple):
    """One artifact that is asked for: the last of its name, or of a generation; from `start` to before `end`."""

    project: str
    task: str
    name: str
    generation: int | None = None
    start: int = 0
    end: int | None = None


class Got:
    """An artifact: `view` says what it is; iterating, or `read`, gives its bytes, once.

    Read whole, its last piece comes only after all of it was compared with its digest.
    """

    def __init__(self, view: dict[str, Any], pieces: Iterator[bytes], close: Callable[[], None] = lambda: None) -> None:
        self.view, self._pieces, self._close = view, pieces, close

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._pieces
        finally:
            self._close()

    def read(self) -> bytes:
        return b"".join(self)

    def save(self, folder: str | Path, name: str | None = None, *, replace: bool = False) -> Path:
        """Write it into the folder, under its own name; never outside, and never over what is there unless told."""
        from tenure.artifacts.placement import place

        with self:
            return place(folder, name or self.view["name"], self, replace=replace)

    def close(self) -> None:
        """Want no more of it. Read to its end it is closed by itself."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()


class AsyncGot:
    """As Got, awaited."""

    def __init__(self, view: dict[str, Any], pieces: AsyncIterator[bytes]) -> None:
        self.view, self._pieces = view, pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self])


async def in_threads(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces, each made in a thread: reading a disk must not hold an event loop."""
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece

"""Bytes of artifacts to and from their store, in pieces: none has to fit into memory."""

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
IN_MEMORY = 4 << 20  # bytes of a stream that are buffered before a file is made
ANYTHING = "application/octet-stream"

Content = bytes | os.PathLike[str] | BinaryIO


def type_of(name: str) -> str:
    """The media type for a name's extension."""
    guessed, encoding = mimetypes.guess_type(name, strict=False)
    return guessed if guessed and encoding is None else ANYTHING


class Source:
    """The content of an upload: read once for its digest, then for each time it is sent.

    A file is read from its current position; a pipe, which cannot be read twice, is buffered first.
    """

    def __init__(self, given: Content) -> None:
        self._file, self._is_ours = _opened(given)
        self._start = self._file.tell()
        hashed, size = hashlib.sha256(), 0
        for piece in self._read():
            hashed.update(piece)
            size += len(piece)
        self.digest, self.size = hashed.hexdigest(), size

    def pieces(self) -> Iterator[bytes]:
        """All of it, as it was first read; InvalidInput where it has become shorter since."""
        self._file.seek(self._start)
        left = self.size
        while left and (piece := self._file.read(min(PIECE, left))):
            left -= len(piece)
            yield piece
        if left:
            raise InvalidInput(f"the artifact became shorter by {left} bytes while it was read", "store it again")

    def close(self) -> None:
        """The caller's own file is left open at its first position, so that it can be stored again."""
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


def _opened(given: Content) -> tuple[IO[bytes], bool]:
    if isinstance(given, bytes):
        import io

        return io.BytesIO(given), True
    if isinstance(given, os.PathLike):
        try:
            return _repeatable(Path(given).open("rb"))
        except OSError as error:
            raise InvalidInput(f"{os.fspath(given)}: {error.strerror or error}") from None
    if not hasattr(given, "read"):  # a str may be a path or the content itself
        raise InvalidInput(
            f"an artifact must be bytes, a Path, or a file opened for bytes (got {type(given).__name__})",
            'pass a text as `text.encode()`, a file as `Path("name")`',
        )
    file, is_ours = _repeatable(given)
    return file, is_ours and file is not given


def _repeatable(file: IO[bytes]) -> tuple[IO[bytes], bool]:
    if file.seekable():
        return file, True
    buffer = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 closed with the source
    while piece := file.read(PIECE):
        buffer.write(piece)
    buffer.seek(0)
    return buffer, True


class Upload(NamedTuple):
    """An artifact to store."""

    project: str
    receipt: str
    name: str
    type: str
    source: Source
    word: str | None = None  # of a runner


class Wanted(NamedTuple):
    """An artifact to read: the last of its name, or a generation's; from `start` to before `end`."""

    project: str
    task: str
    name: str
    generation: int | None = None
    start: int = 0
    end: int | None = None


class Download:
    """An artifact: `view` describes it; iterating, or `read`, returns its bytes, once.

    Read whole, its last piece comes only after all bytes matched its digest.
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
        """Write it into the folder under its own name, never outside; over an existing file only with `replace`."""
        from tenure.artifacts.placement import place

        with self:
            return place(folder, name or self.view["name"], self, replace=replace)

    def close(self) -> None:
        """Stop reading. At its end it closes by itself."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()


class AsyncDownload:
    """As Download, for asyncio."""

    def __init__(self, view: dict[str, Any], pieces: AsyncIterator[bytes]) -> None:
        self.view, self._pieces = view, pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def read(self) -> bytes:
        return b"".join([piece async for piece in self])


async def in_threads(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces, each read in a thread: reading a disk must not block an event loop."""
    while (piece := await asyncio.to_thread(next, pieces, None)) is not None:
        yield piece

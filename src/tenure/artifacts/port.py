"""The contract of a place for artifacts: whole contents, each under the SHA-256 of its bytes.

Nothing is seen before it is whole, the same content is kept once, and what is read is compared with its name: so a
reader has the bytes that were put, or an error. The suite in `tenure.testing.suites.artifacts` proves every sentence.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import BinaryIO, NamedTuple, Protocol, Self

from tenure.core.errors import Bug, InvalidInput, NotFound, StoreError, TooLarge

PIECE = 1 << 20  # bytes that are read at once
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PLAIN = re.compile(r"[a-z0-9_-][a-z0-9._-]{0,98}[a-z0-9_-]|[a-z0-9_-]")  # one spelling on every file system


class ArtifactCorrupt(StoreError):
    """What was read is not what was put."""

    code = "ARTIFACT_CORRUPT"


class Kept(NamedTuple):
    """A content that is in its place. `is_new`: it was not there before, as far as this put could see."""

    digest: str
    size: int
    is_new: bool


class Listed(NamedTuple):
    digest: str
    size: int
    age: float  # seconds since it was last put


class Writing(Protocol):
    """A content on its way. Leaving the block without `keep`, or the process's end, leaves nothing that is seen."""

    def write(self, piece: bytes) -> None:
        """Add to the content; raises TooLarge as soon as it passes its bound. After an error nothing can be kept."""

    def keep(self, expected: str | None = None) -> Kept:
        """Put it in its place, durably; once. Raises InvalidInput where it does not have the digest `expected`."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Artifacts(Protocol):
    """Safe to use from several threads and processes. Errors: NotFound, ArtifactCorrupt, StoreAway, InvalidInput."""

    url: str  # as it may be printed

    def begin(self, *, largest: int) -> Writing:
        """A new content of at most `largest` bytes."""

    def read(self, digest: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The content in pieces; NotFound comes at once, before the first is asked for.

        Read whole, it is compared with its digest before its last piece is handed out, so that nobody ever has all of
        a wrong content. A part of it (`start` to before `end`, cut at its size) can only be compared in length.
        """

    def size(self, digest: str) -> int | None:
        """How many bytes it has; None where it is not there."""

    def delete(self, digest: str) -> None:
        """Make it gone; nothing happens where it is not there. Who reads it now may still read to its end."""

    def listed(self) -> Iterator[Listed]:
        """All that is there, in no order. What is put or deleted meanwhile may or may not be seen."""

    def sweep(self) -> int:
        """Remove what writers left that ended before they kept it; never a living one's. How many there were."""

    def close(self) -> None: ...


# --- what all of them share ---------------------------------------------------------------------------------


def put(artifacts: Artifacts, content: Iterable[bytes], *, largest: int, expected: str | None = None) -> Kept:
    """Keep what comes, piece by piece."""
    with artifacts.begin(largest=largest) as writing:
        for piece in content:
            writing.write(piece)
        return writing.keep(expected)


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """A file's content from where it stands, for `put`."""
    while piece := file.read(PIECE):
        yield piece


class Measured:
    """Counts and hashes what is written, and stops it at its bound. What was stopped, or kept, takes no more."""

    def __init__(self, largest: int) -> None:
        self.size = 0
        self._largest = largest
        self._hash = hashlib.sha256()
        self._is_over = False

    def stop(self) -> None:
        """Let nothing be kept any more: a part of it is lost."""
        self._is_over = True

    def add(self, piece: bytes) -> None:
        self._go_on()
        self.size += len(piece)
        if self.size > self._largest:
            self.stop()
            raise TooLarge(
                f"an artifact of more than {self._largest} bytes", "`max_result_size` bounds results and artifacts."
            )
        self._hash.update(piece)

    def digest(self, expected: str | None) -> str:
        """Its name; raises InvalidInput where another was expected: bytes were lost or changed on the way."""
        self._go_on()
        self.stop()
        digest = self._hash.hexdigest()
        if expected is not None and digest != checked_digest(expected):
            raise InvalidInput(f"the content has the digest {digest}, not {expected}", "Send it again.")
        return digest

    def _go_on(self) -> None:
        if self._is_over:
            raise Bug("this content was kept, or stopped by an error; begin another")


def verified(digest: str, size: int, content: Iterable[bytes], start: int, end: int) -> Iterator[bytes]:
    """The pieces of `start` to `end` of a content that has `size` bytes; the last only once all of it was right."""
    checking = Checking(digest, size, start, end)
    for piece in content:
        if before := checking.take(piece):
            yield before
    if last := checking.finish():
        yield last


class Checking:
    """Compares what was read with what was put: each piece is given back when the next one is there."""

    def __init__(self, digest: str, size: int, start: int, end: int) -> None:
        self._digest = digest
        self._hash = hashlib.sha256() if start == 0 and end == size else None  # only the whole has a digest
        self._left = end - start
        self._last = b""

    def take(self, piece: bytes) -> bytes:
        """The piece before this one."""
        if not piece:
            return b""
        before, self._last = self._last, piece
        self._left -= len(piece)
        if self._hash is not None:
            self._hash.update(piece)
        return before

    def finish(self) -> bytes:
        """The last piece; raises ArtifactCorrupt where what was taken is not what was put."""
        if self._left or (self._hash is not None and self._hash.hexdigest() != self._digest):
            raise ArtifactCorrupt(
                f"artifact {self._digest}: its bytes are not those that were put",
                "Put the same content again: that mends it.",
            )
        return self._last


def checked_range(digest: str, size: int, start: int, end: int | None) -> tuple[int, int]:
    """Start and end within the content."""
    end = size if end is None else min(end, size)
    if not 0 <= start <= end:
        raise InvalidInput(f"artifact {digest}: no bytes from {start} to {end} in {size}")
    return start, end


def checked_digest(digest: str) -> str:
    """64 lower-case hexadecimal digits: nothing else ever becomes a part of a path."""
    if not _DIGEST.fullmatch(digest):
        raise InvalidInput(f"{digest[:80]!r} is not a digest", "A digest is 64 digits of 0-9 and a-f, in lower case.")
    return digest


def is_digest(name: str) -> bool:
    return _DIGEST.fullmatch(name) is not None


def missing(digest: str) -> NotFound:
    return NotFound(f"artifact {digest}: not there")


def part_of(*names: str) -> str:
    """The folder or prefix of a tenant, or of a project in it: each name where that is plain, else a hash of it.

    Each has its own, or the answer to a put would tell whether somebody else has the same content.
    """
    return "/".join(
        name if _PLAIN.fullmatch(name) else "~" + hashlib.sha256(name.encode()).hexdigest()[:32] for name in names
    )

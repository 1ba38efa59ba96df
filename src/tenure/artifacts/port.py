"""The contract of an artifact back end: whole contents, each under the SHA-256 of its bytes.

A content is not visible before it is complete, equal contents are kept once, and a read is compared with its digest: a
reader gets the bytes that were put, or an error. `tenure.testing.suites.artifact_suite` proves every sentence.
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
    """The stored bytes differ from those that were put."""

    code = "ARTIFACT_CORRUPT"


class Kept(NamedTuple):
    """A stored content. `is_new`: it did not exist before, as far as this put could see."""

    digest: str
    size: int
    is_new: bool


class Listed(NamedTuple):
    digest: str
    size: int
    age: float  # seconds since it was last put


class Writing(Protocol):
    """A content that is being written. Without `keep`, its block or process leaves nothing visible."""

    def write(self, piece: bytes) -> None:
        """Add to the content; raises TooLarge as soon as it exceeds its limit. After an error it cannot be kept."""

    def keep(self, expected: str | None = None) -> Kept:
        """Store it durably; once. Raises InvalidInput where it does not have the digest `expected`."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Artifacts(Protocol):
    """Safe to use from several threads and processes.

    Errors: NotFound, ArtifactCorrupt, StoreUnavailable, InvalidInput.
    """

    url: str  # without secrets

    def begin(self, *, largest: int) -> Writing:
        """A new content of at most `largest` bytes."""

    def read(self, digest: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The content in pieces; raises NotFound at once, before the first piece is read.

        A whole content is compared with its digest before its last piece is returned, so that no reader gets all of a
        wrong content. Of a part (`start` to before `end`, limited by its size) only the length is compared.
        """

    def size(self, digest: str) -> int | None:
        """Its number of bytes; None where it does not exist."""

    def delete(self, digest: str) -> None:
        """Delete it, if it exists. Current readers may still read to its end."""

    def listed(self) -> Iterator[Listed]:
        """Every content, in no order. One that is put or deleted meanwhile may or may not be listed."""

    def sweep(self) -> int:
        """Delete the unfinished contents of writers that have ended; returns how many there were."""

    def close(self) -> None: ...


# --- shared by all back ends ---------------------------------------------------------------------------------


def put(artifacts: Artifacts, content: Iterable[bytes], *, largest: int, expected: str | None = None) -> Kept:
    """Store the pieces as one content."""
    with artifacts.begin(largest=largest) as writing:
        for piece in content:
            writing.write(piece)
        return writing.keep(expected)


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """A file's content from its current position, for `put`."""
    while piece := file.read(PIECE):
        yield piece


class Measured:
    """Counts and hashes written pieces, up to a limit. After `stop` or `digest` it accepts no more."""

    def __init__(self, largest: int) -> None:
        self.size = 0
        self._largest = largest
        self._hash = hashlib.sha256()
        self._is_over = False

    def stop(self) -> None:
        """The content can no longer be kept: a part of it is lost."""
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
        """Its digest; raises InvalidInput where another was expected: bytes were lost or changed in transfer."""
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
    """The pieces from `start` to `end` of a content of `size` bytes; the last one only after the check."""
    checking = Checking(digest, size, start, end)
    for piece in content:
        if before := checking.take(piece):
            yield before
    if last := checking.finish():
        yield last


class Checking:
    """Checks the pieces of a read: each is returned when the next one has arrived."""

    def __init__(self, digest: str, size: int, start: int, end: int) -> None:
        self._digest = digest
        self._hash = hashlib.sha256() if start == 0 and end == size else None  # only the whole has a digest
        self.left = end - start  # bytes that have not come
        self._last = b""

    def take(self, piece: bytes) -> bytes:
        """The piece before this one."""
        if not piece:
            return b""
        before, self._last = self._last, piece
        self.left -= len(piece)
        if self.left < 0:
            raise self._corrupt()
        if self._hash is not None:
            self._hash.update(piece)
        return before

    def finish(self) -> bytes:
        """The last piece; raises ArtifactCorrupt where the pieces differ from those that were put."""
        if self.left or (self._hash is not None and self._hash.hexdigest() != self._digest):
            raise self._corrupt()
        return self._last

    def _corrupt(self) -> ArtifactCorrupt:
        return ArtifactCorrupt(
            f"artifact {self._digest}: its bytes are not those that were put",
            "Put the same content again to repair it.",
        )


def checked_range(digest: str, size: int, start: int, end: int | None) -> tuple[int, int]:
    """Start and end within the content."""
    end = size if end is None else min(end, size)
    if not 0 <= start <= end:
        raise InvalidInput(f"artifact {digest}: no bytes from {start} to {end} in {size}")
    return start, end


def checked_digest(digest: str) -> str:
    """64 lower-case hexadecimal digits: only these ever become part of a path."""
    if not _DIGEST.fullmatch(digest):
        raise InvalidInput(f"{digest[:80]!r} is not a digest", "A digest is 64 digits of 0-9 and a-f, in lower case.")
    return digest


def is_digest(name: str) -> bool:
    return _DIGEST.fullmatch(name) is not None


def missing(digest: str) -> NotFound:
    return NotFound(f"there is no artifact {digest}")


def part_of(*names: str) -> str:
    """The folder or prefix of a tenant, or of a project in it: each name where it is plain, else its hash.

    Shared contents would let the answer to a put reveal whether another tenant has the same content.
    """
    return "/".join(
        name if _PLAIN.fullmatch(name) else "~" + hashlib.sha256(name.encode()).hexdigest()[:32] for name in names
    )

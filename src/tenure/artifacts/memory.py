"""Artifacts in memory: for tests, and for a store that is itself in memory. They end with the process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, Self

from tenure.artifacts import port


class _Content(NamedTuple):
    bytes: bytes
    put_at: float


class MemoryArtifacts:
    def __init__(self, url: str = "memory://") -> None:
        self.url = url
        self._contents: dict[str, _Content] = {}  # single operations of a dict are atomic

    def begin(self, *, largest: int) -> _Writing:
        return _Writing(self._contents, largest)

    def read(self, digest: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        found = self._contents.get(port.checked_digest(digest))
        if found is None:
            raise port.missing(digest)
        size = len(found.bytes)
        start, end = port.checked_range(digest, size, start, end)
        parts = (found.bytes[at : min(at + port.PIECE, end)] for at in range(start, end, port.PIECE))
        return port.verified(digest, size, parts, start, end)

    def size(self, digest: str) -> int | None:
        found = self._contents.get(port.checked_digest(digest))
        return None if found is None else len(found.bytes)

    def delete(self, digest: str) -> None:
        self._contents.pop(port.checked_digest(digest), None)

    def listed(self) -> Iterator[port.Listed]:
        now = time.monotonic()
        for digest, content in list(self._contents.items()):
            yield port.Listed(digest, len(content.bytes), now - content.put_at)

    def sweep(self) -> int:
        return 0

    def close(self) -> None:
        pass


_shared: dict[tuple[str, str], MemoryArtifacts] = {}  # by URL and part


def shared(url: str, part: str) -> MemoryArtifacts:
    """The artifacts of that name, shared by all who open them in this process, until `forget`."""
    return _shared.setdefault((url, part), MemoryArtifacts(url))


def forget(url: str) -> None:
    """Drop the artifacts of that name, with their store."""
    for known in [key for key in _shared if key[0] == url]:
        _shared.pop(known, None)


class _Writing:
    def __init__(self, contents: dict[str, _Content], largest: int) -> None:
        self._contents = contents
        self._measured = port.Measured(largest)
        self._parts: list[bytes] = []

    def write(self, piece: bytes) -> None:
        self._measured.add(piece)
        self._parts.append(bytes(piece))

    def keep(self, expected: str | None = None) -> port.Kept:
        digest = self._measured.digest(expected)
        content = _Content(b"".join(self._parts), time.monotonic())
        is_new = self._contents.setdefault(digest, content) is content
        self._contents[digest] = content
        return port.Kept(digest, self._measured.size, is_new)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parts = []

"""Bounds on the output of a command that is kept."""

from __future__ import annotations

from tenure.core import limits

LONGEST_LINE = limits.OUTPUT_LINE_BYTES


class Lines:
    """Lines from chunks; a line that is too long is cut, so that no output can fill the memory."""

    def __init__(self) -> None:
        self._kept: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes."""
        *whole, last = chunk.split(b"\n")
        lines = []
        for line in whole:
            self._keep(line)
            lines.append(b"".join(self._kept))
            self._kept, self._size = [], 0
        self._keep(last)
        return lines

    def rest(self) -> list[bytes]:
        return [b"".join(self._kept)] if self._kept else []

    def _keep(self, part: bytes) -> None:
        part = part[: LONGEST_LINE - self._size]
        if part:
            self._kept.append(part)
            self._size += len(part)


class HeadAndTail:
    """The first bytes and the last."""

    def __init__(self, head: int, tail: int) -> None:
        self._most_head, self._most_tail = head, tail
        self._head, self._tail, self.left_out = bytearray(), bytearray(), 0

    def add(self, chunk: bytes) -> None:
        room = self._most_head - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room > 0 else chunk
        if len(self._tail) > 2 * self._most_tail:
            self._cut()

    def _cut(self) -> None:
        more = max(0, len(self._tail) - self._most_tail)
        self.left_out += more
        del self._tail[:more]

    def text(self) -> bytes:
        self._cut()
        gap = f"\n… {self.left_out:,} bytes left out …\n".encode() if self.left_out else b""
        return bytes(self._head) + gap + bytes(self._tail)

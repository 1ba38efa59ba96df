"""The chain of an access log: each line names the hash of the line before it, and this module checks it.

A line is one JSON object. `number` counts the lines of the chain from 1, `previous` is the SHA-256 of the bytes of the
line before, without its line break; the first line of a chain has "". A chain goes on through restarts and rotated
files. What this shows: a line that was changed, removed, inserted or moved. What it cannot show by itself: lines cut
off the end, or a file whose hashes were all computed again. Both show with a head that was kept elsewhere: the number
and hash of a line (`Head`).

A line that cannot be written leaves a hole in what the log says and none in the chain: the next line has their number
(`lost`).

A process that dies while it writes may leave a part of a line. The next process records it in its first line (`torn`:
the bytes and their hash), and goes on from the last whole line. Such a part is named, and is not a fault.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from tenure.core.errors import InvalidInput

NUMBER, PREVIOUS, TORN, LOST = "number", "previous", "torn", "lost"


class Head(NamedTuple):
    """The last line of a chain."""

    number: int = 0
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.number}:{self.digest}"


def parse_head(text: str) -> Head:
    number, _, digest = text.strip().partition(":")
    if not number.isdecimal() or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise InvalidInput(f"head {text[:80]!r} is not NUMBER:SHA256", "as the verbs of `audit` print it")
    return Head(int(number), digest)


def digest_of(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def line_after(head: Head, fields: Mapping[str, Any]) -> bytes:
    """The next line, without its line break."""
    return msgspec.json.encode({NUMBER: head.number + 1, PREVIOUS: head.digest, **fields})


def torn_part(part: bytes) -> dict[str, Any]:
    """What a line records about the part of a line before it."""
    return {"bytes": len(part), "sha256": digest_of(part)}


class Line(NamedTuple):
    number: int
    previous: str
    torn: Mapping[str, Any] | None = None
    lost: int = 0  # lines before it that could not be written


def read_line(text: bytes) -> Line | None:
    """The line's part of the chain; None where it is not a line of an access log."""
    try:
        found = msgspec.json.decode(text)
        line = Line(found[NUMBER], found[PREVIOUS], found.get(TORN), found.get(LOST, 0))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError, UnicodeDecodeError, RecursionError):
        return None
    is_whole = type(line.number) is type(line.lost) is int and isinstance(line.previous, str)
    return line if is_whole else None


def follows(head: Head, text: bytes) -> bool:
    line = read_line(text)
    return line is not None and (line.number, line.previous) == (head.number + 1, head.digest)


class ChainReport(NamedTuple):
    """The result of a check: `findings` are faults, `torn` parts of lines that are none.

    `lost`: operations that have no line, since none could be written; each place is a finding.
    """

    lines: int
    first: int | None
    head: Head
    findings: list[str]
    torn: list[str]
    lost: int = 0


def check(files: Iterable[tuple[str, Iterable[bytes]]], expected: Head | None = None) -> ChainReport:
    """Check a chain in its files, the oldest first, each with its name and its lines, which keep their line breaks.

    `expected` is a head that was kept elsewhere.
    """
    state = _Check(expected)
    for name, lines in files:
        state.begin(name)
        for text in lines:
            state.take(text)
        state.end_file()
    return state.result()


class _Check:
    def __init__(self, expected: Head | None) -> None:
        self._expected, self._met = expected, expected is None
        self._head: Head | None = None  # of the last whole line
        self._first: int | None = None
        self._lines = self._at = 0
        self._name = ""
        self._part: bytes | None = None  # not a line: torn, if the next one records it
        self._findings: list[str] = []
        self._torn: list[str] = []
        self._lost = 0

    def begin(self, name: str) -> None:
        self._name, self._at = name, 0

    def take(self, text: bytes) -> None:
        self._at += 1
        whole = text.endswith(b"\n")
        text = text.removesuffix(b"\n")
        line = read_line(text)
        if not whole:
            self._torn.append(f"{self._here()}: the last line is torn, after {len(text)} bytes; nothing follows it")
            return
        if line is None:
            self._settle_part()
            self._part = text
            return
        if self._part is not None and line.torn == torn_part(self._part):
            self._torn.append(f"{self._name}:{self._at - 1}: a line is torn, as the next one says")
            self._part = None
        self._settle_part()
        self._compare(line)
        if line.lost:
            self._lost += line.lost
            lines = "line was" if line.lost == 1 else "lines were"
            self._findings.append(f"{self._here()}: {line.lost} {lines} lost before it: the log could not be written")
        self._lines += 1
        self._head = Head(line.number, digest_of(text))
        if self._expected is not None and line.number == self._expected.number:
            self._met = True
            if self._head != self._expected:
                self._findings.append(f"{self._here()}: line {line.number} is not the one of the given head")

    def _compare(self, line: Line) -> None:
        if self._head is None:
            self._first = line.number
            if (line.number == 1) != (line.previous == ""):
                self._findings.append(f"{self._here()}: line {line.number} does not begin a chain")
            return
        missing = line.number - self._head.number - 1
        if missing > 0:
            which = f"{self._head.number + 1} to {line.number - 1}" if missing > 1 else str(line.number - 1)
            self._findings.append(f"{self._here()}: lines missing before it: {which}")
        elif missing < 0:
            self._findings.append(f"{self._here()}: line {line.number} after line {self._head.number}")
        elif line.previous != self._head.digest:
            self._findings.append(f"{self._here()}: line {self._head.number} before it was changed")

    def _settle_part(self) -> None:
        """A part that no line names was put there, or damaged."""
        if self._part is not None:
            self._findings.append(f"{self._name}:{self._at - 1}: not a line of an access log")
            self._part = None

    def end_file(self) -> None:
        self._at += 1
        self._settle_part()

    def result(self) -> ChainReport:
        head = self._head or Head()
        if self._expected is not None and not self._met:
            where = "begins after" if (self._first or 0) > self._expected.number else "ends before"
            self._findings.append(f"the chain {where} line {self._expected.number} of the given head")
        return ChainReport(self._lines, self._first, head, self._findings, self._torn, self._lost)

    def _here(self) -> str:
        return f"{self._name}:{self._at}"

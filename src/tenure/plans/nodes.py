"""A tree of nodes with their lines and columns, and the findings of its reader."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from tenure.core import limits
from tenure.core.errors import TenureError
from tenure.core.inputs import DEEPEST, LARGEST_BATCH

LARGEST_FILE = LARGEST_BATCH  # a plan is one command, and no command is larger
HEAVIEST = 4 * LARGEST_BATCH  # of a tree with its aliases expanded
NODE_WEIGHT = 16
MOST_FINDINGS = limits.PLAN_FINDINGS


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """An error or warning at a position of a file; lines and columns count from 1."""

    line: int
    column: int
    code: str
    message: str
    hint: str | None = None
    path: str = ""
    level: str = "error"

    def __str__(self) -> str:
        warning = "warning: " if self.level == "warning" else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.path}:{self.line}:{self.column}: {warning}{self.message}{hint}"


class SourcePosition(msgspec.Struct, frozen=True):
    line: int
    column: int


START = SourcePosition(1, 1)


class Findings:
    """Collects findings up to a limit, and counts the others."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: list[Finding] = []
        self.more = 0

    def add(
        self, place: SourcePosition, code: str, message: str, hint: str | None = None, level: str = "error"
    ) -> None:
        if len(self.found) >= MOST_FINDINGS:
            self.more += 1
            return
        self.found.append(
            Finding(
                line=place.line, column=place.column, code=code, message=message, hint=hint, path=self.path, level=level
            )
        )

    def put(self, fault: Fault) -> None:
        self.add(fault.place, fault.code, fault.message, fault.hint)

    @contextmanager
    def catching(self, place: SourcePosition) -> Iterator[None]:
        """A wrong value inside the block becomes a finding, an error of core one at `place`."""
        try:
            yield
        except Wrong as wrong:
            self.put(wrong)
        except TenureError as error:
            self.add(place, error.code, error.message, error.hint)

    def sorted(self) -> list[Finding]:
        found = sorted(self.found, key=lambda f: (f.line, f.column))
        if self.more:
            last = found[-1]
            found.append(
                Finding(
                    line=last.line, column=last.column, code="MORE", path=self.path,
                    message=f"{self.more} more; fix these first",
                )
            )  # fmt: skip
        return found


class Fault(Exception):
    """A finding, as an exception."""

    def __init__(self, place: SourcePosition, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.place, self.code, self.message, self.hint = place, code, message, hint


class Unreadable(Fault):
    """The rest of the text cannot be read: a syntax error, or a limit."""


class Wrong(Fault):
    """A value that its field does not accept; the rest is still read."""


class Node(msgspec.Struct, kw_only=True):
    place: SourcePosition
    weight: int = NODE_WEIGHT
    depth: int = 1


class Scalar(Node, kw_only=True):
    value: str | int | float | bool | None
    text: str  # as it was written, without its quotes


class Sequence(Node, kw_only=True):
    items: list[Node] = []


class Mapping(Node, kw_only=True):
    entries: dict[str, tuple[SourcePosition, Node]] = {}  # with the place of the key

    def get(self, key: str) -> Node | None:
        found = self.entries.get(key)
        return found[1] if found else None


def is_unset(node: Node | None) -> bool:
    """Missing, or without a value."""
    return node is None or (isinstance(node, Scalar) and node.value is None)


def plain(node: Node) -> Any:
    """The node as JSON has it."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    assert isinstance(node, Mapping)
    return {key: plain(value) for key, (_, value) in node.entries.items()}


class Builder:
    """Builds a tree from the nodes that a reader finds, within the limits of depth and weight."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.open: list[Sequence | Mapping] = []
        self.keys: list[tuple[str, SourcePosition] | None] = []  # for each open mapping: the key of the next value
        self.root: Node | None = None

    def begin(self, node: Sequence | Mapping) -> None:
        if len(self.open) >= DEEPEST:
            raise Unreadable(node.place, "TOO_LARGE", f"nested more than {DEEPEST} deep")
        self.open.append(node)
        self.keys.append(None)

    def end(self) -> Node:
        node = self.open.pop()
        self.keys.pop()
        return node

    def is_key_next(self) -> bool:
        return bool(self.open) and isinstance(self.open[-1], Mapping) and self.keys[-1] is None

    def key(self, text: str, place: SourcePosition) -> None:
        self.keys[-1] = (text, place)

    def put(self, node: Node) -> None:
        """Add a finished node to the container that is open, or make it the root."""
        if len(self.open) + node.depth > DEEPEST:
            raise Unreadable(node.place, "TOO_LARGE", f"nested more than {DEEPEST} deep")
        if not self.open:
            self.root = node
            return
        holder = self.open[-1]
        if isinstance(holder, Sequence):
            holder.items.append(node)
        else:
            key = self.keys[-1]
            assert key is not None
            text, place = key
            self.keys[-1] = None
            if text in holder.entries:
                first = holder.entries[text][0]
                self.findings.add(place, "DUPLICATE", f"{text[:60]!r} occurs twice; first in line {first.line}")
            holder.entries[text] = (place, node)
            holder.weight += len(text)
        holder.depth = max(holder.depth, node.depth + 1)
        holder.weight += node.weight
        if holder.weight > HEAVIEST:
            raise Unreadable(
                node.place,
                "TOO_LARGE",
                f"more than {HEAVIEST >> 20} MiB with its aliases expanded",
                "split it into several plans",
            )

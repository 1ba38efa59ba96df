"""A managed section in a user's Markdown file, and whole files that are ours.

    <!-- tenure:begin v1 sha256=0123456789abcdef -->
    …
    <!-- tenure:end -->

The hash is of the text in between: where it differs, a user has edited the section, and it is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from tenure.agents.recipes.pieces import ACTIVE, EDITED, MISSING, OUTDATED, SKILL, VERSION, CannotMerge, digest

_BEGIN = re.compile(r"<!-- tenure:begin (v\d+) sha256=([0-9a-f]+) -->\r?\n")
_ANY_BEGIN = re.compile(r"<!-- tenure:begin\b")
_END = "<!-- tenure:end -->"


class MarkedSection(NamedTuple):
    start: int
    end: int  # past the line's end
    body: str
    version: str
    hash: str


def find(text: str) -> MarkedSection | None:
    """The section in the text; CannotMerge where its marks are unbalanced."""
    marks = len(_ANY_BEGIN.findall(text)), text.count(_END)
    if marks == (0, 0):
        return None
    begin = _BEGIN.search(text)
    end = text.find(_END, begin.end()) if begin else -1
    if begin is None or end < 0 or marks != (1, 1):
        raise CannotMerge("has unbalanced marks of a tenure section; fix or delete them by hand")
    after = end + len(_END)
    after += 2 if text.startswith("\r\n", after) else text.startswith("\n", after)
    return MarkedSection(begin.start(), after, text[begin.end() : end].replace("\r\n", "\n"), begin[1], begin[2])


def without(text: str) -> str:
    """The text without the section, also where it was edited."""
    found = find(text)
    return text if found is None else _cut(text, found)


def _cut(text: str, found: MarkedSection) -> str:
    before, after = text[: found.start], text[found.end :]
    # The blank line before it was inserted with it.
    for line in ("\r\n", "\n"):
        if before.endswith(line * 2) and not after:
            before = before[: -len(line)]
            break
    return before + after


@dataclass(frozen=True)
class Section:
    """`body` is Markdown that ends with a newline; None: no section is wanted in this file."""

    path: str
    body: str | None
    what: str = "instructions"

    @property
    def is_wanted(self) -> bool:
        return self.body is not None

    def state(self, text: str | None) -> str:
        found = find(text) if text else None
        if found is None:
            return MISSING
        if digest(found.body) != found.hash:
            return EDITED
        return ACTIVE if (found.body, found.version) == (self.body, VERSION) else OUTDATED

    def steps(self, text: str | None) -> list[str]:
        assert self.body is not None
        section = f"<!-- tenure:begin {VERSION} sha256={digest(self.body)} -->\n{self.body}{_END}\n"
        if not text:
            return [section]
        line = "\r\n" if "\r\n" in text else "\n"
        apart = "" if text.endswith(line * 2) else line if text.endswith("\n") else line * 2
        return [text + apart + section.replace("\n", line)]

    def take(self, text: str) -> str | None:
        return without(text) or None


_SIGNED = re.compile(r"(?:<!--|//) tenure:file (v\d+) sha256=([0-9a-f]+)(?: -->)?\r?\n?\Z")


@dataclass(frozen=True)
class WholeFile:
    """A file of ours. Its last line has a digest of the text above."""

    path: str
    body: str
    what: str = SKILL
    comment: str = "<!-- {} -->"
    is_wanted: bool = True

    def state(self, text: str | None) -> str:
        if text is None:
            return MISSING
        signed = _SIGNED.search(text)
        if signed is None or digest(text[: signed.start()]) != signed[2]:
            return EDITED
        return ACTIVE if text.replace("\r\n", "\n") == self._content() else OUTDATED

    def steps(self, text: str | None) -> list[str]:
        if text is not None:
            raise CannotMerge("exists already, and is not of tenure")
        return [self._content()]

    def take(self, text: str) -> str | None:
        return None

    def _content(self) -> str:
        return self.body + self.comment.format(f"tenure:file {VERSION} sha256={digest(self.body)}") + "\n"

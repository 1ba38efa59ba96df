"""Texts without their escapes: those of JSON, shells and program literals, of HTML and of URLs. Pure.

One normal form for all spellings, however often and in whichever order the escapes were applied: a run of backslashes
counts as one, as do `&amp;amp;` and `%2525`. It is for comparing alone: two texts may have the same one. A text of n
characters takes time in proportion to n.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

ROUNDS = 5  # escapes of different kinds around each other
_HEX = "[0-9A-Fa-f]"
_ESCAPED = re.compile(
    rf"(?P<units>(?:\\++u{_HEX}{{4}})+)"
    rf"|\\++(?:U|u\{{)(?P<point>{_HEX}{{1,8}})\}}?"
    rf"|(?P<bytes>(?:\\++x{_HEX}{{2}})+)"
    r"|(?P<octal>(?:\\++[0-3][0-7]{2})+)"
    r"|\\++(?P<other>.|\Z)"
    rf"|&(?:amp;)*(?P<html>#[0-9]{{1,7}};?|#[xX]{_HEX}{{1,6}};?|[A-Za-z][A-Za-z0-9]{{1,31}};)"
    rf"|(?P<url>(?:%(?:25)*{_HEX}{{2}})+)",
    re.DOTALL,
)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\n": ""}  # the last: a line goes on in a shell


class Unescaped(NamedTuple):
    """The text, and from where to where each of its characters stands in the original."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def may_have_escapes(text: str) -> bool:
    return "\\" in text or "%" in text or "&" in text


def unescaped(text: str) -> str:
    for _ in range(ROUNDS):
        before, text = text, _ESCAPED.sub(_meant, text)
        if text == before:
            break
    return text


def unescaped_with_places(text: str) -> Unescaped:
    found = Unescaped(text, range(len(text)), range(1, len(text) + 1))
    for _ in range(ROUNDS):
        after = _once(found)
        if after.text == found.text:
            break
        found = after
    return found


def _once(before: Unescaped) -> Unescaped:
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []

    def keep(start: int, end: int) -> None:
        parts.append(before.text[start:end])
        starts.extend(before.starts[start:end])
        ends.extend(before.ends[start:end])

    at = 0
    for match in _ESCAPED.finditer(before.text):
        keep(at, match.start())
        meant, at = _meant(match), match.end()
        parts.append(meant)
        starts.extend([before.starts[match.start()]] * len(meant))
        ends.extend([before.ends[at - 1]] * len(meant))
    keep(at, len(before.text))
    return Unescaped("".join(parts), starts, ends)


def _meant(match: re.Match[str]) -> str:
    kind, text = match.lastgroup, match[0]
    if kind == "other":
        return _CONTROLS.get(match["other"], match["other"])
    if kind == "html":
        from html import unescape  # most texts have none; keeps startup fast

        return unescape("&" + match["html"])
    if kind == "units":
        units = bytes.fromhex("".join(part[-4:] for part in re.findall(rf"u{_HEX}{{4}}", text)))
        return units.decode("utf-16-be", "replace")
    if kind == "point":
        number = int(match["point"], 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
    if kind == "octal":
        return _decoded(bytes(int(part, 8) for part in re.findall(r"[0-7]{3}", text)))
    return _decoded(bytes.fromhex("".join(re.findall(rf"({_HEX}{{2}})(?=[%\\]|\Z)", text))))


def _decoded(found: bytes) -> str:
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found.decode("latin-1")

"""Untrusted text made safe to print: a terminal obeys control characters, and hidden direction marks mislead readers.
Pure; every interface that prints uses it."""

from __future__ import annotations

import re

from tenure.core.patterns import pattern

# C0 except tab and newline, DEL, C1, line separators, direction marks and overrides, lone surrogates.
_CONTROLS = pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
# All control characters, and all invisible ones.
_UNPRINTABLE = pattern("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]+")
_PLAIN_WORD = pattern("[A-Za-z0-9_@%+:,./-]+")


def neutral(text: str) -> str:
    """The text with each control character shown as its escape, as in `\\x1b`; lines and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub(_escaped, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """One line without control characters or invisible ones: runs of them become a space."""
    if text.isascii() and text.isprintable():
        return text
    return _UNPRINTABLE.sub(" ", text).strip()


def storable(text: str, most: int) -> str:
    """At most `most` characters of the text as every store takes them: NUL and lone surrogates as escapes.

    Through `str` itself: the text may be of a subclass whose methods do something else.
    """
    cut = str.__getitem__(text, slice(most))
    return str.encode(cut, "utf-8", "backslashreplace").decode().replace("\0", "\\x00")[:most]


def shell_word(text: str) -> str:
    """A name as one word of a command that a reader may copy: in quotes where a shell would do something with it."""
    if _PLAIN_WORD.fullmatch(text):
        return text
    import shlex  # rarely needed

    return shlex.quote(text)


def escaped_json(text: str) -> str:
    """The same JSON value, with control characters as JSON escapes."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

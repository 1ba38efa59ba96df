"""Untrusted text made safe to print: a terminal obeys control characters, and what nobody sees misleads readers, people
and models alike. Pure; every interface that prints uses it.

*Hidden* is each character that is drawn as nothing: format, private and unassigned characters, tags, selectors of
variants, fillers. It is spelled out (`‹U+200B›`, a longer run as their number), except where a script needs it: joiners
between letters of scripts that join, or after a virama; in an emoji its joiners, one selector, a keycap, and the tags
of the three flags that have them.
"""

from __future__ import annotations

import re
from typing import Any

from tenure.core.patterns import pattern

# C0 except tab and newline, DEL, C1, line separators, direction marks and overrides, lone surrogates.
_CONTROLS = pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
# The same and the ends of lines, for one line.
_LETTERLESS = pattern("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]+")
# Printable as far as Python knows, and drawn as nothing: grapheme joiner, fillers, selectors of variants.
_BLANK = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001bca0-\U0001bca3\U000e0100-\U000e01ef"
)
_BLANKS = pattern(f"[{_BLANK}]")
_SPACES = frozenset("\n\t\r\xa0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B))))
# Signs before Arabic, Syriac and Kaithi numbers, which are drawn; and emoji that are newer than this Python.
_DRAWN = pattern(
    "[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U0001f000-\U0001faff\U0001fc00-\U0001fffd]"
)
_TAGGED = ("gbeng", "gbsct", "gbwls")  # England, Scotland, Wales
_TAGS = "|".join("".join(chr(0xE0000 + ord(letter)) for letter in name) for name in _TAGGED)
_FLAGS = pattern(f"\U0001f3f4(?:{_TAGS})\U000e007f")
_JOINERS = "\u200c\u200d"
_RUN = 4  # hidden characters in a row that are spelled out one by one
_PLAIN_WORD = pattern("[A-Za-z0-9_@%+:,./-]+")


def neutral(text: str) -> str:
    """The text with each control character shown as its escape, as in `\\x1b`, and hidden ones spelled out.

    Lines and tabs stay.
    """
    if text.isascii() and text.isprintable():
        return text
    return visible(_CONTROLS.sub(_escaped, text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """One line without control characters or direction marks, runs of which become a space; hidden ones spelled out."""
    if text.isascii() and text.isprintable():
        return text
    return visible(_LETTERLESS.sub(" ", text)).strip()


def visible(text: str) -> str:
    """The text with its hidden characters spelled out; controls stay as they are."""
    places = _hidden(text)
    if not places:
        return text
    parts, at = [], 0
    while places:
        first, count = places[0], 1
        while count < len(places) and places[count] == first + count:
            count += 1
        run = text[first : first + count]
        spelled = "".join(f"‹U+{ord(char):04X}›" for char in run) if count <= _RUN else f"‹{count} hidden characters›"
        parts += [text[at:first], spelled]
        at, places = first + count, places[count:]
    return "".join((*parts, text[at:]))


def visible_value(value: Any) -> Any:
    """The same structure with `visible` texts: for readers that get it as a value."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible_value(name): visible_value(part) for name, part in value.items()}
    return [visible_value(part) for part in value] if isinstance(value, (list, tuple)) else value


def _hidden(text: str) -> list[int]:
    """Where the hidden characters are."""
    if text.isascii() or (text.isprintable() and not _BLANKS.search(text)):
        return []
    allowed = {at for found in _FLAGS.finditer(text) for at in range(*found.span())}
    return [
        at for at, char in enumerate(text) if _may_be_hidden(char) and at not in allowed and not _is_needed(text, at)
    ]


def _may_be_hidden(char: str) -> bool:
    if char.isprintable():
        return char > "\u034e" and _BLANKS.match(char) is not None
    return char >= "\xa0" and char not in _SPACES and not "\ud800" <= char <= "\udfff" and not _DRAWN.match(char)


def _is_needed(text: str, at: int) -> bool:
    """Whether the characters beside it need it."""
    char, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if not before:
        return False
    if char in _JOINERS:
        if char == "\u200d" and _is_emoji(after) and (_is_emoji(before) or before == "\ufe0f"):
            return True
        return _is_virama(before) or (_joins(before) and _joins(after))
    if char in "\ufe0e\ufe0f":
        return _is_emoji(before) or (before in "0123456789#*" and after == "\u20e3")
    if "\u180b" <= char <= "\u180f":
        return "\u1820" <= before <= "\u18aa"
    if char == "\u2800":  # between words in braille
        return "\u2801" <= before <= "\u28ff" and "\u2801" <= after <= "\u28ff"
    return False


def _joins(char: str) -> bool:
    """A letter or mark of a script in which letters join: neither Latin, Greek or Cyrillic, nor an ideograph."""
    if not "\u0590" <= char < "\u3000" and not "\U00010a00" <= char < "\U00012000":
        return False
    from unicodedata import category  # rarely needed; keeps startup fast

    return category(char)[0] in "LM"


def _is_virama(char: str) -> bool:
    from unicodedata import combining

    return combining(char) == 9


def _is_emoji(char: str) -> bool:
    if not char or char < "\xa9":
        return False
    if "\U0001f000" <= char <= "\U0001faff":
        return True
    from unicodedata import category

    return category(char) in ("So", "Sm") or char in "‼⁉〰〽"


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
    """The same JSON value, with control characters and hidden ones as JSON escapes."""
    text = _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    places = _hidden(text)
    if not places:
        return text
    chars = list(text)
    for at in places:
        units = chars[at].encode("utf-16-be")
        chars[at] = "".join(f"\\u{units[n : n + 2].hex()}" for n in range(0, len(units), 2))
    return "".join(chars)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

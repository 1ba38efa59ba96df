"""YAML for people to read and edit; `yaml_trees` reads the same values back.

Not a library's writer: our reader's schema decides which texts need quotes, and texts of several lines become blocks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tenure.core import limits

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./@+-]*( [A-Za-z0-9_./@+-]+)*")
# Other readers do not take these words for texts.
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
# Characters that a line may contain unescaped: no controls, no other line breaks, none without a glyph.
_SHOWN = re.compile("[\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_BLOCK = re.compile(rf"(?!\s){_SHOWN.pattern}(?:{_SHOWN.pattern}|\n)*")
LONGEST_KEY = limits.PLAN_YAML_KEY
WIDEST = 100


def document(value: Mapping[str, Any]) -> str:
    """One YAML document, without the `---` before it."""
    return "".join(_mapping(value, 0))


def scalar(value: Any) -> str:
    """A scalar that fits into any place of a line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    if _BARE.fullmatch(text) and text.lower() not in _WORDS and len(text) <= WIDEST:
        return text
    return '"' + "".join(_ESCAPES.get(c) or (c if _SHOWN.fullmatch(c) else _escaped(c)) for c in text) + '"'


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _mapping(value: Mapping[str, Any], indent: int) -> list[str]:
    pad = " " * indent
    lines = []
    for key, item in value.items():
        name = scalar(key)
        if len(name) > LONGEST_KEY:  # YAML needs a mark before a longer key
            lines.append(f"{pad}? {name}\n{pad}:")
        else:
            lines.append(f"{pad}{name}:")
        lines += _value(item, indent)
    return lines


def _value(value: Any, indent: int) -> list[str]:
    """The value behind a key: on its line, or below it."""
    if isinstance(value, Mapping):
        return ["\n", *_mapping(value, indent + 2)] if value else [" {}\n"]
    if isinstance(value, Sequence) and not isinstance(value, str):
        if not value:
            return [" []\n"]
        if not any(isinstance(item, (Mapping, list, tuple)) for item in value):
            line = f"[{', '.join(scalar(item) for item in value)}]"
            if len(line) <= WIDEST:
                return [f" {line}\n"]
        return ["\n", *_sequence(value, indent + 2)]
    if isinstance(value, str) and "\n" in value:
        block = _block(value, indent + 2)
        if block is not None:
            return [f" {block}"]
    return [f" {scalar(value)}\n"]


def _sequence(value: Sequence[Any], indent: int) -> list[str]:
    pad = " " * indent
    lines = []
    for item in value:
        if isinstance(item, Mapping) and item:
            first, *rest = _mapping(item, indent + 2)
            lines += [f"{pad}- {first[indent + 2 :]}", *rest]
        else:
            lines += [f"{pad}-", *_value(item, indent)]
    return lines


def _block(text: str, indent: int) -> str | None:
    """A literal block; None where the text does not fit into one, such as with several line breaks at its end."""
    if not _BLOCK.fullmatch(text) or text.endswith("\n\n"):
        return None
    pad = " " * indent
    body = "".join(f"{pad}{line}\n" if line else "\n" for line in text.removesuffix("\n").split("\n"))
    return ("|\n" if text.endswith("\n") else "|-\n") + body

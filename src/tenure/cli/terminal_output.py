"""The only module that writes to a terminal or pipe: the only control characters it sends are our own styles.

`text_format.style` marks styles with a word that foreign text cannot know; here the marks become escapes, and every
other control character is shown instead of sent. A test checks that other modules do not print.
"""

from __future__ import annotations

import re
import sys
from typing import Any, TextIO

from tenure.cli.text_format import MARK
from tenure.core.safe_text import escaped_json, neutral

_STYLES = re.compile(f"{re.escape(MARK)}([0-9;]*)m")
_DRAWN = re.compile("(\x1b\\[[0-9;]*m)")


def printed(text: str) -> str:
    """The text as it is sent."""
    if MARK not in text:
        return neutral(text)
    parts = _STYLES.split(text)  # text, style, text, style, …
    return "".join(f"\x1b[{part}m" if number % 2 else neutral(part) for number, part in enumerate(parts))


def drawn(frame: str) -> str:
    """A frame that rich has drawn, without any control but styles."""
    parts = _DRAWN.split(frame)
    return "".join(part if number % 2 else neutral(part) for number, part in enumerate(parts))


def say(text: str, stream: TextIO | None = None) -> None:
    """Write the text and the end of its line, now."""
    stream = stream or sys.stdout
    text = printed(text)
    text = text if text.endswith("\n") else text + "\n"
    try:
        stream.write(text)
    except UnicodeEncodeError:  # a terminal that has not all of these characters
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def say_json(value: Any) -> None:
    """Write one JSON value on a line, now. It is the same value with its control characters escaped as JSON does."""
    import msgspec

    try:
        text = msgspec.json.encode(value).decode()
        sys.stdout.write((text if text.isascii() and "\x7f" not in text else escaped_json(text)) + "\n")
    except UnicodeEncodeError:  # by the terminal's encoding, or for half of a character that a shell passed on
        import json

        sys.stdout.write(json.dumps(msgspec.to_builtins(value)) + "\n")
    sys.stdout.flush()


def asked(question: str) -> bool:
    """Whether the person at the terminal says yes."""
    sys.stdout.write(f"{printed(question)} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")

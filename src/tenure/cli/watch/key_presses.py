"""Key presses of a terminal as names: `up`, `enter`, `escape`, or the character itself."""

from __future__ import annotations

import codecs
import re

# A whole sequence: CSI with parameters, SS3 with one letter, or escape and one other character (Alt held down).
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O[A-Za-z]|[^\[O])")
_NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down", "\x1b[C": "right", "\x1bOC": "right",
    "\x1b[D": "left", "\x1bOD": "left", "\x1b[5~": "page_up", "\x1b[6~": "page_down", "\x1b[H": "home",
    "\x1bOH": "home", "\x1b[1~": "home", "\x1b[F": "end", "\x1bOF": "end", "\x1b[4~": "end",
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace", "\x15": "clear",
}  # fmt: skip
SOON = 0.05  # seconds within which the rest of a sequence comes; what comes later is another key


class Keys:
    """Names of keys from bytes as they come; an incomplete sequence is kept until its rest arrives."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = ""

    @property
    def is_partial(self) -> bool:
        return bool(self._left)

    def feed(self, data: bytes) -> list[str]:
        text = self._left + self._decoder.decode(data)
        self._left = ""
        found = []
        while text:
            if text[0] != "\x1b":
                found.append(_NAMES.get(text[0], text[0]))
                text = text[1:]
                continue
            sequence = _SEQUENCE.match(text)
            if sequence is None:
                self._left = text
                break
            found.append(_NAMES.get(sequence[0], ""))
            text = text[sequence.end() :]
        return [name for name in found if len(name) > 1 or (name and name.isprintable())]

    def flush(self) -> list[str]:
        """The rest when no more came in time: the escape key itself."""
        left, self._left = self._left, ""
        return ["escape"] if left else []

"""How many tokens a text costs, near enough, and texts made to fit.

No model's own tokenizer is at hand, and they differ. The estimate counts pieces as they all cut them: a word counts
one for each six letters begun, a number one for each three digits, any other character one, a line end one; single
spaces are free. On English prose and code that is above what the tokenizers in use say, never far below.
"""

from __future__ import annotations

import re

_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|[^\sA-Za-z0-9]|\n|[ \t]{2,}")
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\\s]+")


def estimate(text: str) -> int:
    total = 0
    for piece in _PIECES.findall(text):
        first = piece[0]
        if first.isascii() and first.isalpha():
            total += -(-len(piece) // 6)
        elif first.isascii() and first.isdigit():
            total += -(-len(piece) // 3)
        else:
            total += 1
    return total


def one_line(text: str, most: int) -> str:
    """The text on one line, within `most` tokens; what was cut off shows as `…`.

    Without control characters and invisible ones: what other agents wrote must not look like anything but text.
    """
    plain = _UNPRINTABLE.sub(" ", text).strip()
    if len(plain) <= most or estimate(plain) <= most:
        return plain
    low, high = 0, len(plain)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(plain[:middle] + "…") <= most:
            low = middle
        else:
            high = middle - 1
    return plain[:low].rstrip() + "…"

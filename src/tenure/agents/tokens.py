"""Estimate how many tokens a text takes, and cut texts to a budget.

Tokenizers differ between models and are not available here. The estimate counts one token per started six letters of a
word, per started three digits of a number, per other character and per line end; single spaces are free. On English
prose and code it is higher than the tokenizers in use, and never far below.
"""

from __future__ import annotations

import re

from tenure.core import safe_text

_PIECES = re.compile(r"[A-Za-z]+|[0-9]+|[^\sA-Za-z0-9]|\n|[ \t]{2,}")


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
    """The text on one line, within `most` tokens; `…` marks a cut."""
    plain = " ".join(safe_text.one_line(text).split())
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

"""Texts without secrets: receipts, keys, tokens and passwords are recognised by their form."""

from __future__ import annotations

import re

from tenure.core import limits

GONE = "…"
TRACE = "$trace"  # in a claim's metadata: the stack trace of its failure

_PATTERNS = (
    # The tenant and the id of a key are public.
    (re.compile(r"\b(tnr_(?:[0-9a-z-]{1,40}_)?[0-9a-z]{4,})_[0-9a-z]{8,}", re.IGNORECASE), rf"\1_{GONE}"),
    (re.compile(r"((?:@|%40)[0-9]{1,18}(?::|%3A))[0-9A-Za-z]{6,}", re.IGNORECASE), rf"\1{GONE}"),  # a receipt
    (re.compile(r"\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?"), f"eyJ{GONE}"),  # a JSON web token
    (re.compile(r"\b(bearer|basic)(\s+|%20)[^\s,;\"']+", re.IGNORECASE), rf"\1\2{GONE}"),
    (re.compile(r"(://[^/@:\s]*:)[^@/\s]+@"), rf"\1{GONE}@"),  # a password in an address
    (re.compile(r"\b((?:\w*token|password|secret|receipt|api_?key|key)=)[^&\s\"']+", re.IGNORECASE), rf"\1{GONE}"),
)
# Every match of the other patterns contains one of these: most texts need one search, not six.
_HINT = re.compile(r"[@=%]|eyJ|[tT][nN][rR]_|[bB](?:[eE][aA][rR]|[aA][sS][iI])")


def without_secrets(text: str) -> str:
    """The text without anything that looks like a secret."""
    if _HINT.search(text) is None:
        return text
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def kept_trace(trace: str) -> str:
    """A stack trace as it is kept: without secrets; of a long one its beginning and, above all, its end."""
    trace = without_secrets(trace)
    if len(trace) <= limits.TRACE:
        return trace
    begin = limits.TRACE // 4
    return f"{trace[:begin]}\n  {GONE}\n{trace[-(limits.TRACE - begin - 5) :]}"

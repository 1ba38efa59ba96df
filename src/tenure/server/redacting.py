"""What must never stand in a log: receipts, nonces, keys, tokens and passwords, by their names and by their looks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tenure.core import limits

GONE = "…"
DEEPEST = limits.LOG_DEPTH
LONGEST = limits.LOG_TEXT

# Fields that are left out, whatever is in them. `key` is not among them: it is what a task is called.
SECRET = frozenset(
    {
        "api_key", "access_token", "authorization", "cookie", "client_secret", "nonce", "password", "private_key",
        "proxy-authorization", "receipt", "receipts", "secret", "set-cookie", "token",
    }
)  # fmt: skip
_LOOKS = (
    (re.compile(r"\b(tnr_[0-9a-z]{4,})_[0-9a-z]{8,}", re.IGNORECASE), rf"\1_{GONE}"),  # the id of a key is public
    (re.compile(r"((?:@|%40)[0-9]{1,18}(?::|%3A))[0-9A-Za-z]{6,}", re.IGNORECASE), rf"\1{GONE}"),  # a receipt
    (re.compile(r"\beyJ[\w-]{5,}\.[\w-]+(?:\.[\w-]*)?"), f"eyJ{GONE}"),  # a JSON web token
    (re.compile(r"\b(bearer|basic)(\s+|%20)[^\s,;\"']+", re.IGNORECASE), rf"\1\2{GONE}"),
    (re.compile(r"(://[^/@:\s]*:)[^@/\s]+@"), rf"\1{GONE}@"),  # a password in an address
    (
        re.compile(r"\b((?:\w*token|password|secret|receipt|api_?key|key)=)[^&\s\"']+", re.IGNORECASE),
        rf"\1{GONE}",
    ),
)
# One of these is in whatever the others find: most texts are looked at once, not six times.
_HINT = re.compile(r"[@=%]|eyJ|[tT][nN][rR]_|[bB](?:[eE][aA][rR]|[aA][sS][iI])")


def without_secrets(text: str) -> str:
    """The text with all that looks like a secret taken out, cut to a bearable length."""
    if len(text) > LONGEST:
        text = text[:LONGEST] + GONE
    if _HINT.search(text) is None:
        return text
    for looks, instead in _LOOKS:
        text = looks.sub(instead, text)
    return text


def redacted(value: Any, depth: int = 0) -> Any:
    """The same for a value that is to be logged, fields with a secret's name left out."""
    if isinstance(value, str):
        return without_secrets(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if depth >= DEEPEST or isinstance(value, (bytes, bytearray)):
        return GONE  # bytes are a nonce or a body: nothing to read
    if isinstance(value, Mapping):
        return {
            without_secrets(str(name)): redacted(part, depth + 1)
            for name, part in value.items()
            if str(name).lower() not in SECRET
        }
    if isinstance(value, (list, tuple, set, frozenset)):
        return [redacted(part, depth + 1) for part in value]
    return without_secrets(str(value))

"""The names whose values are secrets: of a task's fields, of log fields, and in texts. Pure."""

from __future__ import annotations

import re

WORDS = ("password", "secret", "api_key", "access_token", "auth_token", "private_key")
# Outside of a task's fields also: what programs call a credential in what they print.
PRINTED = (
    "token",
    "receipt",
    "receipts",
    "passwd",
    "passphrase",
    "pwd",
    "authorization",
    "cookie",
    "nonce",
    "access_key",
)

_WORD_ENDS = re.compile(r"[^a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDING = re.compile(rf"(?:^|_)(?:{'|'.join(WORDS)})$")
_PRINTED_ENDING = re.compile(rf"(?:^|_)(?:{'|'.join((*WORDS, *PRINTED))})$")


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is a secret: it ends in a whole word of the list, however the words are joined."""
    return _ENDING.search(_joined(name)) is not None


def names_credential(name: str) -> bool:
    """The same for logs and for texts of programs, where a harmless value may be lost too."""
    return _PRINTED_ENDING.search(_joined(name)) is not None


def _joined(name: str) -> str:
    return _WORD_ENDS.sub("_", _CAMEL.sub("_", name).lower()).strip("_")

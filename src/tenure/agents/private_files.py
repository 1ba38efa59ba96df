"""Small files for the user alone."""

from __future__ import annotations

import os
import string
from contextlib import suppress

_PLAIN = frozenset(string.ascii_letters + string.digits + "-_.")


def write_private(path: str, content: bytes) -> None:
    """Write a file for the user alone, by a rename: a reader sees the old content or the new, never half of it."""
    new = f"{path}.{os.getpid()}"
    try:
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
        os.replace(new, path)
    except OSError:
        with suppress(OSError):
            os.unlink(new)
        raise


def safe_name(name: str) -> str:
    """A file name for any text; one that could be mistaken or leave the folder is named by its hash."""
    if name and set(name) <= _PLAIN and not name.startswith(".") and len(name) <= 100:
        return name
    import hashlib

    return "h-" + hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:40]

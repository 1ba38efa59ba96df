"""Small files that only the user can read."""

from __future__ import annotations

import os
import string
from contextlib import suppress

_PLAIN = frozenset(string.ascii_letters + string.digits + "-_.")


def write_private(path: str, content: bytes) -> None:
    """Write a file that only the user can read, atomically by a rename."""
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
    """A file name for any text; a text that is not safe as a name becomes its hash."""
    if name and set(name) <= _PLAIN and not name.startswith(".") and len(name) <= 100:
        return name
    import hashlib

    return "h-" + hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:40]

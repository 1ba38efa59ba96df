"""Paths of a user's tables, which override the shipped ones; `tiers.py` and `prices.py` read them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenure.core import limits
from tenure.core.errors import InvalidInput

LARGEST = limits.OWN_TABLE_BYTES


class UserTables(NamedTuple):
    """None: only the shipped table."""

    prices: str | None = None
    tiers: str | None = None


def read_own(path: str) -> dict[str, Any]:
    """The contents of a user's file; raises InvalidInput, which names the file, if it cannot be read."""
    import tomllib  # 8 ms, for the few who have a file

    try:
        with open(path, "rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from None
    if len(text) > LARGEST:
        raise InvalidInput(f"{path}: must have at most {LARGEST:,} bytes")
    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path}: {error}") from None

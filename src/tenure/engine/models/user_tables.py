"""A user's own tables, which come before those that ship as data: paths of files; `tiering` and `pricing` read them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tenure.core import limits
from tenure.core.errors import InvalidInput

LARGEST = limits.OWN_TABLE_BYTES


class UserTables(NamedTuple):
    """None: what ships is all."""

    prices: str | None = None
    tiers: str | None = None


def read_own(path: str) -> dict[str, Any]:
    """What a user's file says; raises InvalidInput, which names it, for one that cannot be read."""
    import tomllib  # 8 ms, for the few who have a file

    try:
        with open(path, "rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from None
    if len(text) > LARGEST:
        raise InvalidInput(f"{path}: more than {LARGEST:,} bytes")
    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path}: {error}") from None

"""Where the tiers of models come from: those that ship, and a user's own file laid over them, key by key.

[families.anthropic.small]
model = "claude-haiku-4-5"

[rules]
small_below_tokens = 20000
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from tenure.core.errors import InvalidInput
from tenure.core.tiers import Tiers

SHIPPED = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "data", "tiers.json")
LARGEST = 1 << 20  # bytes of a user's file


@cache
def tier_table(own: str | None = None) -> Tiers:
    """Tiers, with what the file `own` says before them; raises InvalidInput for one that cannot be understood."""
    with open(SHIPPED, "rb") as file:
        shipped = file.read()
    if own is None:
        return Tiers(shipped)
    try:
        return Tiers(shipped, _read(own))
    except InvalidInput as error:
        raise InvalidInput(f"{own}: {error.message}", error.hint) from None


def _read(path: str) -> dict[str, Any]:
    import tomllib  # 8 ms, for the few who have a file

    try:
        with open(path, "rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidInput(str(error.strerror)) from None
    if len(text) > LARGEST:
        raise InvalidInput(f"more than {LARGEST:,} bytes")
    try:
        return tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(str(error)) from None

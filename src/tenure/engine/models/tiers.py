"""The model tiers: the shipped ones, overridden by a user's file, key by key.

[families.anthropic.small]
model = "claude-haiku-4-5"

[rules]
small_below_tokens = 20000
"""

from __future__ import annotations

import os
from functools import cache

from tenure.core.errors import InvalidInput
from tenure.core.tiers import Tiers
from tenure.engine.models.user_tables import read_own

SHIPPED = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "data", "tiers.json")


@cache
def tier_table(own: str | None = None) -> Tiers:
    """Tiers, with those of the file `own` first; raises InvalidInput for an invalid file."""
    with open(SHIPPED, "rb") as file:
        shipped = file.read()
    if own is None:
        return Tiers(shipped)
    content = read_own(own)
    try:
        return Tiers(shipped, content)
    except InvalidInput as error:
        raise InvalidInput(f"{own}: {error.message}", error.hint) from None

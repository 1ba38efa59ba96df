"""The tables of prices and of model tiers: the shipped ones, overridden by a user's file, key by key.

prices.toml:
[models."my-model"]
fresh = "0.50"      # dollars for a million tokens, as texts: money is exact
cached = "0.05"
output = "2"

tiers.toml:
[families.anthropic.small]
model = "claude-haiku-4-5"

[rules]
small_below_tokens = 20000
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.models import Tiers

if TYPE_CHECKING:
    from tenure.core.prices import Prices

LARGEST = limits.OWN_TABLE_BYTES


@cache
def tier_table(own: str | None = None) -> Tiers:
    """Tiers, with those of the file `own` first; raises InvalidInput for an invalid file. Read once."""
    shipped = read_shipped("tiers.json")
    if own is None:
        return Tiers(shipped)
    content = _read_own(own)
    try:
        return Tiers(shipped, content)
    except InvalidInput as error:
        raise InvalidInput(f"{own}: {error.message}", error.hint) from None


@cache
def price_table(own: str | None = None) -> Prices:
    """Prices, with those of the file `own` first; raises InvalidInput for an invalid file. Read once."""
    from tenure.core.prices import Prices  # most commands need no price

    shipped = read_shipped("prices.json")
    if own is None:
        return Prices(shipped)
    content = _read_own(own)
    models = content.pop("models", {})
    if content or not isinstance(models, dict):
        raise InvalidInput(f'{own}: only tables [models."NAME"] are allowed')
    return Prices(shipped, models)


def read_shipped(name: str) -> bytes:
    folder = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    with open(os.path.join(folder, "data", name), "rb") as file:
        return file.read()


def _read_own(path: str) -> dict[str, Any]:
    """The contents of a user's file; raises InvalidInput, which names the file, if it cannot be read."""
    from tenure.core.toml_text import parsed  # 8 ms, for the few who have a file

    try:
        with open(path, "rb") as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from None
    if len(text) > LARGEST:
        raise InvalidInput(f"{path}: must have at most {LARGEST:,} bytes")
    return parsed(path, text)

"""The price table: the shipped one, overridden by a user's file.

[models."my-model"]
fresh = "0.50"      # dollars for a million tokens, as texts: money is exact
cached = "0.05"
output = "2"
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tenure.core.errors import InvalidInput
from tenure.core.prices import Prices
from tenure.engine.models.user_tables import read_own

SHIPPED = Path(__file__).parents[2] / "data" / "prices.json"


@cache
def price_table(own: str | None = None) -> Prices:
    """Prices, with those of the file `own` first; raises InvalidInput for an unreadable file. Read once."""
    if own is None:
        return Prices(SHIPPED.read_bytes())
    content = read_own(own)
    models = content.pop("models", {})
    if content or not isinstance(models, dict):
        raise InvalidInput(f'{own}: only tables [models."NAME"] are allowed')
    return Prices(SHIPPED.read_bytes(), models)

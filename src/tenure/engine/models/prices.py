"""Where the table of prices comes from: the one that ships, and a user's own file before it.

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
    """Prices, with those of the file `own` first; raises InvalidInput for a file that cannot be read. Read once."""
    if own is None:
        return Prices(SHIPPED.read_bytes())
    content = read_own(own)
    models = content.pop("models", {})
    if content or not isinstance(models, dict):
        raise InvalidInput(f'{own}: prices stand below [models."NAME"], and nothing else does')
    return Prices(SHIPPED.read_bytes(), models)

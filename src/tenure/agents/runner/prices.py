"""Before an agent spends: whether a budget in dollars would see what it costs.

Some CLIs report dollars, some name the models that they used; of the others the settings name it. Where none
of that gives a price, a budget in dollars would stay at zero while the agent spends, so the run is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.agents.runner.clis.cli import Cli
from tenure.core.budgets import USD
from tenure.core.errors import TenureError
from tenure.core.prices import Prices


class NoPrice(TenureError):
    code = "NO_PRICE"


def check_priced(
    cli: Cli, model: str | None, headroom: Mapping[str, Any], prices: Prices, now: int, *, command: str
) -> None:
    """Refuse an agent that would spend unseen. `model`: the one that it will use, None where it is not known."""
    if cli.tells_cost or (model is None and cli.tells_model):
        return
    if model is not None and prices.find(model, now) is not None:
        return
    budget = next((one["budget"] for one in headroom["budgets"] if one["currency"] == USD), None)
    if budget is None:
        return
    which = f"model {model} has no price" if model is not None else f"the model of {cli.type} is not known"
    name = "another one" if model is not None else "it"
    raise NoPrice(
        f"{which}, so budget {budget}, in dollars, would not see what it costs",
        f"name {name} with `{command} --model NAME`, set the budget in tokens (`tenure budget set -h`), put its price"
        " into prices.toml, or pass --unpriced to run it all the same",
    )

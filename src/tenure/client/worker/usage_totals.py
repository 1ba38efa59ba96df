"""A function's usage: it adds amounts; reports carry totals since the claim, so that one may come twice."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import NamedTuple

from tenure.core.commands import Totals


class Amounts(NamedTuple):
    fresh: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost: Decimal | None = None
    duration: float = 0.0

    def plus(self, other: Amounts, sign: int = 1) -> Amounts:
        cost = self.cost
        if other.cost is not None:
            cost = (cost or Decimal(0)) + sign * other.cost
        return Amounts(
            self.fresh + sign * other.fresh, self.cached + sign * other.cached, self.written + sign * other.written,
            self.output + sign * other.output, cost, self.duration + sign * other.duration,
        )  # fmt: skip


class UsageTotals:
    """Totals by model under the current claim. A new claim begins with what the last one did not report."""

    def __init__(self) -> None:
        self._spent: dict[str, Amounts] = {}
        self._reported: dict[str, Amounts] = {}
        self._lock = threading.Lock()

    def add(self, model: str, amounts: Amounts) -> None:
        with self._lock:
            self._spent[model] = self._spent.get(model, Amounts()).plus(amounts)

    def totals(self) -> tuple[Totals, ...]:
        with self._lock:
            return tuple(
                Totals(
                    model=model, fresh=a.fresh, cached=a.cached, written=a.written, output=a.output,
                    cost_usd=None if a.cost is None else str(a.cost), duration=a.duration,
                )
                for model, a in self._spent.items()
            )  # fmt: skip

    def reported(self, model: str) -> None:
        """The store has this model's total."""
        with self._lock:
            self._reported[model] = self._spent[model]

    def moved(self) -> None:
        with self._lock:
            rest = {model: a.plus(self._reported.get(model, Amounts()), -1) for model, a in self._spent.items()}
            self._spent = {model: a for model, a in rest.items() if a != Amounts(cost=a.cost and Decimal(0))}
            self._reported = {}

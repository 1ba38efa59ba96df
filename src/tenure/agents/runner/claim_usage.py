"""What an agent has spent, told as totals of one claim: where it goes on under another, what was told is taken off."""

from __future__ import annotations

import msgspec

from tenure.core.commands import Totals
from tenure.core.money import parse_usd, usd_text

_TOKENS = ("fresh", "cached", "written", "output")


class ClaimUsage:
    def __init__(self) -> None:
        self._before: dict[str, Totals] = {}  # told under earlier generations
        self._told: dict[str, Totals] = {}  # told in all

    def due(self, totals: tuple[Totals, ...]) -> tuple[Totals, ...]:
        """Of these totals since the agent's start, those that the present claim has not been told of, as its own."""
        return tuple(self._own(t) for t in totals if self._told.get(t.model) != t)

    def own(self, totals: tuple[Totals, ...]) -> tuple[Totals, ...]:
        """All of them, as totals of the present claim."""
        return tuple(self._own(t) for t in totals)

    def told(self, totals: tuple[Totals, ...]) -> None:
        self._told |= {t.model: t for t in totals}

    def moved(self) -> None:
        """The agent goes on under another generation."""
        self._before = dict(self._told)

    def _own(self, totals: Totals) -> Totals:
        before = self._before.get(totals.model)
        if before is None:
            return totals
        changes: dict[str, object] = {n: max(0, getattr(totals, n) - getattr(before, n)) for n in _TOKENS}
        changes["duration"] = max(0.0, totals.duration - before.duration)
        if totals.cost_usd is not None:
            spent = parse_usd(totals.cost_usd) - parse_usd(before.cost_usd or "0")
            changes["cost_usd"] = usd_text(max(0, spent))
        return msgspec.structs.replace(totals, **changes)

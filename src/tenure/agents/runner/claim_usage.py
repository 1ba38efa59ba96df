"""Usage of one agent as totals of its current claim: usage reported under earlier generations is subtracted."""

from __future__ import annotations

import msgspec

from tenure.core.commands import Totals
from tenure.core.money import parse_usd, usd_text

_TOKENS = ("fresh", "cached", "written", "output")


class ClaimUsage:
    def __init__(self) -> None:
        self._before: dict[str, Totals] = {}  # reported under earlier generations
        self._reported: dict[str, Totals] = {}  # reported in total

    def due(self, totals: tuple[Totals, ...]) -> tuple[Totals, ...]:
        """The totals since the agent's start that were not reported yet, as totals of the current claim."""
        return tuple(self._own(t) for t in totals if self._reported.get(t.model) != t)

    def own(self, totals: tuple[Totals, ...]) -> tuple[Totals, ...]:
        """All totals, as totals of the current claim."""
        return tuple(self._own(t) for t in totals)

    def reported(self, totals: tuple[Totals, ...]) -> None:
        self._reported |= {t.model: t for t in totals}

    def moved(self) -> None:
        """The agent continues under another generation."""
        self._before = dict(self._reported)

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

"""Every figure's name with its goal, and how figures are computed from the rounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from bench.report import Figure

# Of the ratio where a figure has one, else of its value.
GOALS = {
    "cycle_vs_pgqueuer": "≥ 1",
    "cycle_vs_raw": "≥ 0.22",
    "claims_many_vs_raw": "≥ 0.22",
    "claims_one_vs_raw": "≥ 0.18",
    "submits_vs_raw": "≥ 0.25",
    "created_per_s": "≥ 20000",
    "claims_beside_idle_reader": "≥ 0.5",
    "claim_p99_ms_at_10k": "< 20",
    "claim_p99_ms_at_50k": "< 50",
    "submit_p99_ms_at_10k": "< 100",
    "pickup_p50_ms": "≤ 3",
    "pickup_p99_ms": "≤ 6",
    "claim_1m_vs_1k": "≤ 1.1",
    "claim_1m_finished_vs_none": "≤ 1.1",
    "claim_nothing_matches_ms": "≤ 1",
    "single_claim_vs_bare": "≥ 0.5",
    "single_submit_vs_bare": "≥ 0.5",
    "claims_rls_vs_plain": "≤ 1.08",
    "submits_rls_vs_plain": "≤ 1.08",
    "history_1000_ms": "< 200",
    "history_1000_ms_sqlite": "< 200",
    **{
        f"list_{by}_ms{store}": "< 50"
        for by in ("state", "agent", "tag", "rare_tag", "dag")
        for store in ("", "_sqlite")
    },
}


def versus(name: str, ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """Ours against theirs, both a second: the median of the rounds' own ratios, and the absolute figures."""
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    return Figure(
        name, ratio, "×", statistics.median(theirs), ratio, GOALS.get(name, ""), per_s=statistics.median(ours)
    )  # fmt: skip


def plain(name: str, values: Sequence[float], unit: str, per_s: Sequence[float] | None = None) -> Figure:
    """A figure that stands for itself."""
    rates = None if per_s is None else statistics.median(per_s)
    return Figure(name, statistics.median(values), unit, goal=GOALS.get(name, ""), per_s=rates)


def times(name: str, cost: Sequence[float], other: Sequence[float]) -> Figure:
    """How many times a cost is another one, both in seconds; `per_s` is how many of the first go into a second."""
    ratio = statistics.median(a / b for a, b in zip(cost, other, strict=True))
    return Figure(
        name, ratio, "×", 1 / statistics.median(other), ratio, GOALS.get(name, ""), per_s=1 / statistics.median(cost)
    )  # fmt: skip

"""Figures, and how they are shown: a table for people, one JSON object a line for programs."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple


class Figure(NamedTuple):
    """`ratio` is taken round by round and then its median, so that it is not quite value / baseline."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    goal: str = ""  # "≥ 0.6" or "≤ 1.5", of the ratio where there is one, else of the value
    per_s: float | None = None  # the absolute figure beside a value that is a ratio, or a latency

    @property
    def is_met(self) -> bool | None:
        """None where there is no goal."""
        if not self.goal:
            return None
        sign, limit = self.goal.split()
        judged = self.value if self.ratio is None else self.ratio
        return {"≥": judged >= float(limit), "≤": judged <= float(limit), "<": judged < float(limit)}[sign]


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the rounds' own ratios: what slowed one round slowed both halves of it."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def rate(name: str, ours: Sequence[float], theirs: Sequence[float], goal: str = "") -> Figure:
    """Operations a second, from seconds an operation of each round."""
    return Figure(
        name, 1 / statistics.median(ours), "1/s", 1 / statistics.median(theirs), ratio_of(theirs, ours), goal
    )  # fmt: skip


shown: list[Figure] = []  # by the benchmark that runs; `--record` writes them


def show(figures: Iterable[Figure], *, as_json: bool) -> None:
    figures = list(figures)
    shown.extend(figures)
    if as_json:
        for figure in figures:
            print(json.dumps(figure._asdict() | {"met": figure.is_met}, ensure_ascii=False))
        return
    with_rates = any(f.per_s is not None for f in figures)
    rows = [("figure", "value", "unit", *(["a second"] if with_rates else []), "baseline", "ratio", "goal", "")]
    for f in figures:
        value, baseline, ratio = cells(f)
        rates = [_number(f.per_s)] if with_rates else []
        rows.append((f.name, value, f.unit, *rates, baseline, ratio, f.goal, verdict_of(f)))
    for line in aligned(rows, left=(0, 2, len(rows[0]) - 1)):
        print(line)


def cells(figure: Figure) -> tuple[str, str, str]:
    """Value, baseline and ratio as text."""
    f = figure
    ratio = "" if f.ratio is None else f"{f.ratio:.2f}" if f.ratio >= 0.095 else f"{f.ratio:.2g}"
    return _number(f.value), _number(f.baseline), ratio


def verdict_of(figure: Figure) -> str:
    return {None: "", True: "met", False: "MISSED"}[figure.is_met]


def aligned(rows: Sequence[Sequence[str]], left: Sequence[int]) -> Iterator[str]:
    """The rows as lines, with the columns of `left` to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        texts = (
            text.ljust(w) if n in left else text.rjust(w) for n, (text, w) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(texts).rstrip()


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

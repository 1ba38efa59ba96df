"""All recorded figures on one page, with a chart of how far each is from its goal.

`--write` makes `bench/results/README.md` and `goals.svg` beside it; otherwise the page is printed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from bench import recorded
from bench.history import less_is_better
from bench.peers.chart import STYLE
from bench.recorded import Record
from bench.report import Figure, cells, verdict_of

WIDTH, LEFT, RIGHT, TOP, BAR, STEP = 760, 300, 60, 64, 14, 22
MOST = 8.0  # times the goal, either way; further off is drawn there


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench page", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page and the chart beside the results")
    parser.add_argument("--folder", type=Path, default=recorded.FOLDER, help="of the results")
    given = parser.parse_args(argv)
    found = recorded.here(given.folder)
    if not found:
        print("nothing is recorded; `./x bench NAME --record` writes bench/results/NAME.json")
        return 2
    text = page(found)
    if given.write:
        (given.folder / "README.md").write_text(text, encoding="utf-8")
        (given.folder / "goals.svg").write_text(draw(found), encoding="utf-8")
    else:
        print(text)
    return 0


def page(found: Sequence[Record]) -> str:
    goals = [figure for record in found for figure in record.figures if figure.goal]
    missed = [figure for figure in goals if not figure.is_met]
    lines = [
        "# Results of the benchmarks",
        "",
        "Made by `./x bench page --write` from the files beside it, each written by `./x bench NAME --record`.",
        "Only ratios taken in one run count. How each is measured: the [lab notes](../README.md).",
        "",
        f"{len(goals) - len(missed)} of {len(goals)} goals are met.",
        "",
        "![How far each figure is from its goal](goals.svg)",
    ]
    for record in found:
        lines += [
            "",
            f"## {record.name}",
            "",
            f"`{record.command}`: {record.commit}, {record.date}; {record.machine}.",
            "",
        ]
        lines += ["| figure | value | beside it | ratio | goal | |", "| --- | ---: | ---: | ---: | --- | --- |"]
        for figure in record.figures:
            value, baseline, ratio = cells(figure)
            shown = f"{value} {figure.unit}".strip()
            lines.append(f"| {figure.name} | {shown} | {baseline} | {ratio} | {figure.goal} | {verdict_of(figure)} |")
    return "\n".join(lines) + "\n"


def part_of_goal(figure: Figure) -> float:
    """1 at the goal, more where it is better than that."""
    limit = float(figure.goal.split()[1])
    judged = figure.value if figure.ratio is None else figure.ratio
    if judged <= 0 or limit <= 0:
        return MOST if figure.is_met else 1 / MOST
    part = limit / judged if less_is_better(figure) else judged / limit
    return min(MOST, max(1 / MOST, part))


def draw(found: Iterable[Record]) -> str:
    """An SVG with a bar for each figure that has a goal, to the right of the line where the goal is met."""
    shown = [(record.name, figure) for record in found for figure in record.figures if figure.goal]
    height = TOP + STEP * len(shown) + 30
    span = WIDTH - LEFT - RIGHT

    def across(part: float) -> float:
        return LEFT + span * (math.log(part) + math.log(MOST)) / (2 * math.log(MOST))

    words = "; ".join(f"{name}, {f.name}: {verdict_of(f)}, {part_of_goal(f):.2f} of the goal" for name, f in shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d">',
        '<title id="t">Figures beside their goals</title>',
        f'<desc id="d">{escape(words)}</desc>',
        f"<style>{STYLE}</style>",
        '<text class="head" x="12" y="24">Figures beside their goals: better to the right (logarithmic)</text>',
        f'<rect class="yes" x="12" y="36" width="24" height="{BAR - 2}"/><text x="42" y="47">met</text>',
        f'<rect class="no" x="102" y="36" width="24" height="{BAR - 2}"/><text x="132" y="47">missed</text>',
    ]
    for part, label in (
        (1 / MOST, f"1/{MOST:.0f}"),
        (0.5, "half"),
        (1.0, "goal"),
        (2.0, "2 ×"),
        (MOST, f"{MOST:.0f} ×"),
    ):
        x = across(part)
        parts.append(f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{height - 26}"/>')
        parts.append(f'<text class="faint" x="{x:.1f}" y="{height - 10}" text-anchor="middle">{label}</text>')
    for number, (name, figure) in enumerate(shown):
        y, ends = TOP + STEP * number, sorted((across(1.0), across(part_of_goal(figure))))
        kind = "yes" if figure.is_met else "no"
        parts.append(f'<text x="12" y="{y + BAR - 2}">{escape(f"{name}: {figure.name}"[:44])}</text>')
        parts.append(
            f'<rect class="{kind}" rx="1" x="{ends[0]:.1f}" y="{y}" width="{max(1.0, ends[1] - ends[0]):.1f}" '
            f'height="{BAR}"/>'
        )
    return "\n".join((*parts, "</svg>")) + "\n"

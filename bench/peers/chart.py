"""The table and the picture of a finished run: Markdown for the docs, and an SVG of the drain rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

WIDTH, LEFT, RIGHT, TOP, BAR, STEP = 760, 220, 90, 64, 16, 26
# Colours with enough contrast on white and on black alike; fenced and not differ in their pattern too.
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.head { font-size: 14px; font-weight: 600 }
.faint { fill: #59636e }
.line { stroke: #d1d9e0 }
.yes { fill: #1a7f64 }
.no { fill: none; stroke: #8c6d1f; stroke-width: 1.5 }
.raw { fill: #afb8c1 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .faint { fill: #9198a1 }
  .line { stroke: #3d444d }
  .yes { fill: #3fb68b }
  .no { stroke: #d4a72c }
  .raw { fill: #656c76 }
}
"""


def draw(rows: Sequence[dict[str, Any]]) -> str:
    """An SVG with a bar for each row, longest first, on a logarithmic scale; `fenced` decides how it is filled."""
    shown = sorted((row for row in rows if row["drain"] > 0), key=lambda row: -row["drain"])
    if not shown:
        raise ValueError("nothing was measured, so there is nothing to draw")
    least = math.floor(math.log10(shown[-1]["drain"]))
    most = max(math.ceil(math.log10(shown[0]["drain"])), least + 1)
    height = TOP + STEP * len(shown) + 30

    def across(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (math.log10(value) - least) / (most - least)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="t d">',
        '<title id="t">Jobs drained a second by one worker</title>',
        f'<desc id="d">{escape("; ".join(_words(row) for row in shown))}</desc>',
        f"<style>{STYLE}</style>",
        '<text class="head" x="12" y="24">Jobs drained a second by one worker (logarithmic)</text>',
        f'<rect class="yes" x="12" y="36" width="24" height="{BAR - 4}"/><text x="42" y="47">fenced</text>',
        f'<rect class="no" x="102" y="36" width="24" height="{BAR - 4}"/><text x="132" y="47">not fenced</text>',
        f'<rect class="raw" x="212" y="36" width="24" height="{BAR - 4}"/><text x="242" y="47">the raw limit</text>',
    ]
    for power in range(least, most + 1):
        x = across(10**power)
        parts.append(f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 4}" y2="{height - 26}"/>')
        parts.append(f'<text class="faint" x="{x:.1f}" y="{height - 10}" text-anchor="middle">{10**power:,}</text>')
    for number, row in enumerate(shown):
        y = TOP + STEP * number
        kind = {"yes": "yes", "no": "no"}.get(row["fenced"], "raw")
        end = across(row["drain"])
        parts.append(f'<text x="{LEFT - 8}" y="{y + BAR - 4}" text-anchor="end">{escape(_name(row))}</text>')
        parts.append(
            f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{max(1.0, end - LEFT):.1f}" height="{BAR}" rx="2"/>'
        )
        parts.append(f'<text x="{end + 6:.1f}" y="{y + BAR - 4}">{row["drain"]:,.0f}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def markdown(table: dict[str, Any]) -> str:
    """The table of the docs, with the ratio of each drain rate to the raw limit of the same run."""
    raw = next((row["drain"] for row in table["rows"] if row["fenced"] == "–"), None)
    lines = [
        "| | version | drain, jobs/s | of the raw limit | enqueue/s single / bulk | pick-up p50 / p99 ms | fenced |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in table["rows"]:
        ratio = f"{row['drain'] / raw:.2g}" if raw else ""
        bulk = f" / {row['bulk']:,.0f}" if row["bulk"] else ""
        lines.append(
            f"| {_name(row)} | {row['version']} | {row['drain']:,.0f} | {ratio} | {row['single']:,.0f}{bulk} "
            f"| {row['p50_ms']:.3g} / {row['p99_ms']:.3g} | {row['fenced']} |"
        )
    lines += [f"\n{one['name']} was not measured: {one['reason']}" for one in table["failed"]]
    return "\n".join(lines)


def _name(row: dict[str, Any]) -> str:
    return str(row["name"]) if row["fenced"] == "–" else f"{row['name']} ({row['store']})"


def _words(row: dict[str, Any]) -> str:
    fence = {"yes": ", fenced", "no": ", not fenced"}.get(row["fenced"], "")
    return f"{_name(row)}: {row['drain']:,.0f}{fence}"

"""Recorded figures beside those of the last release, or of the record before; exit code 1 where one became worse.

Ratios are compared where a figure has one: what slowed a run slowed both of its sides.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench import recorded
from bench.recorded import Record
from bench.report import Figure, aligned

TOLERANCE = 0.15  # of the older figure: less is how a machine differs from itself
_LESS = ("ms", "µs", "s", "MB", "of a core", "×")  # units of which less is better


class Change(NamedTuple):
    name: str
    then: float | None
    now: float | None
    is_ratio: bool
    verdict: str


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench history", description=__doc__)
    parser.add_argument("names", nargs="*", help="benchmarks (every recorded one)")
    parser.add_argument("--against", metavar="REF", help="a commit or tag (the last release, else the record before)")
    parser.add_argument(
        "--now", type=Path, metavar="FILE", help="the output of one benchmark with --json, not recorded"
    )
    given = parser.parse_args(argv)
    if given.now is not None and len(given.names) != 1:
        parser.error("--now needs the name of its benchmark")
    found = [record for record in recorded.here() if record.name in (given.names or [record.name])]
    if given.now is not None:
        found = [Record(given.names[0], "", "this run", "", "", lines_of(given.now.read_text(encoding="utf-8")))]
    if not found:
        print("nothing is recorded; `./x bench NAME --record` writes bench/results/NAME.json")
        return 2
    is_worse = False
    for record in found:
        then = older(record, given.against, is_recorded=given.now is None)
        print(f"{record.name}: {label(record)} beside {label(then)}")
        changes = compared(then.figures if then else [], record.figures)
        show(changes)
        is_worse = is_worse or any(change.verdict == "WORSE" for change in changes)
    return int(is_worse)


def older(record: Record, against: str | None, *, is_recorded: bool) -> Record | None:
    ref = against or recorded.last_release()
    found = recorded.at(ref, record.name) if ref else None
    if found is None and against is None:
        found = recorded.before(record.name) if is_recorded else recorded.at("HEAD", record.name)
    return found


def lines_of(text: str) -> list[Figure]:
    """The figures of a run with --json."""
    found = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return [
        Figure(**{k: v for k, v in one.items() if k in Figure._fields}) for one in found if one["value"] is not None
    ]


def compared(then: Sequence[Figure], now: Sequence[Figure]) -> list[Change]:
    before = {figure.name: figure for figure in then}
    changes = [_change(before.pop(figure.name, None), figure) for figure in now]
    return changes + [Change(one.name, one.value, None, False, "gone") for one in before.values()]


def _change(then: Figure | None, now: Figure) -> Change:
    if then is None:
        return Change(now.name, None, now.value if now.ratio is None else now.ratio, now.ratio is not None, "new")
    is_ratio = then.ratio is not None and now.ratio is not None
    first, second = (then.ratio, now.ratio) if is_ratio else (then.value, now.value)
    assert first is not None
    assert second is not None
    return Change(now.name, first, second, is_ratio, _verdict(first, second, less_is_better(now)))


def less_is_better(figure: Figure) -> bool:
    return figure.goal[0] in "≤<" if figure.goal else figure.unit in _LESS


def _verdict(then: float, now: float, is_less_better: bool) -> str:
    if not then:
        return ""
    gain = (then - now if is_less_better else now - then) / abs(then)
    return "better" if gain > TOLERANCE else "WORSE" if gain < -TOLERANCE else ""


def show(changes: Sequence[Change]) -> None:
    rows = [("figure", "then", "now", "change", "", "")]
    for one in changes:
        change = f"{(one.now - one.then) / abs(one.then):+.0%}" if one.then and one.now is not None else ""
        rows.append(
            (one.name, _number(one.then), _number(one.now), change, "ratio" if one.is_ratio else "", one.verdict)
        )
    for line in aligned(rows, left=(0, 4, 5)):
        print(f"  {line}")


def label(record: Record | None) -> str:
    return "nothing older" if record is None else " ".join(filter(None, (record.commit, record.date)))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

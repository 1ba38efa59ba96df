"""Claims and submits on durable SQLite: beside the bare driver, by number of ready tasks, and with many processes."""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench import many
from bench.ground import AGENTS, TELLING, Pitch, Scripts, WrongAnswer, fast_rounds, read_scripts, sync_cost
from bench.report import Figure, rate, ratio_of, show


class Cost(NamedTuple):
    """Of one operation, in seconds: by the wall, and of this process's CPU."""

    wall: float
    cpu: float


class Costs:
    """What every slice cost, by (size, verb, batch, side), one entry a round."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str, int, str], list[Cost]] = {}
        self.syncs: list[float] = []  # the longest that a sync took before, in and after each round

    def timed(self, key: tuple[int, str, int, str], count: int, action: Callable[..., Any], *given: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        made = action(*given)
        cost = Cost((time.perf_counter() - wall) / count, (time.process_time() - cpu) / count)
        self._kept.setdefault(key, []).append(cost)
        return made

    def counted(self) -> list[int]:
        """The rounds that count."""
        return fast_rounds(self.syncs)

    def wall(self, size: int, verb: str, batch: int, side: str) -> list[float]:
        if verb == "pair":
            halves = (self.wall(size, half, batch, side) for half in ("claim", "submit"))
            return [a + b for a, b in zip(*halves, strict=True)]
        return [self._kept[size, verb, batch, side][n].wall for n in self.counted()]

    def cpu(self, size: int, verb: str, batch: int, side: str) -> list[float]:
        return [self._kept[size, verb, batch, side][n].cpu for n in self.counted()]


def play_slice(costs: Costs, pitch: Pitch, count: int, batch: int, ours_first: bool) -> None:
    """Claim and submit `count` tasks on both sides; the sides take turns in going first."""
    sides: dict[str, tuple[Any, Any]] = {
        "ours": (pitch.claim_ours, pitch.submit_ours),
        "raw": (pitch.claim_raw, pitch.submit_raw),
    }
    for side in ("ours", "raw") if ours_first else ("raw", "ours"):
        claim, submit = sides[side]
        held = costs.timed((pitch.size, "claim", batch, side), count, claim, count, batch)
        costs.timed((pitch.size, "submit", batch, side), count, submit, held, batch)


def measure(folder: Path, pitches: list[Pitch], rounds: int, count: int, batch: int) -> Costs:
    costs = Costs()
    for pitch in pitches:  # agents and sessions become known, statements are prepared
        play_slice(Costs(), pitch, max(count, batch), 1, True)
        play_slice(Costs(), pitch, batch, batch, True)
        pitch.refill(max(count, batch) + batch)
    gc.collect()
    for number in range(rounds):
        syncs = [sync_cost(folder)]
        for pitch in pitches:
            play_slice(costs, pitch, count, 1, number % 2 == 0)
            play_slice(costs, pitch, batch, batch, number % 2 == 0)
            syncs.append(sync_cost(folder))
            pitch.refill(count + batch)
        costs.syncs.append(max(syncs))
    for pitch in pitches:
        pitch.verify()
    return costs


def figures_of(costs: Costs, sizes: list[int], batch: int, scripts: Scripts) -> list[Figure]:
    syncs = [costs.syncs[n] * 1e6 for n in costs.counted()]
    found = [
        Figure("fdatasync, in the rounds that count", statistics.median(syncs), "µs"),
        Figure("rounds that count (disk not slow)", len(syncs), "", len(costs.syncs)),
    ]
    can_tell = statistics.median(syncs) <= TELLING
    if not can_tell:
        _say(f"a sync takes {statistics.median(syncs):.0f} µs: too slow to compare us with the raw driver, no verdict")
    for size in sizes:
        for verb in ("claim", "submit", "pair"):
            ours, raw = (costs.wall(size, verb, 1, side) for side in ("ours", "raw"))
            found.append(rate(f"{verb}s, one at a time, {size} ready", ours, raw, "≥ 0.6" if can_tell else ""))
        for verb in ("claim", "submit"):
            ours, raw = (costs.wall(size, verb, batch, side) for side in ("ours", "raw"))
            found.append(rate(f"{verb}s, {batch} a batch, {size} ready", ours, raw, "≥ 0.4" if can_tell else ""))
        for verb in ("claim", "submit"):
            ours, raw = ([c * 1e6 for c in costs.cpu(size, verb, 1, side)] for side in ("ours", "raw"))
            found.append(
                Figure(
                    f"CPU of a {verb}, {size} ready", statistics.median(ours), "µs", statistics.median(raw),
                    ratio_of(ours, raw),
                )
            )  # fmt: skip
    least, most = min(sizes), max(sizes)
    if least != most:
        for what, of in (("cost", costs.wall), ("CPU", costs.cpu)):
            grown, bare = (ratio_of(of(most, "claim", 1, s), of(least, "claim", 1, s)) for s in ("ours", "raw"))
            found.append(Figure(f"{what} of a claim, {most} ready / {least} ready", grown, "×", bare, grown, "≤ 1.1"))
    for verb, traced in (("claim", scripts.claim_traced), ("submit", scripts.submit_traced)):
        found.append(Figure(f"statements of a {verb}", len(traced.statements), "", 2 + len(traced.writes)))
    return found


def together(folder: Path, processes: int, seconds: float) -> list[Figure]:
    if not processes:
        return []
    got = many.run(folder, processes, seconds, ready=int(2000 * seconds) + 1000)
    return [
        Figure(f"pairs, {processes} processes", got.pairs, "1/s"),
        Figure(f"least / most pairs of {processes} processes", got.least, "", got.most, got.least / got.most, "≥ 0.3"),
        Figure(f"claim p50, {processes} processes", got.claim_median * 1e3, "ms"),
        Figure(f"claim p99, {processes} processes", got.claim_p99 * 1e3, "ms"),
    ]


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./x bench engine", description=__doc__)
    parser.add_argument("--sizes", help="ready tasks, as in 1000,100000,1000000")
    parser.add_argument("--rounds", type=int, help="turns of each side")
    parser.add_argument("--count", type=int, default=50, help="single claims a turn, at most 100")
    parser.add_argument("--batch", type=int, default=100, help="commands a batch, at most 100")
    parser.add_argument("--processes", type=int, help="0 leaves that part out")
    parser.add_argument("--seconds", type=float, help="that the processes run")
    parser.add_argument("--fill", choices=("auto", "engine", "rows"), default="auto", help="how tasks are made")
    parser.add_argument("--folder", type=Path, help="where the files go; a temporary folder unless given")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--quick", action="store_true", help="small sizes, in less than 20 s")
    given = parser.parse_args(argv)
    usual = ("1000,10000", 7, 4, 2.0) if given.quick else ("1000,100000,1000000", 25, 16, 5.0)
    for name, value in zip(("sizes", "rounds", "processes", "seconds"), usual, strict=True):
        if getattr(given, name) is None:
            setattr(given, name, value)
    given.sizes = sorted({int(size) for size in given.sizes.split(",")})
    if not (0 < given.count <= AGENTS and 0 < given.batch <= AGENTS and given.rounds > 0):
        parser.error(f"count and batch are 1 to {AGENTS}, rounds at least 1")
    most = 2 * max(given.count, given.batch)
    if given.sizes[0] < most:
        parser.error(f"a size is at least {most}: as many are claimed before the next ones are added")
    return given


def main(argv: list[str]) -> int:
    given = arguments_of(argv)
    with tempfile.TemporaryDirectory(prefix="tenure-bench-", dir=given.folder) as name:
        folder = Path(name)
        try:
            scripts = read_scripts(folder)
            pitches = []
            for size in given.sizes:
                pitch = Pitch(folder, size, given.fill, scripts)
                megabytes = pitch.path.stat().st_size / 1e6
                _say(f"{size} tasks by {pitch.filled_by} in {pitch.seconds_to_fill:.1f} s, {megabytes:.0f} MB")
                pitches.append(pitch)
            costs = measure(folder, pitches, given.rounds, given.count, given.batch)
            for pitch in pitches:
                pitch.close()
            found = figures_of(costs, given.sizes, given.batch, scripts)
            found += together(folder, given.processes, given.seconds)
        except WrongAnswer as wrong:
            _say(f"WRONG: {wrong}")
            return 1
    show(found, as_json=given.json)
    return 0


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)

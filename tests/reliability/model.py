"""Random histories on the engine beside the naive model: every answer and every row must be equal.

Each history comes from its own seed, so any of them can be run again alone: `--seed N --histories 1`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.reliability import results
from tests.reliability.ground import server_of
from tests.servers.store_servers import SERVERS
from tests.stateful.actors import History
from tests.stateful.histories import Dice, Maker
from tests.stateful.playing import Divergence, new_bench, parting_of, play, shortened, told

CHUNK = 50  # histories that share one store file
OTHER_WAYS = 10  # every so many-th is played in these ways too, and must give the same answers
WAYS: tuple[dict[str, Any], ...] = ({"sweeps": "never"}, {"sweeps": "always"}, {"batches": False})
JITTERS = (0.5, 0.0, 0.25, 0.75)


class Count(NamedTuple):
    histories: int
    steps: int
    findings: list[tuple[int, str]]  # seed and kind


def history_of(seed: int) -> tuple[History, float]:
    source = random.Random(seed)
    return Maker(Dice(source.randrange)).make(), source.choice(JITTERS)


def run_chunk(work: tuple[str, int, int]) -> Count:
    """The histories of these seeds, one after another on one store."""
    store, first, histories = work
    steps, findings = 0, []
    with new_bench(store) as bench:
        for seed in range(first, first + histories):
            history, jitter = history_of(seed)
            played = play(history, bench, jitter=jitter)
            steps += played.steps
            if played.divergence:
                findings.append((seed, kind_of(played.divergence)))
            elif seed % OTHER_WAYS == 0:
                others = (play(history, bench, jitter=jitter, **way) for way in WAYS)
                if parting := parting_of(played, *others):
                    findings.append((seed, f"another way: {kind_of(parting)}"))
        if not findings:
            findings += [(first, f"verify: {without_names(finding)}") for finding in bench.engine.verify()]
    return Count(histories, steps, findings)


def without_names(finding: str) -> str:
    return re.sub(r"[a-z]+_[0-9A-Z]{26}|p\d+|\b[A-Z]+-\d{3}[-:\w]*|\d+", "…", finding)


def kind_of(divergence: Divergence) -> str:
    """Divergences of one kind are most likely one mistake."""
    if divergence.what == "raised":
        return f"raised: {divergence.got.strip().splitlines()[-1].partition(':')[0]}"
    if divergence.step is None:
        return f"rows: {divergence.what.rpartition(' ')[2]}"
    expected, got = divergence.expected, divergence.got
    if divergence.what == "outcome" and isinstance(got, dict):
        expected, got = expected.get("outcome", expected.get("error")), got["outcome"]
        return f"{divergence.step[0]}: {expected}, not {got}"
    return f"{divergence.step[0]}: {divergence.what}"


def reproduction(store: str, seed: int) -> str:
    """The shortest history that parts in the same way, as text."""
    history, jitter = history_of(seed)
    with new_bench(store) as bench:
        first = play(history, bench, jitter=jitter).divergence
        if first is None:
            return "does not part when it is played alone"

        def still_parts(shorter: History) -> bool:
            again = play(shorter, bench, jitter=jitter).divergence
            return again is not None and kind_of(again) == kind_of(first)

        short = shortened(history, still_parts)
        last = play(short, bench, jitter=jitter).divergence
    return f"jitter fraction {jitter}\n{told(short, last or first)}"


def chunks(store: str, first: int, histories: int) -> Iterator[tuple[str, int, int]]:
    for start in range(first, first + histories, CHUNK):
        yield store, start, min(CHUNK, first + histories - start)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="model", description=__doc__)
    parser.add_argument("--histories", type=int, default=20_000)
    parser.add_argument("--store", choices=("sqlite", "memory", *SERVERS), default="sqlite")
    parser.add_argument("--seed", type=int, default=0, help="of the first history; the others follow")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", type=int, default=1, help="reproductions to print of each kind of divergence")
    wanted = parser.parse_args(argv)
    with server_of(wanted.store):
        return run(wanted)


def run(wanted: argparse.Namespace) -> int:
    began = told_at = time.monotonic()
    histories = steps = divergences = 0
    kinds: dict[str, int] = {}
    work = list(chunks(wanted.store, wanted.seed, wanted.histories))
    with multiprocessing.get_context("fork").Pool(wanted.jobs) as pool:
        for count in pool.imap_unordered(run_chunk, work):
            histories += count.histories
            steps += count.steps
            divergences += len(count.findings)
            for seed, kind in count.findings:
                kinds[kind] = kinds.get(kind, 0) + 1
                if kinds[kind] <= wanted.show:
                    print(f"\nseed {seed}: {kind}\n{reproduction(wanted.store, seed)}\n", flush=True)
            if time.monotonic() - told_at > 10:
                told_at = time.monotonic()
                speed = histories / (told_at - began)
                print(f"{histories} histories, {divergences} divergences, {speed:.0f} a second", flush=True)
    seconds = time.monotonic() - began
    for kind, number in sorted(kinds.items(), key=lambda item: -item[1]):
        print(f"{number:6} {kind}")
    numbers: dict[str, results.Figure] = {
        "store": wanted.store, "histories": histories, "steps": steps, "divergences": divergences,
        "seconds": round(seconds), "histories_per_second": round(histories / seconds),
    }  # fmt: skip
    results.tell("model", numbers, variant=wanted.store if wanted.store != "sqlite" else "")
    return 1 if divergences else 0

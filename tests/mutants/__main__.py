"""`./x mutants [WORD …]`: plant each seeded bug, run the tests that must catch it, and report which did."""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tests.mutants.mutant import ROOT, SUITES, Mutant, named_tests
from tests.mutants.seeds import MUTANTS
from tests.mutants.trying import Tried, compiled, in_tree, tried
from tests.reliability.results import commit

PROGRESS = ROOT / ".x" / "mutants.json"
RESULT = ROOT / "reliability" / "results" / "mutants.json"


class Progress(msgspec.Struct):
    """What a run has found so far, so that `--resume` can continue it."""

    source: str
    stores: list[str]
    minutes: float = 0.0
    tried: dict[str, Tried] = {}


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def begun(stores: list[str], resume: bool) -> Progress:
    """An earlier run on this same source, without the seeds that were not caught by the tests they name; or none."""
    source = git("rev-parse", "HEAD:src") + ("+changes" if git("status", "--porcelain", "src") else "")
    if resume and PROGRESS.exists():
        earlier = msgspec.json.decode(PROGRESS.read_bytes(), type=Progress)
        if (earlier.source, earlier.stores) == (source, stores):
            earlier.tried = {name: t for name, t in earlier.tried.items() if t.is_caught and not t.elsewhere}
            return earlier
        print("nothing to resume: the last run was on another source, or on other stores")
    return Progress(source, stores)


def chosen(words: Sequence[str], only: Sequence[str], part: str) -> list[Mutant]:
    """The mutants that were asked for: by words in their names, by whole names, and every Nth of those."""
    unknown = set(only) - {mutant.name for mutant in MUTANTS}
    if unknown:
        raise SystemExit(f"there are no mutants with the names {sorted(unknown)}")
    mutants = [m for m in MUTANTS if (m.name in only if only else True) and any(w in m.name for w in words or [""])]
    number, of = (int(text) for text in part.split("/"))
    if not 1 <= number <= of:
        raise SystemExit(f"--part must be K/N with K from 1 to N (got {part})")
    return mutants[number - 1 :: of]


def failing_controls(mutants: Sequence[Mutant], stores: Sequence[str], jobs: int) -> list[str]:
    """Named tests that fail without a mutant: they can prove nothing."""
    named = [named_tests(mutant, stores) for mutant in mutants]
    by_file: dict[str, set[str]] = {}
    for file, nodes in itertools.chain.from_iterable(tests.items() for tests in named):
        by_file.setdefault(file, set()).update(nodes)
    # whole files, largest first: what they set up once is set up once
    files = sorted((sorted(nodes) for nodes in by_file.values() if nodes), key=len, reverse=True)
    with ThreadPoolExecutor(jobs) as pool:
        return [*itertools.chain.from_iterable(pool.map(lambda nodes: in_tree(None, *nodes), files))]


def shown(result: Tried) -> None:
    word = "MISSED" if not result.is_caught else "elsewhere" if result.elsewhere else "caught"
    print(f"{word:<10}{result.name}  ({result.seconds:.0f} s)")
    for file, node in result.caught.items():
        note = "caught elsewhere: update caught_by  " if file in result.elsewhere else ""
        print(f"          {note}{node or f'NOT CAUGHT in {file}'}", flush=True)


def figures(results: Sequence[Tried], minutes: float, jobs: int) -> dict[str, int]:
    def on(store: str) -> int:
        return sum(bool(result.caught.get(SUITES[store].partition("::")[0])) for result in results)

    return {
        "seeds": len(results),
        "caught": sum(result.is_caught for result in results),
        "caught_by_another_test_than_named": sum(bool(result.elsewhere) for result in results),
        **{f"on_{store}": on(store) for store in SUITES},
        "minutes": round(minutes),
        "processes": jobs,
    }


def written(progress: Progress, jobs: int, path: Path = RESULT) -> None:
    """The result of a whole run, for the table in RELIABILITY.md."""
    numbers = figures([*progress.tried.values()], progress.minutes, jobs)
    result = {
        "harness": "mutants",
        "command": "./x mutants" + (" --postgres" if "postgres" in progress.stores else ""),
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "figures": numbers,
        "verdict": "held" if numbers["caught"] == numbers["seeds"] else "failed",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")


@contextmanager
def cancelling(pool: ThreadPoolExecutor) -> Iterator[None]:
    """Ctrl-C ends the run after the mutants that are being tried, not after all."""
    try:
        yield
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutants whose name contains one of these")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only mutants with these exact names")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="only the Kth of N equal parts")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at the same time")
    parser.add_argument("--list", action="store_true", help="print the names, and try nothing")
    parser.add_argument("--no-control", action="store_true", help="do not check that the tests pass without a mutant")
    parser.add_argument("--postgres", action="store_true", help="tests of the engine suite must fail on PostgreSQL too")
    parser.add_argument("--resume", action="store_true", help="skip what the last run on this same source has caught")
    given = parser.parse_args(argv)
    mutants = chosen(given.words, given.only, given.part)
    if given.list:
        print(*(mutant.name for mutant in mutants), sep="\n")
        return 0
    compiled()
    stores = ["memory", "sqlite", *(["postgres"] if given.postgres else [])]
    progress = begun(stores, given.resume)
    left = [mutant for mutant in mutants if mutant.name not in progress.tried]
    started, before = time.monotonic(), progress.minutes
    failing = [] if given.no_control else failing_controls(left, stores, given.jobs)
    for node in failing:
        print(f"{node} fails without a mutant, so it can prove nothing")
    if failing:
        return 2
    with ThreadPoolExecutor(given.jobs) as pool, cancelling(pool):
        for future in as_completed([pool.submit(tried, mutant, stores) for mutant in left]):
            result = future.result()
            progress.tried[result.name] = result
            progress.minutes = before + (time.monotonic() - started) / 60
            PROGRESS.write_bytes(msgspec.json.encode(progress))
            shown(result)
    results = [progress.tried[mutant.name] for mutant in mutants]
    missed = [result.name for result in results if not result.is_caught]
    print(f"\n{len(results) - len(missed)} of {len(results)} mutants caught; there are {len(MUTANTS)} seeds")
    print(*(f"MISSED    {name}" for name in missed), sep="\n")
    if len(results) == len(MUTANTS):
        written(progress, given.jobs)
        print(f"written to {RESULT.relative_to(ROOT)}; `./x docs` puts it into RELIABILITY.md")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

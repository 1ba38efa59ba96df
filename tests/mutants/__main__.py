"""`./x mutants [NAME …]`: plant each seeded bug in a copy of the source, run the tests, and tell who noticed."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.mutants.seeds import ENGINE, MUTANTS, ON_POSTGRES, Mutant

ROOT = Path(__file__).parents[2]
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def planted(mutant: Mutant | None, folder: Path) -> Path:
    """A copy of the source with the bug in it; without one, the control."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    if mutant is not None:
        (source / "tenure" / mutant.file).write_text(edited(mutant))
    return source


def edited(mutant: Mutant) -> str:
    """The file with the bug in it. Raises SystemExit where the seed has not exactly one place any more."""
    text = (ROOT / "src" / "tenure" / mutant.file).read_text()
    found = text.count(mutant.old)
    if found != 1:
        raise SystemExit(f"{mutant.name}: found {found} times in {mutant.file}; fix the seed")
    return text.replace(mutant.old, mutant.new)


def noticed_by(mutant: Mutant | None, tests: str, first: Iterable[str] = ()) -> str | None:
    """The first test of that place which fails on the mutant, or None when none does.

    `first`: tests that are asked before all others. Most mutants are caught by those, in seconds.
    """
    with tempfile.TemporaryDirectory(prefix="tenure-mutant-") as folder:
        source = planted(mutant, Path(folder))
        # a copy has its own bytecode, or none: a stale one could hide the bug
        env = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        for asked in (*first, tests):
            command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", asked]
            run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
            if run.returncode == 1 or (run.returncode and asked == tests):  # a test that has gone catches nothing
                match = _FAILED.search(run.stdout)
                return match.group(1) if match else (run.stdout.strip().splitlines() or [run.stderr[-200:]])[-1]
    return None


class Tried(NamedTuple):
    mutant: Mutant
    notices: dict[str, str | None]
    seconds: float

    @property
    def is_caught(self) -> bool:
        return all(self.notices.values())


class Notes:
    """Which test caught a mutant last time: it is asked first. Local, since a stale note only costs a second."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._known: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}

    def first(self, mutant: Mutant, tests: str) -> list[str]:
        known = self._known.get(f"{mutant.name} | {tests}")
        return [*([known] if known else []), *(name for name in mutant.first if name.startswith(tests))]

    def keep(self, tried: Tried) -> None:
        with self._mutex:
            for tests, notice in tried.notices.items():
                if notice and notice.startswith(tests):
                    self._known[f"{tried.mutant.name} | {tests}"] = notice
            self._path.parent.mkdir(exist_ok=True)
            self._path.write_text(json.dumps(self._known, indent=1, sort_keys=True))


def chosen(words: Sequence[str], only: Sequence[str], part: str) -> list[Mutant]:
    """The mutants that were asked for, by words in their names, by whole names, and every Nth of those."""
    unknown = set(only) - {mutant.name for mutant in MUTANTS}
    if unknown:
        raise SystemExit(f"there are no mutants of the names {sorted(unknown)}")
    mutants = [m for m in MUTANTS if (m.name in only if only else True) and any(w in m.name for w in words or [""])]
    number, of = (int(text) for text in part.split("/"))
    if not 1 <= number <= of:
        raise SystemExit(f"--part must be K/N with K from 1 to N (got {part})")
    return mutants[number - 1 :: of]


def failing_controls(mutants: Sequence[Mutant], jobs: int) -> dict[str, str]:
    """Tests that fail without a mutant: they can prove nothing."""
    places = sorted({tests for m in mutants for tests in m.noticed_by})
    with ThreadPoolExecutor(jobs) as pool:
        failed = pool.map(lambda tests: noticed_by(None, tests), places)
    return {tests: why for tests, why in zip(places, failed, strict=True) if why}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only mutants whose name has one of these words")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only mutants of these very names")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="only the Kth of N equal parts")
    parser.add_argument("--jobs", type=int, default=1, help="mutants tried at the same time")
    parser.add_argument("--list", action="store_true", help="print the names, and try nothing")
    parser.add_argument("--no-control", action="store_true", help="trust that the tests pass without a mutant")
    parser.add_argument("--postgres", action="store_true", help="the engine's suite must notice on PostgreSQL too")
    given = parser.parse_args(argv)
    mutants = chosen(given.names, given.only, given.part)
    if given.postgres:
        mutants = [m._replace(noticed_by=(*ENGINE, ON_POSTGRES)) if m.noticed_by == ENGINE else m for m in mutants]
    if given.list:
        print(*(mutant.name for mutant in mutants), sep="\n")
        return 0
    for tests, why in ({} if given.no_control else failing_controls(mutants, given.jobs)).items():
        print(f"{tests} fails without a mutant, so it can prove nothing: {why}")
        return 2
    notes = Notes(ROOT / ".x" / "mutants.json")

    def try_one(mutant: Mutant) -> Tried:
        began = time.monotonic()
        notices = {tests: noticed_by(mutant, tests, notes.first(mutant, tests)) for tests in mutant.noticed_by}
        return Tried(mutant, notices, time.monotonic() - began)

    missed = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for tried in pool.map(try_one, mutants):
            notes.keep(tried)
            if not tried.is_caught:
                missed.append(tried.mutant.name)
            print(f"{'caught ' if tried.is_caught else 'MISSED '} {tried.mutant.name}  ({tried.seconds:.0f} s)")
            for tests, notice in tried.notices.items():
                print(f"          {notice.split('::', 1)[-1] if notice else 'NOT NOTICED'}  [{tests}]", flush=True)
    print(
        f"\n{len(mutants) - len(missed)} of {len(mutants)} mutants caught, of {len(MUTANTS)} in all; part {given.part}"
    )
    for name in missed:
        print(f"MISSED  {name}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

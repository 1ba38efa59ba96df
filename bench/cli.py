"""The command line: whole commands beside a bare Python start, by number of tasks; a crowd of claiming processes."""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tenure
from bench.ground import WrongAnswer
from bench.report import Figure, ratio_of, show
from tenure.core import commands as c

# What a small script of anybody's pays before its first line of work.
BARE = [sys.executable, "-c", "import argparse, json, sqlite3"]
TENURE = str(Path(sys.executable).parent / "tenure")
PROJECT = "bench"
AT_ONCE = 500


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x bench cli", description=__doc__)
    parser.add_argument("--sizes", default="1000,100000", help="tasks in the store")
    parser.add_argument("--rounds", type=int, default=40, help="each round starts every command once, in turn")
    parser.add_argument("--processes", type=int, default=24, help="that claim at once")
    parser.add_argument("--folder", help="where the stores are made (a temporary folder)")
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--quick", action="store_true", help="three rounds on a small store: for development")
    options = parser.parse_args(argv)
    if options.quick:
        options.sizes, options.rounds, options.processes = "100", 3, 4
    # As an installer leaves it: whatever the caller's settings, nobody compiles at each start.
    compileall.compile_dir(str(Path(tenure.__file__).parent), quiet=2)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures: list[Figure] = []
        for size in (int(text) for text in options.sizes.split(",")):
            place = Path(folder) / str(size)
            _fill(place, size + options.rounds + options.processes)
            figures += _commands(place, size, options.rounds)
            if options.processes:
                figures.append(_crowd(place, size, options.processes))
        figures += installed("tenure")
        show(figures, as_json=options.json)
    return 0 if all(figure.is_met is not False for figure in figures) else 1


def _fill(place: Path, count: int) -> None:
    place.mkdir()
    _run(place, "init", "--project", PROJECT)
    with tenure.Client(str(place / ".tenure" / "tenure.db"), PROJECT, create=False) as client:
        add = c.Add(project=PROJECT, task=c.NewTask(title="Write the parser"))
        for start in range(0, count, AT_ONCE):
            client.batch([add] * min(AT_ONCE, count - start))


def _commands(place: Path, size: int, rounds: int) -> list[Figure]:
    """Medians of `claim` and `done`, each round next to a bare start: by the clock, and in processor time."""
    took: dict[str, list[tuple[float, float]]] = {"bare": [], "claim": [], "done": []}
    for _ in range(rounds):
        took["bare"].append(_timed(BARE, place)[0])
        cost, claimed = _timed([TENURE, "claim", "--session", "bench", "--json"], place)
        took["claim"].append(cost)
        cost, done = _timed([TENURE, "done", "--session", "bench", "--json"], place)
        took["done"].append(cost)
        if (claimed["outcome"], done["outcome"]) != ("GRANTED", "ACCEPTED"):
            raise WrongAnswer(f"claim said {claimed['outcome']}, done said {done['outcome']}")
    figures = []
    for n, what in enumerate(("", "processor time of ")):
        bare = [cost[n] for cost in took["bare"]]
        for verb in ("claim", "done"):
            ours = [cost[n] for cost in took[verb]]
            median, of_bare = statistics.median(ours) * 1000, statistics.median(bare) * 1000
            name = f"{what}tenure {verb}, {size} tasks"
            figures.append(Figure(name, median, "ms", of_bare, ratio_of(ours, bare), "≤ 2"))
    return figures


def _crowd(place: Path, size: int, count: int) -> Figure:
    """The claim itself, open to commit, while all of them want one; the worst of the crowd."""
    crowd = [
        subprocess.Popen(
            [TENURE, "claim", "--session", f"s{n}", "--json"], stdout=subprocess.PIPE, cwd=place, env=_environ()
        )
        for n in range(count)
    ]
    answers = [json.loads(process.communicate()[0]) for process in crowd]
    if len({answer["task"]["id"] for answer in answers}) != count:
        raise WrongAnswer("a task was claimed twice")
    worst = max(answer["took_ms"] for answer in answers)
    return Figure(f"slowest of {count} claims at once, {size} tasks", worst, "ms", 1000, worst / 1000, "≤ 1")


def installed(name: str) -> list[Figure]:
    """What `pip install` of the package brings without extras: its own files, and those of every package it needs."""
    found: dict[str, set[str]] = {}  # the extras that somebody asks for, of each package
    todo = [Requirement(name)]
    while todo:
        one = todo.pop()
        extras = found.setdefault(canonicalize_name(one.name), set())
        new = {"", *one.extras} - extras
        extras |= new
        wanted = list(map(Requirement, metadata.requires(one.name) or ())) if new else []
        todo += [r for r in wanted if r.marker is None or any(r.marker.evaluate({"extra": extra}) for extra in new)]
    ours = {name: Path(tenure.__file__).parent}
    size = sum(_bytes(ours[one].rglob("*")) if one in ours else _bytes(_files(one)) for one in found)
    return [Figure("install size", size / 1e6, "MB"), Figure("packages installed", len(found), "")]


def _files(package: str) -> Iterator[Path]:
    for file in metadata.files(package) or ():
        yield Path(str(file.locate()))


def _bytes(files: Iterable[Path]) -> int:
    """Without compiled code, which differs with the Python that wrote it."""
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())


def _environ() -> dict[str, str]:
    hidden = ("PYTHONDONTWRITEBYTECODE", "TENURE_", "COVERAGE", "COV_")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def _run(place: Path, *words: str) -> None:
    subprocess.run([TENURE, *words], cwd=place, check=True, stdout=subprocess.DEVNULL, env=_environ())


def _timed(command: list[str], place: Path) -> tuple[tuple[float, float], Any]:
    """What it took, by the clock and in user and system time, and its output."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run(command, cwd=place, check=True, stdout=subprocess.PIPE, env=_environ()).stdout
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cost = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return (took, cost), json.loads(output) if output else None

"""Tries one seeded bug: a tree of links to the source with one edited file, and pytest on the tests that must fail."""

from __future__ import annotations

import compileall
import itertools
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from tests.mutants import narrow
from tests.mutants.mutant import ROOT, Mutant, edited, named_tests

LONGEST = 900.0  # seconds of one run of pytest
WORK = ROOT / ".x" / "mutants"
# Plain asserts and few plugins: rewriting the shipped suite takes longer than most of its tests.
PYTEST = (
    *(sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=no", "--assert=plain"),
    *("-p", "tests.mutants.narrow"),
    *(f"-pno:{name}" for name in ("cacheprovider", "schemathesis", "pytest_cov")),
)
# A limit that nothing here uses, inherited by every process that the tests start, whatever its environment. The soft
# one counts the runs of this process, the hard one tells this process from others that try mutants beside it.
_MARK = resource.RLIMIT_MSGQUEUE
_RUNS = itertools.count(1)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$", re.MULTILINE)


class Tried(msgspec.Struct):
    """One mutant: by file, the test that failed. None: no test did."""

    name: str
    caught: dict[str, str | None]
    elsewhere: list[str]  # files where none of the named tests failed, but another
    seconds: float

    @property
    def is_caught(self) -> bool:
        return all(self.caught.values())


def planted(mutant: Mutant | None, folder: Path) -> Path:
    """The source with the bug in it; without a mutant, the control."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, copy_function=_linked)
    if mutant is not None:
        text = edited(mutant)
        path = source / "tenure" / mutant.file
        for module in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            module.unlink()
        path.unlink()  # first: a write through the link would change the real file
        path.write_text(text)
    return source


def compiled() -> None:
    """Compiles the source and the tests once, for every run to come."""
    for folder in ("src", "tests"):
        compileall.compile_dir(ROOT / folder, quiet=2)


def _linked(source: str, target: str) -> None:
    """A link keeps the file's time, so the compiled module beside it stays valid. So does a copy, which is slower."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def failed(source: Path, *nodes: str, first: bool = False) -> list[str]:
    """The tests that fail on that source, by their node ids. `first`: it ends with the first that does."""
    names = [node.partition("[")[0].rpartition("::")[2] for node in nodes] if all("::" in n for n in nodes) else []
    env = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", narrow.NAMES: " ".join(names)}
    run = subprocess.Popen(
        [*PYTEST, *(["-x"] if first else []), *nodes],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    mark = marked(run.pid)
    try:
        out, _ = run.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGINT)  # pytest stops the servers of its tests
        try:
            out, _ = run.communicate(timeout=LONGEST / 10)
        except subprocess.TimeoutExpired:
            run.kill()
            out, _ = run.communicate()
    finally:
        end_all(mark)
    return _FAILED.findall(out)


def marked(pid: int) -> tuple[int, int]:
    """Marks a process that was just started, and so all that it will start; the mark."""
    mark = next(_RUNS), 400_000 + os.getpid() % 400_000
    with suppress(ProcessLookupError):  # it has ended already
        resource.prlimit(pid, _MARK, mark)
    return mark


def end_all(mark: tuple[int, int]) -> None:
    """Kills what the tests left behind: broken code may start processes that outlive them, one after another."""
    while left := [int(process.name) for process in Path("/proc").glob("[0-9]*") if _has(process, mark)]:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _has(process: Path, mark: tuple[int, int]) -> bool:
    """Whether it lives and has the mark."""
    try:
        limits, stat = (process / "limits").read_text(), (process / "stat").read_text()
    except OSError:  # it has ended, or is another user's
        return False
    (line,) = [line for line in limits.splitlines() if line.startswith("Max msgqueue size")]
    return line.split()[3:5] == [*map(str, mark)] and stat.rpartition(") ")[2][0] not in "ZX"


def in_tree(mutant: Mutant | None, *nodes: str) -> list[str]:
    """The tests that fail with that bug in the source."""
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        return failed(planted(mutant, Path(folder)), *nodes)


def tried(mutant: Mutant, stores: Sequence[str]) -> Tried:
    """Runs the named tests, then the whole of each file in which none of these failed."""
    began = time.monotonic()
    named = named_tests(mutant, stores)
    WORK.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        source = planted(mutant, Path(folder))
        nodes = [node for nodes in named.values() for node in nodes]
        found = failed(source, *nodes) if nodes else []
        caught = {file: next((node for node in found if node.startswith(f"{file}::")), None) for file in named}
        elsewhere = []
        for file in [file for file, node in caught.items() if node is None]:
            caught[file] = next(iter(failed(source, file, first=True)), None)
            if caught[file] is not None:
                elsewhere.append(file)
    return Tried(mutant.name, caught, elsewhere, round(time.monotonic() - began, 1))

"""Tries one seeded bug: a tree of links to the source with one edited file, and pytest on the tests that must fail."""

from __future__ import annotations

import compileall
import os
import re
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
        end_all(source)
    return _FAILED.findall(out)


def end_all(source: Path) -> None:
    """Kills what the tests left behind: broken code may start processes that outlive them, one after another."""
    mark = f"PYTHONPATH={source}".encode()
    while left := [process for process in Path("/proc").glob("[0-9]*") if mark in _environment(process)]:
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)


def _environment(process: Path) -> list[bytes]:
    """Empty where the process has ended."""
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


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

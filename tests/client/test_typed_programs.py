"""Type checkers accept a user's program, and see its mistakes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "typed"
PROGRAM, MISTAKES = HERE / "program.py", HERE / "mistakes.py"


def mypy(path: Path, folder: Path) -> set[int]:
    """The lines with errors."""
    words = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(folder)]
    words += ["--enable-error-code", "unused-awaitable", "--config-file", "/dev/null", str(path)]
    said = subprocess.run(words, capture_output=True, text=True, cwd=HERE, check=False)
    found = re.findall(rf"^{path.name}:(\d+): error", said.stdout, re.MULTILINE)
    assert said.returncode == bool(found), said.stdout + said.stderr
    return {int(line) for line in found}


def pyright(path: Path, folder: Path) -> set[int]:
    settings = {
        "typeCheckingMode": "strict", "include": [str(path)], "pythonVersion": "3.11", "failOnWarnings": False,
        "reportUnusedExpression": "none", "reportImplicitOverride": "none",
    }  # fmt: skip
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    words = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    said = subprocess.run(words, capture_output=True, text=True, cwd=folder, check=False)
    found = json.loads(said.stdout)["generalDiagnostics"]
    return {one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"}


CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright])


@pytest.mark.sampled
@CHECKERS
def test_a_program_of_sixty_lines_needs_no_assert_and_no_ignore(
    checker: Callable[[Path, Path], set[int]], tmp_path: Path
) -> None:
    text = PROGRAM.read_text()
    assert len(text.splitlines()) >= 60
    assert not re.search(r"\bassert\b|\bcast\b|type: ignore", text.partition('"""\n')[2])
    assert checker(PROGRAM, tmp_path) == set()


@pytest.mark.sampled
@CHECKERS
def test_every_mistake_is_an_error_and_nothing_else_is(
    checker: Callable[[Path, Path], set[int]], tmp_path: Path
) -> None:
    wrong = {n for n, line in enumerate(MISTAKES.read_text().splitlines(), 1) if line.endswith("# wrong")}
    assert len(wrong) >= 25
    assert checker(MISTAKES, tmp_path) == wrong


def test_the_program_runs(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "store.db")], capture_output=True, text=True, check=True
    )
    first, second = said.stdout.splitlines()
    assert first == "12 Write it up, attempt 1: ACCEPTED NO_TASK 3", said.stderr
    assert second.endswith(" True 0 1")

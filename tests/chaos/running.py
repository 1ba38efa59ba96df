"""Runs a proof as a person would, in a process of its own: it forks, and a test run has threads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.reliability.results import ELSEWHERE

ROOT = Path(__file__).parents[2]


class Ran(NamedTuple):
    code: int
    said: str  # everything
    numbers: dict[str, float]  # of the last line


def run(folder: Path, *arguments: str) -> Ran:
    """`folder`: where it may leave what it found."""
    env = {**os.environ, "TMPDIR": str(folder), ELSEWHERE: str(folder)}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT, env=env)
    last = (done.stdout.splitlines() or [""])[-1]
    numbers = {name: float(number) for name, number in re.findall(r"(\w+)=(\d+(?:\.\d+)?)", last)}
    return Ran(done.returncode, done.stdout + done.stderr, numbers)


def prove(folder: Path, *arguments: str) -> Ran:
    return run(folder, "-m", "tests.reliability", *arguments)

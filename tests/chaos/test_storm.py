"""A short kill -9 storm, by the command that runs the long one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
KILLS = 30


def test_nothing_is_lost_or_doubled_when_workers_are_killed() -> None:
    # In a process of its own: it forks, and a test run has threads.
    command = [sys.executable, "-m", "tests.reliability", "storm", "--kills", str(KILLS), "--rate", "8", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    last = dict(re.findall(r"(\w+)=(\d+)", done.stdout.splitlines()[-1]))
    assert {name: int(last[name]) for name in ("kills", "lost", "double", "limbo", "other")} == {
        "kills": KILLS, "lost": 0, "double": 0, "limbo": 0, "other": 0,
    }  # fmt: skip
    assert int(last["accepted"]) > 0, "nothing was done in this storm, so it has proved nothing"

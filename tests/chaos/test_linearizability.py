"""Some histories of each store, by the command that runs many."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HISTORIES = 100


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_races_for_one_task_are_linearizable(store: str) -> None:
    # In a process of its own: it forks, and it changes how often threads take turns.
    command = [sys.executable, "-m", "tests.reliability", "linearizability", "--histories", str(HISTORIES)]
    done = subprocess.run([*command, "--store", store], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    last = dict(re.findall(r"(\w+)=(\d+)", done.stdout.splitlines()[-1]))
    assert (int(last["histories"]), int(last["violations"])) == (HISTORIES, 0)
    assert int(last["overlapping"]) > 0, "nothing ran at the same time, so nothing was proved"

"""The demo is what a stranger sees first: it must do what it says."""

from __future__ import annotations

import subprocess
import sys

from tenure.__main__ import main


def test_the_demo_kills_hands_over_and_refuses_the_zombie() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tenure", "demo", "--fast"], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "is killed with SIGKILL" in run.stdout
    assert "STALE_GENERATION" in run.stdout
    assert "refused, kept" in run.stdout
    assert "7 of 7 tasks completed once each" in run.stdout
    assert "all hold" in run.stdout


def test_an_unknown_verb_gets_a_sentence(capsys: object) -> None:
    assert main(["frobnicate"]) == 2
    assert main(["--version"]) == 0

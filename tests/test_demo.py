"""The demo is what a stranger sees first: it must do what it says, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal

COMMAND = [sys.executable, "-P", "-m", "tenure", "demo"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Its folder goes where the test can see it."""
    return {**os.environ, "TMPDIR": str(tmp_path), "TENURE_URL": "/nowhere/at/all", "NO_COLOR": "1"}


def is_tidy(place: Path) -> bool:
    return list(place.iterdir()) == [] and agents_of(place) == []


def agents_of(place: Path) -> list[int]:
    """Processes whose command line names this place."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if str(place).encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def until(is_so: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.02)
    return is_so()


def test_the_demo_kills_hands_over_and_refuses_the_zombie(environ: dict[str, str], tmp_path: Path) -> None:
    run = subprocess.run([*COMMAND, "--fast"], capture_output=True, text=True, timeout=25, check=False, env=environ)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "bo is killed with SIGKILL" in run.stdout
    assert "STALE_GENERATION" in run.stdout
    assert "exit code 6" in run.stdout
    assert "refused, kept" in run.stdout
    assert "7 of 7 tasks completed once each" in run.stdout
    assert "all hold" in run.stdout
    assert run.stderr == ""
    assert "\x1b" not in run.stdout
    assert is_tidy(tmp_path)


def test_as_json_it_is_one_value_that_proves_the_hand_over(environ: dict[str, str], tmp_path: Path) -> None:
    import json

    run = subprocess.run(
        [*COMMAND, "--fast", "--json"], capture_output=True, text=True, timeout=25, check=False, env=environ
    )
    said = json.loads(run.stdout)
    assert said["ok"] is True
    assert said["tasks"] == {"completed": 7}
    first, second = said["lineage"]
    assert (first["agent"], first["release_reason"], first["result_accepted"]) == ("bo", "EXPIRED", False)
    assert (second["release_reason"], second["result_accepted"]) == ("COMPLETED", True)
    assert second["agent"] in ("ann", "cy")
    assert said["wrong"] == []
    assert is_tidy(tmp_path)


def test_on_a_terminal_the_graph_changes_in_place(environ: dict[str, str], tmp_path: Path) -> None:
    with Terminal([*COMMAND, "--fast"], environ=environ, columns=80, lines=40) as terminal:
        terminal.until("0 of 7 tasks completed")
        assert "┌─▶│ · api" in terminal.text
        assert terminal.ended() == 0
    assert terminal.text.count("─▶│ ✓ ship") == 1
    assert "7 of 7 tasks completed" in terminal.text
    assert "† " in terminal.raw  # the one whose holder was killed
    assert "all hold" in terminal.text
    assert terminal.screen.is_cursor_shown
    assert is_tidy(tmp_path)


def test_a_small_terminal_gets_lines(environ: dict[str, str]) -> None:
    with Terminal([*COMMAND, "--fast"], environ=environ, columns=60, lines=40) as terminal:
        assert terminal.ended() == 0
    assert "\x1b[" not in terminal.raw
    assert "all hold" in terminal.raw


@pytest.mark.parametrize("how", ["\x03", signal.SIGTERM, signal.SIGHUP])
def test_whatever_ends_it_nothing_is_left_behind(environ: dict[str, str], tmp_path: Path, how: str | int) -> None:
    with Terminal(COMMAND, environ=environ, columns=80, lines=40) as terminal:
        terminal.until("ann claims")
        assert agents_of(tmp_path) != []
        if isinstance(how, str):
            terminal.press(how)
            assert terminal.ended() == 130
        else:
            terminal.signal(how)
            assert terminal.ended() == -how
        assert terminal.screen.is_cursor_shown
        assert "Traceback" not in terminal.raw
    assert is_tidy(tmp_path)


def test_its_agents_end_even_when_it_is_killed(environ: dict[str, str], tmp_path: Path) -> None:
    with Terminal(COMMAND, environ=environ, columns=80, lines=40) as terminal:
        terminal.until("ann claims")
        terminal.signal(signal.SIGKILL)
        terminal.ended()
        assert until(lambda: agents_of(tmp_path) == [])

"""The page on stores, followed word by word: its store passes the shipped suites, and the command line opens it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "write-a-store.md"
# A slice of both suites: whole ones are for the night.
SLICE = "jump or moved_on or unique or acknowledged or reader_sees or four_timelines or superseded"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project as the page has it, installed."""
    text = PAGE.read_text("utf-8")
    for name, block in re.findall(r"Save this as `(\w+\.py)`.*?```python\n(.*?)```", text, re.S):
        (tmp_path / name).write_text(block, "utf-8")
    (points,) = re.findall(r"```toml\n\[project\.entry-points\.\"([\w.]+)\"\]\n(\w+) = \"([\w:]+)\"\n```", text)
    package = tmp_path / "journal_store-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: journal-store\nVersion: 1\n")
    (package / "entry_points.txt").write_text(f"[{points[0]}]\n{points[1]} = {points[2]}\n")
    return tmp_path


def run(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    hidden = ("TENURE_", "CLAUDE", "CODEX", "GEMINI", "OPENCODE", "COPILOT", "PYTEST")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environ |= {"PYTHONPATH": str(folder), "HOME": str(folder), "TENURE_STATE": str(folder / "state")}
    environ |= more
    return subprocess.run(
        [sys.executable, "-P", *words], cwd=folder, env=environ, capture_output=True, text=True, check=False,
        timeout=900,
    )  # fmt: skip


def suites(folder: Path, *words: str) -> str:
    done = run(folder, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_journal_store.py", *words)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.nightly
def test_the_store_of_the_page_passes_a_slice_of_both_suites(folder: Path) -> None:
    assert re.search(r"\d\d+ passed", suites(folder, "-k", SLICE))


@pytest.mark.nightly
def test_the_store_of_the_page_passes_both_suites(folder: Path) -> None:
    assert re.search(r"2\d\d\d passed", suites(folder))


def test_the_store_of_the_page_is_opened_by_its_url(folder: Path) -> None:
    def tenure(*words: str) -> str:
        done = run(folder, "-m", "tenure", *words, TENURE_URL=f"journal://{folder}/tasks.journal")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    tenure("init")
    tenure("add", "Write the parser")
    assert "is yours" in tenure("claim")
    assert "ACCEPTED" in tenure("done", "-s", "parsed")
    assert "Write the parser" in tenure("show", "A-001")


def test_a_commit_that_was_cut_off_is_not_there_and_one_before_it_is(folder: Path) -> None:
    script = """
import os, signal, sys
from journal_store import Journal
from tenure import Client
client = Client(sys.argv[1], "p")
client.init()
client.add("kept")
size = os.stat("j").st_size
client.add("cut off")
os.truncate("j", (size + os.stat("j").st_size) // 2)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run(folder, "-c", script, f"journal://{folder}/j").returncode == -signal.SIGKILL
    again = "import sys; from tenure import Client; print([t['title'] for t in Client(sys.argv[1], 'p').tasks()])"
    done = run(folder, "-c", again, f"journal://{folder}/j")
    assert done.stdout.strip() == "['kept']", done.stdout + done.stderr

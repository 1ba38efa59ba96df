"""Terminal sessions in the docs: run as they are written, and written as they were run.

A session is a block of ```console lines: `$ command`, then what it prints. In a page that people write, `…` stands for
anything; pages that are made from a session hold what was printed, with what differs from run to run made even.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

BLOCK = re.compile(r"```console\n(.*?)```", re.S)


class Step(NamedTuple):
    command: str
    said: str


def steps_of(page: str) -> list[Step]:
    """The commands of all sessions in a page, with what the page says that they print."""
    steps: list[Step] = []
    for block in BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, said = part.partition("\n")
            steps.append(Step(command.partition("  #")[0].rstrip(), said))
    return steps


def played(page: str) -> str:
    """The page with what its commands print, run one after another in one folder."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "shop"
        folder.mkdir()
        environ = environment(Path(home))

        def play(block: re.Match[str]) -> str:
            commands = [line.removeprefix("$ ") for line in block[1].splitlines()]
            return "```console\n" + "".join(f"$ {c}\n{run(c, folder, environ)}" for c in commands) + "```"

        return BLOCK.sub(play, page)


def environment(home: Path) -> dict[str, str]:
    """A shell with `tenure` on its path and nothing that tells who runs it."""
    folder = home / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    launcher = folder / "tenure"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m tenure "$@"\n')
    launcher.chmod(0o755)
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
    path = f"{folder}:{os.environ['PATH']}"
    return {**kept, "PATH": path, "HOME": str(home), "USER": "ann", "NO_COLOR": "1", "TZ": "UTC", "TENURE_SESSION": "s"}


def play(steps: list[Step], folder: Path, environ: dict[str, str]) -> None:
    """Run the steps of a page: each prints what the page says, and one whose output is left out succeeds."""
    for step in steps:
        done = _done(step.command, folder, environ)
        said = even(done.stdout + done.stderr, folder)
        assert matches(step.said, said), f"$ {step.command}\nsaid: {said}\nnot: {step.said}"
        assert step.said.strip() != "…" or done.returncode == 0, f"$ {step.command}\nsaid: {said}"


def run(command: str, folder: Path, environ: dict[str, str]) -> str:
    return even(run_raw(command, folder, environ), folder)


def run_raw(command: str, folder: Path, environ: dict[str, str]) -> str:
    done = _done(command, folder, environ)
    return done.stdout + done.stderr


def _done(command: str, folder: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=60
    )


def even(text: str, folder: Path) -> str:
    """What differs from run to run, made the same: receipts, ids, places, dates, times of day."""
    text = text.replace(str(folder.resolve()), "/home/ann/shop").replace(str(folder), "/home/ann/shop")
    text = re.sub(r"(@\d+):[0-9a-f]{40}", r"\1:3fa9…", text)
    text = re.sub(r"\b(cmd|task|result|dag|msg)_[0-9A-HJKMNP-TV-Z]{26}", r"\1_01…", text)
    text = re.sub(r"\bwp-([\w-]+)-[0-9a-f]{6}\b", r"wp-\1-9c4e1d", text)
    text = re.sub(r"\b(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\b", _at_noon, text)
    # Six seconds and more pass before this command on a slow machine.
    text = re.sub(r"(order: \d+ \(\w+\)) - 0\.\d for its age.*", r"\1", text)
    # An agent leads for 30 s after its last command: on a slow machine another does by now, or none.
    text = re.sub(r"no leader\b|leader \w+ \(term \d+, since [^)]+\)", "leader ann (term 1, since 12:00:00, 4 s)", text)
    text = re.sub(r"\([\d.]+ s\) +", "(1 s)  ", text)
    text = re.sub(r"held +ended by", "held" + " " * 23 + "ended by", text)
    return re.sub(r"\b(now|\d+ s ago)", "now", text)


def _at_noon(found: re.Match[str]) -> str:
    return ("2026-11-17 " if "-" in found[0] else "") + "12:00:00"


def matches(told: str, said: str) -> bool:
    """Whether a page's text fits what was printed; `…` is anything, also several lines."""
    pattern = ".*".join(re.escape(part.strip()) for part in told.strip().split("…"))
    return re.fullmatch(pattern, said.strip(), re.S) is not None

"""Figures of whole runs, kept in `bench/results`: one file for each benchmark, written by `--record` alone."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from bench.report import Figure

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "bench" / "results"


class Record(NamedTuple):
    name: str
    command: str
    commit: str
    date: str
    machine: str
    figures: list[Figure]


def write(name: str, argv: list[str], figures: Iterable[Figure], folder: Path = FOLDER) -> Path:
    """The file of a run that has just ended."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.json"
    found = {
        "command": " ".join(("./x bench", name, *argv)),
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[1]:.1f}",
        "figures": [figure._asdict() for figure in figures],
    }
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


def read(name: str, text: str) -> Record:
    found = json.loads(text)
    figures = [Figure(**figure) for figure in found.pop("figures")]
    return Record(name, **found, figures=figures)


def here(folder: Path = FOLDER) -> list[Record]:
    """Those of the working tree, by name."""
    return [read(file.stem, file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.json"))]


def at(ref: str, name: str) -> Record | None:
    """The record as it was at a commit or tag; None where there was none."""
    text = git("show", f"{ref}:bench/results/{name}.json")
    return read(name, text) if text else None


def before(name: str) -> Record | None:
    """The record that the one in the working tree has replaced."""
    path = f"bench/results/{name}.json"
    now = (ROOT / path).read_text(encoding="utf-8")
    for ref in git("log", "--format=%H", "-n", "2", "--", path).split():
        text = git("show", f"{ref}:{path}")
        if text and text.strip() != now.strip():
            return read(name, text)
    return None


def last_release() -> str | None:
    return git("describe", "--tags", "--abbrev=0") or None


def commit() -> str:
    """The commit of the working tree, marked where it has changes."""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+changes" if git("status", "--porcelain") else "")


def git(*arguments: str) -> str:
    """What git says; nothing where it fails, or is not there."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

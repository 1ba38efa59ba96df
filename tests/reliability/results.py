"""What a proof ends with: its line of numbers, and the file that the table of RELIABILITY.md is made from.

`./x reliability NAME --record` writes `reliability/results/NAME.json`, and nothing else does: a short run, or a seed
that is repeated, must not replace the figures of the run that is published.
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "reliability" / "results"
ELSEWHERE = "RELIABILITY_RESULTS"  # of the environment: the folder for the slices that tests run

Figure = int | float | str
_told: dict[str, Figure] = {}
_variants: list[str] = []


def tell(harness: str, figures: dict[str, Figure], *, part: str = "", variant: str = "") -> None:
    """Print the line of numbers and keep it for the file.

    A proof of several parts names each. A variant, such as another store, has a file of its own.
    """
    print(" ".join(filter(None, (harness, part))) + ":", *(f"{name}={number}" for name, number in figures.items()))
    _told.update({f"{part}_{name}" if part else name: number for name, number in figures.items()})
    if variant and variant not in _variants:
        _variants.append(variant)


def end(harness: str, argv: list[str], *, held: bool, is_recorded: bool) -> Path | None:
    """Write the file where the run is recorded, or where the environment names another folder for it."""
    if is_recorded or os.environ.get(ELSEWHERE):
        return write(harness, argv, held=held)
    _told.clear()
    _variants.clear()
    return None


def write(harness: str, argv: list[str], *, held: bool, folder: Path | None = None) -> Path:
    """The file of the run that has just ended."""
    folder = folder or Path(os.environ.get(ELSEWHERE) or FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{'-'.join((harness, *_variants))}.json"
    found = {
        "harness": harness,
        "command": " ".join(("./x reliability", harness, *argv)),
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "figures": _told,
        "verdict": "held" if held else "failed",
    }
    file.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _told.clear()
    _variants.clear()
    return file


def commit() -> str:
    """Empty where the sources are not in a repository."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=10", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""

"""The map leads to files that are there, and leaves out no part of the package: a rule is found in two steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "src" / "tenure"
MAP = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## The map")[2].partition("\n## ")[0]
NOT_FILES = {"Engine.preview"}


def places(row: str) -> Iterator[str]:
    """The files and folders that a row names: the first with its folder, those after it beside it."""
    folders = [Path()]
    for name in re.findall(r"`([^`]+)`", row.split("|")[1]):
        if name in NOT_FILES:
            continue
        found = next((folder / name for folder in folders if list(SOURCES.glob(str(folder / name)))), Path(name))
        yield str(found)
        parents = list(found.parents)[:-1]
        folders = [found, *parents, Path()] if name.endswith("/") else [*parents, Path()]


ROWS = [row for row in MAP.splitlines() if row.startswith("| `")]


def test_every_file_of_the_map_is_there() -> None:
    assert len(ROWS) > 40
    assert [place for row in ROWS for place in places(row) if not list(SOURCES.glob(place))] == []


def test_every_part_of_the_package_is_on_the_map() -> None:
    named = {Path(place).parts[0] for row in ROWS for place in places(row)}
    parts = {path.name for path in SOURCES.iterdir() if (path / "__init__.py").exists()}
    assert parts - named == set()


def test_the_readme_leads_to_the_map() -> None:
    assert "(ARCHITECTURE.md)" in (ROOT / "README.md").read_text("utf-8")

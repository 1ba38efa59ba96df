"""The names on the page about workers exist; test_python_blocks.py runs its program."""

from __future__ import annotations

import re
from pathlib import Path

import tenure

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-worker.md"


def test_every_name_on_the_page_is_there() -> None:
    text = PAGE.read_text()
    for name in re.findall(r"tenure\.([A-Z]\w+)", text):
        assert hasattr(tenure, name), name
    for name in re.findall(r"^\| `(\w+)\(", text, re.MULTILINE):
        assert hasattr(tenure.Context, name), name

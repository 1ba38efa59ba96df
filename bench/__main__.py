"""Finds the measurement by its name and runs it."""

from __future__ import annotations

import ast
import gc
import importlib
import sys
from pathlib import Path

from bench import recorded, report

FOLDER = Path(__file__).parent
RECORD = "--record"  # of every benchmark: keep the figures in bench/results; for whole runs on a quiet machine


def measurements() -> dict[str, str]:
    """Name and first line of each; read, not imported, since one may need a driver that is not installed."""
    found = {}
    for file in sorted((*FOLDER.glob("[a-z]*.py"), *FOLDER.glob("*/__init__.py"))):
        text = file.read_text(encoding="utf-8")
        if "\ndef main(" in text:
            name = file.stem if file.parent == FOLDER else file.parent.name
            found[name] = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return found


def main(argv: list[str]) -> int:
    known = measurements()
    if not argv or argv[0] not in known:
        print("usage: ./x bench NAME [args] [--record]\n")
        for name, line in known.items():
            print(f"  {name:<18}{line}")
        return 0 if not argv or argv[0] in ("-h", "--help") else 2
    gc.set_threshold(50_000)  # as every program of ours has it: see `tenure.__main__`
    name, rest = argv[0], [word for word in argv[1:] if word != RECORD]
    report.shown.clear()
    code = int(importlib.import_module(f"bench.{name}").main(rest))
    if RECORD in argv and not report.shown:
        print(f"bench: {name} has shown no figures, so nothing is recorded", file=sys.stderr)
        return 2
    if RECORD in argv:
        print(f"bench: wrote {recorded.write(name, rest, report.shown)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

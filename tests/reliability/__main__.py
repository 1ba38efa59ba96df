"""Finds the proof by its name and runs it."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

from tests.reliability import results

FOLDER = Path(__file__).parent
RECORD = "--record"  # of every harness


def proofs() -> dict[str, str]:
    """Name and first line of each; read, not imported, since a proof may need a driver that is not installed."""
    found = {}
    for file in sorted(FOLDER.glob("[a-z]*.py")):
        text = file.read_text(encoding="utf-8")
        if "def main(" in text:
            found[file.stem] = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    return found


def main(argv: list[str]) -> int:
    known = proofs()
    if not argv or argv[0] not in known:
        print("usage: ./x reliability NAME [args] [--record]\n")
        for name, line in known.items():
            print(f"  {name:<18}{line}")
        print(f"\n{RECORD} keeps the figures in reliability/results, from which RELIABILITY.md's table is generated.")
        return 0 if not argv or argv[0] in ("-h", "--help") else 2
    proof = importlib.import_module(f"tests.reliability.{argv[0]}")
    arguments = [argument for argument in argv[1:] if argument != RECORD]
    code = int(proof.main(arguments))
    results.end(argv[0], arguments, held=code == 0, is_recorded=RECORD in argv)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

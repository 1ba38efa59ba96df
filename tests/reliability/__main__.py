"""Finds the proof by its name and runs it."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

from tests.reliability import results

FOLDER = Path(__file__).parent


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
        print("usage: python -m tests.reliability NAME [args]\n")
        for name, line in known.items():
            print(f"  {name:<18}{line}")
        return 0 if not argv or argv[0] in ("-h", "--help") else 2
    proof = importlib.import_module(f"tests.reliability.{argv[0]}")
    code = int(proof.main(argv[1:]))
    results.write(argv[0], argv[1:], held=code == 0)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

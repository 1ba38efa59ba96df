"""`tenure` and `python -m tenure`."""

from __future__ import annotations

import sys
from importlib import import_module

VERBS = {"demo": "tenure.cli.demo"}


def main(argv: list[str] | None = None) -> int:
    """The exit code of one verb; its module is imported only when it is asked for."""
    words = sys.argv[1:] if argv is None else argv
    if words in (["--version"], ["-V"]):
        from tenure import __version__

        print(f"tenure {__version__}")
        return 0
    if not words or words[0] not in VERBS:
        print(f"tenure: the verbs are {', '.join(VERBS)}; see also --version", file=sys.stderr)
        return 2
    return int(import_module(VERBS[words[0]]).main(words[1:]))


if __name__ == "__main__":
    sys.exit(main())

"""`tenure` and `python -m tenure`: the entry point of the command line, with a short start and end."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    # Objects made at the start live until the end: collecting garbage among them finds nothing.
    gc.set_threshold(50_000)
    from tenure.cli import quick_start

    quick_start.prepare(sys.argv[1] if len(sys.argv) > 1 else "")
    from tenure.cli.main import main as run

    code = run()
    sys.stdout.flush()
    sys.stderr.flush()
    if "coverage" in sys.modules:  # it writes its data when the interpreter exits
        sys.exit(code)
    # Everything is closed and printed: the teardown of the interpreter would take a tenth of a command.
    os._exit(code)


if __name__ == "__main__":
    main()

"""`tenure` and `python -m tenure`: the entry point of the command line, with a short start and end."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    # Objects made at the start live until the end: collecting garbage among them finds nothing.
    gc.set_threshold(50_000)
    # msgspec imports `typing_extensions` if it is installed (mcp brings it), for a fifth of the start; the standard
    # library has everything that it uses from there.
    hidden = "typing_extensions" not in sys.modules
    if hidden:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    import msgspec  # noqa: F401

    if hidden:
        del sys.modules["typing_extensions"]
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

"""`tenure` and `python -m tenure`: a process of its own, with the start and the end of a command kept short."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    # What a start makes is there to stay: looking through it for garbage, again and again, is in vain.
    gc.set_threshold(50_000)
    # msgspec takes `typing_extensions` where it is installed (mcp brings it), for a fifth of the start; the standard
    # library has all that it looks for there.
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
    if "coverage" in sys.modules:  # which writes what it has seen at the end
        sys.exit(code)
    # Everything is closed and said: taking the interpreter apart piece by piece would be a tenth of a command.
    os._exit(code)


if __name__ == "__main__":
    main()

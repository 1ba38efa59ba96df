"""Unexpected errors: one sentence for the user, the traceback in a file for the report."""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Sequence

from tenure.core.errors import Bug


def kept_crash(error: Exception, words: Sequence[str]) -> Bug:
    """The bug to report, with the path of the details; arguments are listed without their values."""
    if os.environ.get("TENURE_DEBUG"):
        traceback.print_exception(error)
    where = "set TENURE_DEBUG=1 to see the traceback"
    try:
        handle, path = tempfile.mkstemp(prefix="tenure-crash-", suffix=".txt")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"tenure {words[0] if words else ''}\n")
            traceback.print_exception(error, file=file)
        where = f"details are in {path}; please report them"
    except OSError:
        pass
    return Bug(f"internal error: {type(error).__name__}: {error}", where)

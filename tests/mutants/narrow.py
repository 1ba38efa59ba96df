"""A pytest plugin that collects only the tests that are asked for: the engine suite has some 1,500 on each store."""

from __future__ import annotations

import os
from typing import Any

NAMES = "TENURE_MUTANT_TESTS"  # of functions, with spaces between; empty: all


def pytest_pycollect_makeitem(name: str, obj: Any) -> list[Any] | None:
    wanted = os.environ.get(NAMES, "").split()
    is_other = callable(obj) and not isinstance(obj, type) and name.startswith("test") and name not in wanted
    return [] if wanted and is_other else None

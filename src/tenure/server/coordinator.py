"""The coordinator of this process: the engine's loop with this machine's clock and a unique name."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any

from tenure.agents import process_table
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Coordinator, Note

__all__ = ["Coordinator", "Note", "coordinator_of"]


def coordinator_of(engine: Engine, *, tell: Callable[[Note], None] = lambda _: None, **settings: Any) -> Coordinator:
    """A coordinator for this process, not started. `settings` are those of `Coordinator`: lease, looks, duties."""
    return Coordinator(engine, _instance(engine), time.monotonic, tell=tell, **settings)


def _instance(engine: Engine) -> str:
    """Host and pid for people, and a random part, since pids are reused."""
    host = re.sub(r"[^\w.-]", "-", process_table.host())[:80]
    return f"{host}:{os.getpid()}:{engine.random.token(4).hex()}"

"""The coordinator of this process: the engine's loop with this machine's clock and a unique name."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from typing import Any

from tenure import process_table
from tenure.core.records import STORE, Leader
from tenure.engine import Engine
from tenure.engine.duties import election
from tenure.engine.duties.coordinator import Coordinator, Note
from tenure.engine.verbs.lead import COORDINATOR

__all__ = ["Coordinator", "Note", "coordinator_of", "resign_for"]


def coordinator_of(engine: Engine, *, tell: Callable[[Note], None] = lambda _: None, **settings: Any) -> Coordinator:
    """A coordinator for this process, not started. `settings` are those of `Coordinator`: lease, looks, duties."""
    return Coordinator(engine, _instance(engine), time.monotonic, tell=tell, **settings)


def resign_for(engine: Engine, instance: str) -> None:
    """Step down for a process that is known to have died, if it led: another may lead at once, not after its lease."""
    found = engine.read(lambda tx: tx.load(Leader, ((STORE, COORDINATOR),)))
    if found and found[0].holder == instance:
        election.resign(engine, instance, found[0].term)


def _instance(engine: Engine) -> str:
    """Host and pid for people, and a random part, since pids are reused."""
    host = re.sub(r"[^\w.-]", "-", process_table.host())[:80]
    return f"{host}:{os.getpid()}:{engine.random.token(4).hex()}"

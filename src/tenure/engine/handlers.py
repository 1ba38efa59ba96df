"""Which function decides which command: the one table, gathered from the modules that hold them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure.core.commands import Command
from tenure.core.outcomes import Outcome
from tenure.engine import claiming, editing, graphs, holding, operating, people, projects

HANDLERS: dict[type[Command], Callable[[Any, Any], Outcome]] = {
    **claiming.HANDLERS,
    **holding.HANDLERS,
    **graphs.HANDLERS,
    **operating.HANDLERS,
    **editing.HANDLERS,
    **projects.HANDLERS,
    **people.HANDLERS,
}

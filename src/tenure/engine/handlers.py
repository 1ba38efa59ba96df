"""Which function decides which command: the one table, gathered from the modules that hold them."""

from __future__ import annotations

from tenure.engine import (
    claiming,
    editing,
    graphs,
    holding,
    leading,
    mail,
    operating,
    people,
    planning,
    projects,
    reserving,
    undoing,
)  # fmt: skip
from tenure.engine.work import Handlers

HANDLERS: Handlers = {
    **claiming.HANDLERS,
    **holding.HANDLERS,
    **graphs.HANDLERS,
    **operating.HANDLERS,
    **editing.HANDLERS,
    **projects.HANDLERS,
    **people.HANDLERS,
    **planning.HANDLERS,
    **undoing.HANDLERS,
    **mail.HANDLERS,
    **reserving.HANDLERS,
    **leading.HANDLERS,
}

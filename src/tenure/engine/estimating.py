"""What a task will probably take: tokens, money, and the model that both were worked out for."""

from __future__ import annotations

from typing import NamedTuple

from tenure.core.records import Brief, Task
from tenure.engine.work import Work


class Estimate(NamedTuple):
    """`cost` is nano-dollars, None where no price is known; `tokens` is None where nothing says how large it is."""

    tokens: int | None
    cost: int | None
    model: str | None
    source: str  # what it rests on: "said", "like tasks", "complexity", "nothing"


def estimate_of(work: Work, task: Task, brief: Brief) -> Estimate:
    tokens = brief.constraints.get("estimated_tokens")
    return Estimate(tokens, None, None, "said" if tokens is not None else "nothing")

"""The hot three by the store's own statements, for runs of like commands on plain tasks.

This decides nothing: it finds out whether a command is one of those that a store may carry out by itself, and hands a
run of them over together. The first command that is not, or whose task is not plain, ends the run and is decided
like all others; so is each that the store's guard did not let through.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any

from tenure.core import commands
from tenure.engine.fused.claims import claim
from tenure.engine.fused.holders import complete, renew
from tenure.engine.fused.runs import Done, Run
from tenure.engine.work import Work

_VERBS: dict[type[Any], Callable[[Work, Run], list[Done]]] = {
    commands.ClaimNext: claim,
    commands.Submit: complete,
    commands.Renew: renew,
}


def answers(work: Work, batch: Run) -> list[Done]:
    """What has become of the first commands; [] where the first must be decided like all others."""
    kind = type(batch[0][0])
    fuse = _VERBS.get(kind)
    if fuse is None or work.recalled:
        return []
    work.flush()  # what the batch has changed so far must stand where the statement looks
    return fuse(work, list(takewhile(lambda asked: type(asked[0]) is kind, batch)))

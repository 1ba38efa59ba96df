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
from tenure.core.commands import Principal
from tenure.engine.runtime.fast_path.command_run import Done, Run
from tenure.engine.runtime.fast_path.held_claims import complete, handed, presented, renew
from tenure.engine.runtime.fast_path.next_claims import claim
from tenure.engine.runtime.fast_path.next_claims import ready as ready_to_claim
from tenure.engine.runtime.unit_of_work import UnitOfWork

_VERBS: dict[type[Any], tuple[Callable[[Any, Principal], Any], Callable[[UnitOfWork, Run, bool], list[Done]]]] = {
    commands.ClaimNext: (ready_to_claim, claim),
    commands.Submit: (lambda command, _: handed(command), complete),
    commands.Renew: (lambda command, _: presented(command), renew),
}


def is_hot(command: Any) -> bool:
    return type(command) in _VERBS


def ready(command: Any, principal: Principal) -> Any:
    """What can be worked out before the transaction, in which others would wait for it; None where there is nothing."""
    verb = _VERBS.get(type(command))
    return None if verb is None else verb[0](command, principal)


def answers(work: UnitOfWork, batch: Run) -> list[Done]:
    """What has become of the first commands; [] where the first must be decided like all others."""
    kind = type(batch[0][0])
    verb = _VERBS.get(kind)
    if verb is None or work.recalled or work.fused.is_to_wait(kind):
        return []
    work.flush()  # what the batch has changed so far must stand where the statement looks
    run = list(takewhile(lambda asked: type(asked[0]) is kind, batch))
    done = verb[1](work, run, len(run) == len(batch))
    work.fused.note(kind, bool(done))
    return done

"""A batch of many callers, of which some commands cannot be decided before something was found out: the others go on.

What is left out is tried again with what was found. A caller's commands keep their order: what it has behind one that
is left out is left out too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tenure.engine.checks.evidence import NeedsEvidence

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Asked

Check = Callable[[Sequence[Any]], None]


class _OutOfOrder(Exception):
    """Something was decided although its caller had a command before it that could not be."""

    def __init__(self, lacking: dict[int, NeedsEvidence]) -> None:
        super().__init__()
        self.lacking = lacking


def run_without(
    run: Callable[[Sequence[Asked], Check], list[Any]], batch: Sequence[Asked], callers: Sequence[Hashable]
) -> list[Any]:
    """What `run` answers, with Lacking in the place of what is left out."""

    def check(answers: Sequence[Any]) -> None:
        lacking = {n: answer for n, answer in enumerate(answers) if isinstance(answer, NeedsEvidence)}
        first = {callers[n]: n for n in reversed(lacking)}
        if any(caller in first and n > first[caller] and n not in lacking for n, caller in enumerate(callers)):
            raise _OutOfOrder(lacking)

    if not batch:
        return []
    try:
        return run(batch, check)
    except _OutOfOrder as error:  # nothing was written
        lacking = error.lacking
    first = {callers[n]: n for n in reversed(lacking)}
    kept = [n for n, caller in enumerate(callers) if n < first.get(caller, len(batch))]
    done = iter(run_without(run, [batch[n] for n in kept], [callers[n] for n in kept]))
    return [next(done) if n in kept else lacking.get(n, NeedsEvidence()) for n in range(len(batch))]

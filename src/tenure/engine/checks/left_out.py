"""A batch of many callers in which some commands need evidence: the others are run without them.

A command that is left out runs again with its evidence. A caller's commands keep their order: its later commands are
left out too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from tenure.engine.checks.evidence import NeedsEvidence

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import CheckedCommand

Check = Callable[[Sequence[Any]], None]


class _OutOfOrder(Exception):
    """A command was decided although an earlier one of its caller could not be."""

    def __init__(self, lacking: dict[int, NeedsEvidence]) -> None:
        super().__init__()
        self.lacking = lacking


def run_without_undecided(
    run: Callable[[Sequence[CheckedCommand], Check], list[Any]],
    batch: Sequence[CheckedCommand],
    callers: Sequence[Hashable],
) -> list[Any]:
    """What `run` answers, with NeedsEvidence in the place of commands that are left out."""

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
    done = iter(run_without_undecided(run, [batch[n] for n in kept], [callers[n] for n in kept]))
    return [next(done) if n in kept else lacking.get(n, NeedsEvidence()) for n in range(len(batch))]

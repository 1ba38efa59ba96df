"""Optimistic execution of hot batches, with back-off per project: see `share` in the port, `last` in the fast path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from tenure.core.commands import Command
from tenure.engine.runtime import fast_path
from tenure.engine.runtime.unit_of_work import NeedsExclusiveLock, Tries
from tenure.stores.fast_path import NeedsSlowPath

T = TypeVar("T")
FROM = 8  # fewest tasks of a batch that shares: below, a second run costs more than sharing gains


class Attempt(NamedTuple):
    """`shares`: beside others in its projects. `is_optimistic`: a transaction's only verb goes with the commit."""

    shares: bool = False
    is_optimistic: bool = False


PLAIN = Attempt()


class Optimism:
    """Learns where optimism pays: in a project with graphs, say, every batch has something that needs the slow path."""

    def __init__(self, least: int = FROM, first: int = 1) -> None:
        """`least`: tasks from which a batch shares. `first`: batches of a kind that run before one is optimistic.

        It is never the first batch: a process that runs one command and exits learns nothing.
        """
        self._least = least
        self._shared = Tries()  # by project
        self._optimistic = Tries(first)  # by project and kind of command

    def run(self, batch: Sequence[Command], attempt: Callable[[Attempt], T]) -> T:
        """Run the attempt; where something needs the slow path after all, run it again without optimism."""
        trial = self._of(batch)
        if trial == PLAIN:
            return attempt(PLAIN)
        try:
            answer = attempt(trial)
        except (NeedsExclusiveLock, NeedsSlowPath):
            self._note(trial, batch, went=False)
            return attempt(PLAIN)
        self._note(trial, batch, went=True)
        return answer

    def _of(self, batch: Sequence[Command]) -> Attempt:
        if not all(fast_path.is_hot(command) for command in batch):
            return PLAIN
        is_large = sum(getattr(command, "n", 1) for command in batch) >= self._least
        waits = [self._shared.is_to_wait(project) for project in _projects(batch)] if is_large else [True]
        kinds = _kinds(batch)
        return Attempt(not any(waits), len(kinds) == 1 and not self._optimistic.is_to_wait(*kinds))

    def _note(self, trial: Attempt, batch: Sequence[Command], *, went: bool) -> None:
        for project in _projects(batch) if trial.shares else ():
            self._shared.note(project, went)
        for kind in _kinds(batch) if trial.is_optimistic else ():
            self._optimistic.note(kind, went)


def _projects(batch: Sequence[Command]) -> set[str]:
    return {command.project for command in batch}


def _kinds(batch: Sequence[Command]) -> set[tuple[str, type[Command]]]:
    return {(command.project, type(command)) for command in batch}

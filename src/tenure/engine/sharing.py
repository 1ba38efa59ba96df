"""Which batches are tried beside others in their projects: see `share` in the port."""

from __future__ import annotations

from collections.abc import Sequence

from tenure.core.commands import Command
from tenure.engine.work import Tries

FROM = 8  # commands: of fewer, one that has to be decided would make too few be run twice for nothing


class Sharing:
    """Learns where it goes well: a project with graphs, say, has something to decide in every batch."""

    def __init__(self) -> None:
        self._tries = Tries()

    def is_to_try(self, batch: Sequence[Command]) -> bool:
        """Are these such that the store may carry out all of them by itself, and many enough?"""
        if len(batch) < FROM:
            return False
        from tenure.engine import fused  # a single command needs none of it

        projects = {command.project for command in batch}
        waits = [self._tries.is_to_wait(project) for project in projects]  # each of them, as each of them counts
        return not any(waits) and all(fused.is_hot(command) for command in batch)

    def note(self, projects: Sequence[str], *, went: bool) -> None:
        for project in projects:
            self._tries.note(project, went)

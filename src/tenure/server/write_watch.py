"""Whether writes to the store fail while it can be read, by what became of this server's own writes.

A full disk, or a database that only reads, answers every probe that reads. Nothing is written to find out: while
writes fail no process can lead, so the coordinator of each server tries one every few seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tenure.core import limits
from tenure.core.commands import Command, Principal
from tenure.core.errors import OutcomeUnknown, StoreUnavailable, TenureError
from tenure.core.outcomes import Outcome
from tenure.engine.duties.coordinator import Cycle

KEPT = limits.WRITE_FAILURE_KEPT


class WriteWatch:
    """Safe to use from several threads."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._failure: tuple[float, TenureError] | None = None

    def observe(self, command: Command, principal: Principal, answer: Outcome | TenureError, seconds: float) -> None:
        """An observer of the service."""
        if isinstance(answer, Outcome):
            if answer.ok:
                self._failure = None
        else:
            self._note(answer)

    def cycled(self, cycle: Cycle) -> None:
        if cycle.error is not None:
            self._note(cycle.error)

    def _note(self, error: TenureError) -> None:
        if isinstance(error, (StoreUnavailable, OutcomeUnknown)):
            self._failure = self._monotonic(), error

    def failure(self) -> TenureError | None:
        """The error of the last write, where none has succeeded since; an old one counts no more."""
        found = self._failure
        return None if found is None or self._monotonic() - found[0] >= KEPT else found[1]

"""A claim that a function works under: its receipt of the moment, and whether the work may go on.

A claim may be lost while the function works: its lease ran out behind a broken connection, the store was restored. Then
the task is claimed again by name, at once, and the work goes on under the new receipt: another generation, the same
attempt. Only where that is denied must the function stop.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from tenure.client.client import Client
from tenure.client.worker.failures import Cancelled, may_pass
from tenure.core.commands import Command
from tenure.core.errors import TenureError
from tenure.core.outcomes import CODES, Outcome

log = logging.getLogger("tenure.worker")

SHORTEST, LONGEST = 0.1, 5.0  # seconds between tries while the store is away
STOPPING = ("pause", "cancel", "abort")
# The word of whoever has the receipt, which is the function itself: there is nothing to take again.
OWN_WORDS = frozenset({"COMPLETED", "SUBMITTED", "FAILED", "VOLUNTARY", "WAITING"})


class Hold:
    """Safe for the threads of the function and of the keeper."""

    def __init__(self, client: Client, granted: Outcome, lease: float, cancel: Callable[[], None]) -> None:
        """`cancel` is called once, when the function must stop."""
        assert granted.task is not None
        assert granted.receipt is not None
        assert granted.generation is not None
        self.client, self.lease = client, lease
        self.task: dict[str, Any] = dict(granted.task)
        self.key: str = granted.task["key"]
        self.receipt, self.generation = granted.receipt, granted.generation
        self.why: str | None = None  # the function must stop
        self.is_over = False  # the claim had its last word
        self.change: Outcome | None = None  # the last news of a changed description
        self.seen: int | None = None  # the number of the description that the function has taken notice of
        self.moved: Callable[[], None] = lambda: None  # called for each new generation
        self._cancel = cancel
        self._mutex = threading.RLock()  # whoever swaps the receipt
        self._stopped = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self.why is not None

    def present(self, make: Callable[[str], Command]) -> Outcome:
        """Run a holder's command; raises Cancelled where the claim is lost for good."""
        return self.insist(lambda receipt: self.client.do(make(receipt)))

    def insist(self, deed: Callable[[str], Outcome]) -> Outcome:
        """Do something with the receipt; raises Cancelled where the claim is lost for good.

        It stays until the store has heard it: work is not given up for a server that restarts.
        """
        pause = SHORTEST
        while True:
            try:
                return self._try(deed)
            except TenureError as error:
                if not may_pass(error):
                    raise
                log.warning("%s: waits for the store: %s", self.key, error.message)
            self._stopped.wait(pause)
            pause = min(LONGEST, pause * 2)

    def try_once(self, make: Callable[[str], Command]) -> Outcome:
        """As `present`, but a store that is away is raised."""
        return self._try(lambda receipt: self.client.do(make(receipt)))

    def _try(self, deed: Callable[[str], Outcome]) -> Outcome:
        while True:
            if self.why is not None:
                raise Cancelled(self.why)
            receipt = self.receipt
            outcome = deed(receipt)
            if CODES[outcome.outcome].kind != "stale":
                self.heed(outcome)
                return outcome
            self.lost(receipt, outcome)

    def heed(self, outcome: Outcome) -> None:
        """Stop where the store says so; a warning is only passed on."""
        if outcome.directive in STOPPING:
            self.stop(outcome.directive_text or f"asked to {outcome.directive}")
        elif outcome.directive == "changed":
            if self.change is None or self.change.brief != outcome.brief:
                log.warning("%s: its description was changed", self.key)
            self.change = outcome
        elif outcome.directive == "warn":
            log.warning("%s: warned: %s", self.key, outcome.directive_text)
        elif outcome.directive == "terminated":
            log.info("%s: %s", self.key, outcome.directive_text)  # the next claim is denied, and that ends the worker

    def lost(self, receipt: str, refusal: Outcome) -> None:
        """The receipt was refused: take the task again, or stop."""
        with self._mutex:
            if self.is_over or self.is_cancelled or receipt != self.receipt:
                return  # somebody has seen to it meanwhile
            if refusal.outcome == "TASK_CANCELLED" or self._is_taken_away():
                self.stop(refusal.message or refusal.outcome)
                return
            again = self.client.claim(self.task["id"], lease=self.lease)
            if again.outcome != "GRANTED" or again.receipt is None or again.generation is None:
                self.stop(f"{refusal.message}; {again.message}")
                return
            self.receipt, self.generation = again.receipt, again.generation
            log.warning("%s: %s; taken again as generation %d", self.key, refusal.message, self.generation)
            self.moved()

    def _is_taken_away(self) -> bool:
        """Whether somebody has ended the claim on purpose: who took it away means it, and who gave it back, too."""
        for entry in reversed(self.client.history(self.task["id"])):
            if entry["generation"] == self.generation:
                is_hung = entry["release_reason"] == "SUPERSEDED" and entry["error_class"] == "timeout"
                return is_hung or entry["release_reason"] in (*OWN_WORDS, "PAUSED")
        return False

    def stop(self, why: str) -> None:
        """The function must stop; what it has finished by then is still handed in."""
        with self._mutex:
            if self.why is None and not self.is_over:
                self.why = why
                self._stopped.set()
                log.warning("%s: stop: %s", self.key, why)
                self._cancel()

    def end(self) -> None:
        """The claim had its last word: nothing is renewed or taken again."""
        with self._mutex:
            self.is_over = True

    def renewed(self, receipt: str, answer: Outcome | TenureError) -> None:
        """What came of a renewal."""
        if isinstance(answer, TenureError):
            log.warning("%s: cannot be renewed: %s", self.key, answer.message)
        elif answer.outcome == "RENEWED":
            self.heed(answer)
        else:
            self.lost(receipt, answer)

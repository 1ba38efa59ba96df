"""The claim of a running function: its current receipt, and whether the function may continue.

A claim may be lost while the function runs: its lease expired behind a broken connection, or the store was restored.
Then the task is claimed again by name at once, and the function continues with the new receipt: another generation, and
the same attempt unless it was lost too often. The function must stop only if that is denied.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Literal

from tenure.client.client import Client
from tenure.client.times import granted_lease
from tenure.client.worker.failures import Cancelled, may_pass
from tenure.core.claims import is_own_ending
from tenure.core.commands import Command, Renew
from tenure.core.errors import TenureError
from tenure.core.outcomes import CODES, Outcome
from tenure.processes.tree_usage import TreeMeter

log = logging.getLogger("tenure.worker")

SHORTEST, LONGEST = 0.1, 5.0  # seconds between tries while the store is unavailable
STOPPING = ("pause", "cancel", "abort")
Heir = Literal["continues", "next", "refused"]


class HeldClaim:
    """Thread-safe for the function and the renewer."""

    def __init__(self, client: Client, granted: Outcome, asked: float | str, cancel: Callable[[], None]) -> None:
        """`asked`: the lease to ask for; `cancel` is called once, when the function must stop."""
        assert granted.task is not None
        assert granted.receipt is not None
        assert granted.generation is not None
        self.client, self._asked = client, asked
        self.lease = granted_lease(asked, granted)
        self.task: dict[str, Any] = dict(granted.task)
        self.key: str = granted.task["key"]
        self.receipt, self.generation = granted.receipt, granted.generation
        self.version: int = granted.task["version"]  # the last that this worker knows
        self.is_timed_out = False  # over its max_duration by this host's clock
        self.why: str | None = None  # the function must stop
        self.has_noticed = False  # and knows it
        self.is_over = False  # the claim has ended
        self.is_ending = False  # the command that ends it is on its way: its answer may come after a renewal's
        self.warning: str | None = None  # what the last answer warned of
        self.change: Outcome | None = None  # the last outcome that reported a changed description
        self.seen: int | None = None  # the number of the description that the function has read
        self.moved: Callable[[], None] = lambda: None  # called for each new generation
        self._cancel = cancel
        self._mutex = threading.RLock()  # held while the receipt is replaced
        self._stopped = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self.why is not None

    def check(self) -> None:
        """Raise Cancelled where the function must stop, or has ended its claim itself."""
        if self.why is not None or self.is_over:
            self.has_noticed = True
            raise Cancelled(self.why or "the claim has ended")

    def present(self, make: Callable[[str], Command]) -> Outcome:
        """Run a holder's command; raises Cancelled where the claim is lost for good."""
        return self.insist(lambda receipt: self.client.do(make(receipt)))

    def insist(self, action: Callable[[str], Outcome]) -> Outcome:
        """Call `action` with the receipt; raises Cancelled where the claim is lost for good.

        Retries until the store answers: a restarting server does not end the function.
        """
        pause = SHORTEST
        while True:
            try:
                return self._try(action)
            except TenureError as error:
                if not may_pass(error):
                    raise
                log.warning("%s: waits for the store: %s", self.key, error.message)
            self._stopped.wait(pause)
            pause = min(LONGEST, pause * 2)

    def try_once(self, make: Callable[[str], Command]) -> Outcome:
        """As `present`, but raises while the store is unavailable."""
        return self._try(lambda receipt: self.client.do(make(receipt)))

    def _try(self, action: Callable[[str], Outcome]) -> Outcome:
        while True:
            self.check()
            receipt = self.receipt
            outcome = action(receipt)
            if CODES[outcome.outcome].kind != "stale":
                self.heed(outcome)
                return outcome
            self.lost(receipt, outcome)

    def heed(self, outcome: Outcome) -> None:
        """Follow the outcome's directive: stop, note a changed description, or log a warning."""
        self.version = max(self.version, outcome.version or 0)
        warned, self.warning = self.warning, outcome.directive_text if outcome.directive == "warn" else None
        if outcome.directive in STOPPING:
            self.stop(outcome.directive_text or f"asked to {outcome.directive}")
        elif outcome.directive == "changed":
            if self.change is None or self.change.brief != outcome.brief:
                log.warning("%s: its description was changed", self.key)
            self.change = outcome
        elif outcome.directive == "warn" and self.warning != warned:
            log.warning("%s: warned: %s", self.key, outcome.directive_text)
        elif outcome.directive == "terminated":
            log.info("%s: %s", self.key, outcome.directive_text)  # the next claim is denied, and that ends the worker

    def lost(self, receipt: str, refusal: Outcome) -> None:
        """The receipt was refused: claim the task again, or stop."""
        with self._mutex:
            if self.is_over or self.is_cancelled or receipt != self.receipt:
                return  # another thread has handled it
            ended_by = self._ended_by()
            if self.is_ending and ended_by == "holder":
                return  # by this worker's own command
            if refusal.outcome == "TASK_CANCELLED" or ended_by is not None:
                self.stop(refusal.message or refusal.outcome)
                return
            again = self.client.claim(self.task["id"], lease=self._asked)
            if again.outcome != "GRANTED" or again.receipt is None or again.generation is None:
                self.stop(f"{refusal.message}; {again.message}")
                return
            self._continue_as(again, refusal.message)

    def take_over(self, granted: Outcome, *, has_returned: bool) -> Heir:
        """What becomes of a claim that the worker was granted for this task beside this one.

        `continues`: this claim was lost, and the function goes on with that one. `next`: it is for another attempt,
        which begins when the function has returned. `refused`: the function was asked to stop, and may run for long.
        """
        with self._mutex:
            if not (self.is_over or self.is_cancelled):
                ended_by = self._ended_by()
                if ended_by is None:
                    self._continue_as(granted, "its claim has ended")
                    return "continues"
                if ended_by == "another":
                    self.stop("another claim of the task was granted")
            return "refused" if self.is_cancelled and not (self.is_over or has_returned) else "next"

    def end_as(self, receipt: str) -> bool:
        """The claim has ended with this receipt; False where it goes on with a later one."""
        with self._mutex:
            if receipt == self.receipt:
                self.is_over = True
            return self.is_over

    def _continue_as(self, granted: Outcome, why: str) -> None:
        assert granted.receipt is not None
        assert granted.generation is not None
        self.receipt, self.generation = granted.receipt, granted.generation
        self.lease = granted_lease(self._asked, granted)
        log.warning("%s: %s; claimed again as generation %d", self.key, why, self.generation)
        self.moved()

    def _ended_by(self) -> Literal["holder", "another"] | None:
        """Who ended the claim on purpose: the function and this worker, or a person or a limit."""
        for entry in reversed(self.client.history(self.task["id"])):
            if entry["generation"] == self.generation:
                reason, error_class = entry["release_reason"], entry["error_class"]
                if is_own_ending(reason, error_class):
                    return "holder"
                is_hung = reason == "SUPERSEDED" and error_class == "timeout"
                return "another" if is_hung or reason == "PAUSED" else None
        return None

    def stop(self, why: str) -> None:
        """The function must stop."""
        with self._mutex:
            if self.why is None and not self.is_over:
                self.why = why
                self._stopped.set()
                log.warning("%s: stop: %s", self.key, why)
                self._cancel()

    def time_out(self, seconds: float) -> None:
        """The function has run for its max_duration, by this host's clock: the store need not be available."""
        with self._mutex:
            self.is_timed_out = self.why is None
            self.stop(f"max_duration of {seconds:g} s is over")

    def end(self) -> None:
        """The claim has ended: it is not renewed or claimed again."""
        with self._mutex:
            self.is_over = True

    def renewed(self, receipt: str, answer: Outcome | TenureError) -> None:
        """Handle the answer to a renewal."""
        if isinstance(answer, TenureError):
            log.warning("%s: cannot be renewed: %s", self.key, answer.message)
        elif answer.outcome == "RENEWED":
            self.heed(answer)
        else:
            self.lost(receipt, answer)


RENEW_AT = 0.4  # of the lease
JITTER = 0.1
TOGETHER = 0.05  # of the lease: renewals due within it go into one batch
UNAVAILABLE = 1.0  # seconds between tries while the store is unavailable, at most


class Renewer:
    """One thread that renews every claim of a worker and sends its heartbeat.

    A separate thread, not the event loop: a function that blocks the loop, or computes for an hour, keeps its lease.
    """

    def __init__(self, client: Client, every: float) -> None:
        """`every`: seconds between heartbeats."""
        self._client, self._every = client, every
        self._meter = TreeMeter()
        self._meter.measure(os.getpid())  # so that the first heartbeat knows the CPU, too
        self._due: dict[HeldClaim, float] = {}
        self._heartbeat = time.monotonic() + every
        self._changed = threading.Condition()
        self._is_over = False
        self._thread = threading.Thread(target=self._keep, name="tenure-renewer", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, claim: HeldClaim) -> None:
        with self._changed:
            self._due[claim] = self._next(claim)
            self._changed.notify()

    def remove(self, claim: HeldClaim) -> None:
        with self._changed:
            self._due.pop(claim, None)

    def renew_now(self, claims: Iterable[HeldClaim]) -> None:
        with self._changed:
            for claim in claims:
                if claim in self._due:
                    self._due[claim] = 0.0
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join()

    @staticmethod
    def _next(claim: HeldClaim) -> float:
        return time.monotonic() + claim.lease * RENEW_AT * (1 + random.uniform(-JITTER, JITTER))  # noqa: S311 no secret

    def _keep(self) -> None:
        while True:
            with self._changed:
                while not self._is_over and (left := self._soonest() - time.monotonic()) > 0:
                    self._changed.wait(left)
                if self._is_over:
                    return
                now = time.monotonic()
                due = [claim for claim, at in self._due.items() if at <= now + claim.lease * TOGETHER]
            try:
                self._renew([claim for claim in due if not claim.is_over and not claim.is_cancelled])
                if now >= self._heartbeat:
                    self._heartbeat = now + self._every
                    self._client.heartbeat(**self._own_usage())
            except TenureError as error:
                self._put_off(due, error)
            except Exception:  # the other claims must still be renewed
                log.exception("the renewer continues after an unexpected error")
                self._put_off(due, None)

    def _own_usage(self) -> dict[str, Any]:
        """What the worker does and uses: its oldest claim, memory and CPU of its processes."""
        with self._changed:
            task = next((claim.task["id"] for claim in self._due if not claim.is_over), None)
        report: dict[str, Any] = {} if task is None else {"task": task}
        used = self._meter.measure(os.getpid())
        return report if used is None else report | used._asdict()

    def _soonest(self) -> float:
        return min((*self._due.values(), self._heartbeat))

    def _renew(self, claims: list[HeldClaim]) -> None:
        if not claims:
            return
        receipts = [claim.receipt for claim in claims]
        batch = [
            Renew(project=claim.client.project, receipt=receipt, lease=claim.lease)
            for claim, receipt in zip(claims, receipts, strict=True)
        ]
        answers = self._client.batch(batch)
        for claim, receipt, answer in zip(claims, receipts, answers, strict=True):
            claim.renewed(receipt, answer)
            with self._changed:
                if claim in self._due:
                    self._due[claim] = self._next(claim)

    def _put_off(self, claims: list[HeldClaim], error: TenureError | None) -> None:
        if error is not None:
            log.warning("leases cannot be renewed now: %s", error.message)
        soon = time.monotonic() + min([UNAVAILABLE, *(claim.lease * TOGETHER for claim in claims)])
        with self._changed:
            self._heartbeat = max(self._heartbeat, soon)
            for claim in claims:
                if claim in self._due:
                    self._due[claim] = soon

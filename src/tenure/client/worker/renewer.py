"""The renewer: one thread that renews every claim of a worker and sends its heartbeat.

A separate thread, not the event loop: a function that blocks the loop, or computes for an hour, keeps its lease.
"""

from __future__ import annotations

import logging
import random
import threading
import time

from tenure.client.client import Client
from tenure.client.worker.held_claim import HeldClaim
from tenure.core import limits
from tenure.core.commands import Renew
from tenure.core.errors import TenureError

log = logging.getLogger("tenure.worker")

RENEW_AT = 0.4  # of the lease
JITTER = 0.1
TOGETHER = 0.05  # of the lease: renewals due within it go into one batch
UNAVAILABLE = 1.0  # seconds between tries while the store is unavailable, at most


class Renewer:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._due: dict[HeldClaim, float] = {}
        self._heartbeat = time.monotonic() + limits.PRESENCE_OF_WORKERS
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
                    self._heartbeat = now + limits.PRESENCE_OF_WORKERS
                    self._client.heartbeat()
            except TenureError as error:
                self._put_off(due, error)
            except Exception:  # the other claims must still be renewed
                log.exception("the renewer of leases goes on after")
                self._put_off(due, None)

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

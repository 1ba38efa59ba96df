"""The keeper: one thread that renews every claim of a worker, and tells that the worker is alive.

A thread of its own, and never the event loop: a function that blocks the loop, or computes for an hour, keeps its
lease.
"""

from __future__ import annotations

import logging
import random
import threading
import time

from tenure.client.client import Client
from tenure.client.worker.hold import Hold
from tenure.core import limits
from tenure.core.commands import Renew
from tenure.core.errors import TenureError

log = logging.getLogger("tenure.worker")

RENEW_AT = 0.4  # of the lease
JITTER = 0.1
TOGETHER = 0.05  # of the lease: what is due so soon is renewed in the same batch
AWAY = 1.0  # seconds between tries while the store is away, at most
PRESENCE = limits.PRESENCE_OF_WORKERS


class Keeper:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._due: dict[Hold, float] = {}
        self._presence = time.monotonic() + PRESENCE
        self._changed = threading.Condition()
        self._is_over = False
        self._thread = threading.Thread(target=self._keep, name="tenure-keeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, hold: Hold) -> None:
        with self._changed:
            self._due[hold] = self._next(hold)
            self._changed.notify()

    def remove(self, hold: Hold) -> None:
        with self._changed:
            self._due.pop(hold, None)

    def close(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self._thread.join()

    @staticmethod
    def _next(hold: Hold) -> float:
        return time.monotonic() + hold.lease * RENEW_AT * (1 + random.uniform(-JITTER, JITTER))  # noqa: S311 no secret

    def _keep(self) -> None:
        while True:
            with self._changed:
                while not self._is_over and (left := self._soonest() - time.monotonic()) > 0:
                    self._changed.wait(left)
                if self._is_over:
                    return
                now = time.monotonic()
                due = [hold for hold, at in self._due.items() if at <= now + hold.lease * TOGETHER]
            try:
                self._renew([hold for hold in due if not hold.is_over and not hold.is_cancelled])
                if now >= self._presence:
                    self._presence = now + PRESENCE
                    self._client.heartbeat()
            except TenureError as error:
                self._put_off(due, error)
            except Exception:  # whatever it was, the other claims must be kept
                log.exception("the keeper of leases goes on after")
                self._put_off(due, None)

    def _soonest(self) -> float:
        return min((*self._due.values(), self._presence))

    def _renew(self, holds: list[Hold]) -> None:
        if not holds:
            return
        receipts = [hold.receipt for hold in holds]
        batch = [
            Renew(project=hold.client.project, receipt=receipt, lease=hold.lease)
            for hold, receipt in zip(holds, receipts, strict=True)
        ]
        answers = self._client.batch(batch)
        for hold, receipt, answer in zip(holds, receipts, answers, strict=True):
            hold.renewed(receipt, answer)
            with self._changed:
                if hold in self._due:
                    self._due[hold] = self._next(hold)

    def _put_off(self, holds: list[Hold], error: TenureError | None) -> None:
        if error is not None:
            log.warning("leases cannot be renewed now: %s", error.message)
        soon = time.monotonic() + min([AWAY, *(hold.lease * TOGETHER for hold in holds)])
        with self._changed:
            self._presence = max(self._presence, soon)
            for hold in holds:
                if hold in self._due:
                    self._due[hold] = soon

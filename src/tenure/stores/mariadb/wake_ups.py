"""Wake-ups: one thread per store asks for all waiters, since MariaDB announces no commits.

It runs while somebody waits. Each time it reads the end of the log, one row; only where that has grown it asks for the
tenants that somebody waits for. Commits of this process wake its waiters without it. Sequences are in the order of
commits, so a waiter compares numbers and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from tenure.core.errors import TenureError

POLL = 0.02  # seconds between two questions
BACK_OFF = 0.5  # after a failure


class WakeUps:
    def __init__(
        self, log_end: Callable[[], int], marks: Callable[[list[str]], dict[str, int]], monotonic: Callable[[], float]
    ) -> None:
        self._log_end, self._marks, self._monotonic = log_end, marks, monotonic
        self._changed = threading.Condition()
        self._last: dict[str, int] = {}  # of each tenant: the highest sequence known to be committed
        self._waiting: dict[str, int] = {}  # how many wait for each tenant
        self._is_running = False
        self._ended = False

    def post(self, tenant: str, sequence: int) -> None:
        """A commit of the tenant."""
        with self._changed:
            if sequence > self._last.get(tenant, 0):
                self._last[tenant] = sequence
                self._changed.notify_all()

    def wait(self, marks: Mapping[str, int], timeout: float) -> frozenset[str]:
        until = self._monotonic() + timeout
        with self._changed:
            for tenant in marks:
                self._waiting[tenant] = self._waiting.get(tenant, 0) + 1
            try:
                while not (changed := self._news(marks)) and not self._ended:
                    left = until - self._monotonic()
                    if left <= 0:
                        break
                    self._start()
                    self._changed.wait(left)
                return changed
            finally:
                for tenant in marks:
                    self._waiting[tenant] -= 1
                    if not self._waiting[tenant]:
                        del self._waiting[tenant]

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _news(self, marks: Mapping[str, int]) -> frozenset[str]:
        return frozenset(tenant for tenant, mark in marks.items() if self._last.get(tenant, 0) > mark)

    def _start(self) -> None:
        if not self._is_running:
            self._is_running = True
            threading.Thread(target=self._run, name="tenure-wake-ups", daemon=True).start()

    def _run(self) -> None:
        end = -1
        asked: frozenset[str] = frozenset()
        pause = 0.0
        while True:
            with self._changed:
                if pause:
                    self._changed.wait(pause)
                tenants = frozenset(self._waiting)
                if self._ended or not tenants:
                    self._is_running = False
                    return
            try:
                now = self._log_end()
                if now != end or not tenants <= asked:
                    for tenant, last in self._marks(sorted(tenants)).items():
                        self.post(tenant, last)
                    end, asked = now, tenants
                pause = POLL
            except TenureError:
                pause = BACK_OFF

"""Tries: when a request is sent again, and with which error it is given up.

Every command that goes to a server has a request id, so that sending it again has one effect and the same answer.
What waits, and on what, is the caller's: threads sleep, event loops await.
"""

from __future__ import annotations

from collections.abc import Callable

from tenure.client.ways.asking import Request
from tenure.client.ways.hearing import Trouble, unknown
from tenure.core import limits

PATIENCE = limits.RETRY_FOR
SHORTEST, LONGEST = 0.05, 2.0  # seconds between two tries


class Tries:
    def __init__(self, request: Request, monotonic: Callable[[], float], fraction: Callable[[], float]) -> None:
        self._request, self._monotonic, self._fraction = request, monotonic, fraction
        self._until = monotonic() + PATIENCE
        self._count = 0
        self._is_unknown = False  # one of them may have done something

    def pause_after(self, trouble: Trouble) -> float:
        """Seconds until the next try; raises where there is none."""
        self._is_unknown |= trouble.is_sent and not self._request.is_look
        pause = float(min(LONGEST, SHORTEST * 2**self._count) * (0.5 + self._fraction()))
        pause = max(pause, trouble.retry_after or 0.0)
        self._count += 1
        # An answer that was long in coming may have used up the time; the second try tells what became of it.
        is_over = self._monotonic() + pause > self._until
        if is_over and (self._count > 1 or (trouble.retry_after or 0.0) > PATIENCE):
            raise self.end(trouble)
        return pause

    def end(self, trouble: Trouble) -> Exception:
        """The error to give up with."""
        is_unknown = self._is_unknown or (trouble.is_sent and not self._request.is_look)
        return unknown(trouble.error, self._request.request_id) if is_unknown else trouble.error

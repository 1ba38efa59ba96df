"""Notices that a running function's task was cancelled, paused, edited or taken: within a second, in one query.

A renewal would notice it too, but comes only after 40 per cent of the lease. This thread waits for events, reads the
versions of all watched tasks, and lets the renewer renew at once where one has changed: the answer to that renewal
decides, as to any other. A server reports only events of these tasks; on a local store every event wakes the thread,
which then reads at most twice a second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from tenure.client.client import Client
from tenure.client.worker.held_claim import HeldClaim
from tenure.core import limits
from tenure.core.errors import TenureError
from tenure.core.lifecycle import HELD

log = logging.getLogger("tenure.worker")

EVERY = 0.5  # seconds between two reads, at least; a function that ends earlier is not watched
UNAVAILABLE = 2.0  # seconds between tries while the store is unavailable


class Watcher:
    def __init__(self, client: Client, renew: Callable[[Iterable[HeldClaim]], None]) -> None:
        """`renew` has these claims renewed at once."""
        self._client, self._renew = client, renew
        self._since: dict[HeldClaim, float] = {}
        self._changed = threading.Condition()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tenure-watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, claim: HeldClaim) -> None:
        with self._changed:
            self._since[claim] = time.monotonic() + EVERY
            self._changed.notify()

    def remove(self, claim: HeldClaim) -> None:
        with self._changed:
            self._since.pop(claim, None)

    def close(self) -> None:
        self._is_over.set()
        with self._changed:
            self._changed.notify()
        self._thread.join()

    def _watch(self) -> None:
        while watched := self._due():
            began = time.monotonic()
            try:
                mark = self._client.mark()  # before the read: later events wake us
                self._check(watched)
                self._is_over.wait(max(0.0, began + EVERY - time.monotonic()))
                tasks = [claim.task["id"] for claim in watched]
                is_wanted = partial(self._is_current, watched)
                self._client.wait_for_news(mark, limits.WORKER_POLL, tasks=tasks, is_wanted=is_wanted)
            except TenureError as error:
                log.debug("the tasks at work cannot be watched now: %s", error.message)
                self._is_over.wait(UNAVAILABLE)
            except Exception:  # the renewals go on, and notice everything later
                log.exception("the watcher continues after an unexpected error")
                self._is_over.wait(UNAVAILABLE)

    def _due(self) -> tuple[HeldClaim, ...]:
        """The claims to watch, as soon as there are any; none when the worker ends."""
        with self._changed:
            while not self._is_over.is_set():
                watched = self._watched()
                if watched:
                    return watched
                soonest = min(self._since.values(), default=None)
                self._changed.wait(None if soonest is None else max(0.0, soonest - time.monotonic()))
        return ()

    def _watched(self) -> tuple[HeldClaim, ...]:
        now = time.monotonic()
        return tuple(
            claim for claim, since in self._since.items() if since <= now and not (claim.is_over or claim.is_cancelled)
        )

    def _is_current(self, known: tuple[HeldClaim, ...]) -> bool:
        """Whether the wait goes on: no other claim has to be watched, and one of them still runs."""
        if self._is_over.is_set():
            return False
        with self._changed:
            watched = self._watched()
        return bool(watched) and set(watched) <= set(known)

    def _check(self, watched: tuple[HeldClaim, ...]) -> None:
        lines = {line["name"]: line for line in self._client.states([claim.task["id"] for claim in watched])}
        changed = []
        for claim in watched:
            line: Mapping[str, Any] = lines.get(claim.task["id"], {})
            is_held = line.get("state") in HELD and line.get("generation") == claim.generation
            if not is_held or line["version"] > claim.version:
                claim.version = line.get("version", claim.version)
                changed.append(claim)
        if changed:
            self._renew(changed)

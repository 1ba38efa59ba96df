"""Counts each event of the store once, however many servers share it.

Every server reads the whole log, and the log contains the elections. Each server counts the events from its own
election to the next one, so the servers divide the log without communication and the sum over all is right. Events that
a leader had not read when it was killed are not counted: at most one lease, and its counters ended with it.

A thread counts, one page at a time, and reads from the store the facts that neither the events nor this server's
outcomes have. Nothing waits for it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence

from tenure.core import limits
from tenure.core.errors import StoreError
from tenure.core.events import Event
from tenure.core.outcomes import Outcome
from tenure.engine import Engine
from tenure.engine.verbs.lead import COORDINATOR
from tenure.server.metrics import Metrics
from tenure.server.task_cache import TaskCache

PAGE = 500
PATIENCE = limits.METRIC_CLOSE
MOST_WAITING = limits.METRIC_EVENTS
MOST_ANSWERED = limits.METRIC_ANSWERS
ELECTED = "leader.elected"
_IDLE = frozenset({"task.progress", "task.checkpoint", "task.landing", "task.noted", "task.started"})  # count nothing


class EventCounter:
    """A listener of the feed. `instance` is this server's name in elections."""

    def __init__(self, engine: Engine, metrics: Metrics, instance: str) -> None:
        self._engine, self._metrics, self._instance = engine, metrics, instance
        self._counts = False  # as of the last event received
        self._waiting: deque[Event] = deque()
        self._cache = TaskCache()
        self._answered: deque[tuple[str, Outcome]] = deque(maxlen=MOST_ANSWERED)
        self._has_missed = False
        self._changed = threading.Condition()
        self._is_closing = self._is_busy = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        # A daemon: it must not delay the end of the process.
        self._thread = threading.Thread(target=self._run, name="tenure-counting", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current page; events that still wait are dropped."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(PATIENCE)

    def hear(self, events: Sequence[Event]) -> None:
        """Queue events, in the order of the log; fast, since the event loop calls it."""
        mine = list(self._mine(events))
        if not mine:
            return
        with self._changed:
            self._waiting.extend(mine)
            left_out = max(0, len(self._waiting) - MOST_WAITING)
            for _ in range(left_out):
                self._waiting.popleft()
                self._has_missed = True
            self._changed.notify_all()
        if left_out:
            self._metrics.uncounted(left_out)

    def see(self, project: str, outcome: Outcome) -> None:
        """Keep the outcome of a claim granted here: its tasks need not be read when its events arrive."""
        if self._counts:
            self._answered.append((project, outcome))

    def _mine(self, events: Iterable[Event]) -> Iterable[Event]:
        for event in events:
            if event.kind == ELECTED and event.details.get("for") == COORDINATOR:
                self._counts = event.agent == self._instance
                if self._counts:
                    yield event
            elif self._counts and (event.task is not None or event.kind == "agent.stale") and event.kind not in _IDLE:
                yield event

    def idle(self, timeout: float) -> bool:
        """Wait until all queued events are counted."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._is_busy, timeout)

    # --- the thread ---

    def _run(self) -> None:
        while True:
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._is_closing)
                if self._is_closing:
                    return
                page = [self._waiting.popleft() for _ in range(min(PAGE, len(self._waiting)))]
                self._is_busy = True
                has_missed, self._has_missed = self._has_missed, False
            if has_missed or any(event.kind == ELECTED for event in page):
                self._cache.forget()
            try:
                self._learn_answers()
                self._count(page)
            except Exception:  # noqa: BLE001 - a bug here must not stop the counting
                self._metrics.uncounted(len(page))
                self._cache.forget()

    def _learn_answers(self) -> None:
        while self._answered:
            project, outcome = self._answered.popleft()
            for granted in outcome.claims or (outcome,):
                if granted.task is not None:
                    self._cache.show(project, granted.task)

    def _count(self, page: Sequence[Event]) -> None:
        missing = self._cache.missing(page)
        try:
            if missing is not None:
                with self._engine.store.begin(self._engine.tenant, write=False) as tx:
                    self._cache.learn_rows(tx, missing)
        except StoreError:
            self._cache.forget_rows()  # the counters continue without the missing facts
        for event in page:
            if event.kind != ELECTED:
                self._metrics.event(event, self._cache.facts_of(event))

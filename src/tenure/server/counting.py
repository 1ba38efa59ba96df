"""What happened in the store, counted once, however many servers share it.

Every server hears the whole log, and the log itself says who leads: an election is an event in it, and each server
counts what lies between its own election and the next. So the servers divide the log among them without a word, and
the sum over all is right. What a leader had not heard when it was killed, nobody counts: at most a lease's worth,
and its counters died with it.

A thread counts, a page at a time, and reads from the store what neither events nor the server's own answers say:
nothing waits for it.
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
from tenure.server.remembering import Remembered

PAGE = 500
PATIENCE = limits.METRIC_CLOSE
MOST_WAITING = limits.METRIC_EVENTS
MOST_ANSWERED = limits.METRIC_ANSWERS
ELECTED = "leader.elected"
_IDLE = frozenset({"task.progress", "task.checkpoint", "task.landing", "task.noted", "task.started"})  # count nothing


class Counting:
    """A listener of the feed. `instance` is the name under which this server stands for election."""

    def __init__(self, engine: Engine, metrics: Metrics, instance: str) -> None:
        self._engine, self._metrics, self._instance = engine, metrics, instance
        self._counts = False  # as of the last event heard
        self._waiting: deque[Event] = deque()
        self._remembered = Remembered()
        self._answered: deque[tuple[str, Outcome]] = deque(maxlen=MOST_ANSWERED)
        self._has_missed = False
        self._changed = threading.Condition()
        self._is_closing = self._is_busy = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        # A daemon: numbers that nobody will read any more must not hold up the end.
        self._thread = threading.Thread(target=self._run, name="tenure-counting", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the page in hand; what still waits is for nobody to read."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(PATIENCE)

    def hear(self, events: Sequence[Event]) -> None:
        """Take note, in the order of the log; quick, since the event loop calls it."""
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
        """A claim that was granted here: what its answer says of the tasks need not be read when its events come."""
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
        """Wait until all that was heard is counted."""
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
                self._remembered.forget()
            try:
                self._learn_answers()
                self._count(page)
            except Exception:  # noqa: BLE001 - a fault of ours here must not end all counting
                self._metrics.uncounted(len(page))
                self._remembered.forget()

    def _learn_answers(self) -> None:
        while self._answered:
            project, outcome = self._answered.popleft()
            for granted in outcome.claims or (outcome,):
                if granted.task is not None:
                    self._remembered.show(project, granted.task)

    def _count(self, page: Sequence[Event]) -> None:
        missing = self._remembered.missing(page)
        try:
            if missing is not None:
                with self._engine.store.begin(self._engine.tenant, write=False) as tx:
                    self._remembered.learn_rows(tx, missing)
        except StoreError:
            self._remembered.forget_rows()  # the counters go on; what is missing is left out
        for event in page:
            if event.kind != ELECTED:
                self._metrics.event(event, self._remembered.about(event))

"""Threads that collect evidence for commands, so that no batch waits for it: see `evidence.py`.

Two threads, as many as there are checking processes, each for a second per question at most. Started on first use.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import NamedTuple

from tenure.core import limits
from tenure.engine.checks.evidence import Finding, Question, collect, too_many

THREADS = 2
MOST_WAITING = limits.CHECKS_WAITING

Tell = Callable[[dict[str, Finding]], None]


class _Inquiry(NamedTuple):
    questions: Sequence[Question]
    tell: Tell


class EvidenceThreads:
    def __init__(self, threads: int = THREADS, most_waiting: int = MOST_WAITING) -> None:
        self._most, self._most_waiting = threads, most_waiting
        self._queue: SimpleQueue[_Inquiry | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def ask(self, questions: Sequence[Question], tell: Tell) -> None:
        """`tell` receives the findings, in one of these threads, or in the caller's where too many wait already."""
        if self._queue.qsize() >= self._most_waiting:
            tell(too_many(questions))
            return
        with self._lock:
            if len(self._threads) < self._most:
                thread = threading.Thread(target=self._work, name="tenure-inquirer", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._queue.put(_Inquiry(questions, tell))

    def close(self) -> None:
        """Answer the open inquiries, and end."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()

    def _work(self) -> None:
        while (inquiry := self._queue.get()) is not None:
            inquiry.tell(collect(inquiry.questions))

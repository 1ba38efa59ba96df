"""A thread that works while its process leads: a relay, webhooks, hooks, notices, file watch, ended processes."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tenure.core import limits
from tenure.core.errors import TenureError
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import Refused

PAUSE = 1.0  # seconds between two steps while nothing is written
GATHERED = 0.2  # seconds after a step without more to do, so that single events share a write of the row


class LeaderThread:
    """`step` is for one thread; `start` runs it in a new thread until `stop`."""

    gathered = GATHERED  # seconds
    every: float | None = None  # seconds between two steps of a thread that does not read the log
    is_waiting = False  # something waits for its time, as of the last step

    def __init__(self, engine: Engine, name: str, leading: Callable[[], LeaderEngine | None]) -> None:
        """`leading` returns the engine of the current term while this process leads by its own clock."""
        self.engine, self.name, self.leading = engine, name, leading
        self._mark = 0
        self._is_led = False  # as of the last step: only then is the mark current
        self._troubles = 0  # steps in a row that failed
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"tenure-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(limits.RELAY_SEND)
        self.close()

    def _run(self) -> None:
        while not self._ended.is_set():
            pause = self.step()
            if not pause:
                continue
            if self._troubles or not self._is_led or self.is_busy():
                self._ended.wait(pause)
                continue
            self._ended.wait(self.gathered)
            try:
                self.engine.wait(self._mark, pause)
            except TenureError:
                self._ended.wait(pause)
        if not self._troubles and self.every is None:
            self.step()  # the last events of a short run

    def step(self) -> float:
        """Work once; return the seconds until the next step."""
        try:
            led = self.leading()
            self._is_led = led is not None
            if led is None:
                self.idle()
                return PAUSE
            self._mark = self.engine.mark()  # before the read: any later write wakes us
            more = self.work(led)
            self._troubles = 0
            return 0.0 if more else self.every or PAUSE
        except Refused:  # no longer leads
            return PAUSE
        except Exception as error:  # noqa: BLE001 - a bug, or a library's, must not end the thread for good
            self._troubles += 1
            self.failed(error)
        back_off = min(limits.RELAY_BACK_OFF, 0.25 * 2.0 ** min(self._troubles, 10))
        return back_off * (0.5 + self.engine.random.fraction())

    def has_more_to_do(self) -> bool:
        """Whether the next step is to come without an event: the last one failed, or something waits for its time."""
        return self._troubles > 0 or self.is_busy() or self.is_waiting

    # --- what each of them does ---

    def work(self, led: LeaderEngine) -> bool:
        """Read at most one page and act on it; True where there is more to do at once."""
        raise NotImplementedError

    def failed(self, error: Exception) -> None:
        """A step raised this error; the next one comes after a pause."""

    def idle(self) -> None:
        """Called instead of `work` while this process does not lead."""

    def is_busy(self) -> bool:
        """Whether it must look again without news of the log."""
        return self.every is not None

    def close(self) -> None:
        """Let go of connections and threads."""

"""A reader of the log that is not a broker: local hooks, notices. Its place is a row of sinks, as a relay's is.

A separate thread, active only while the process leads; `step` does its work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from tenure.core import limits
from tenure.core.errors import StoreError, TenureError
from tenure.core.records import Sink, replace
from tenure.engine.archive.log_readers import end_of_log
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.page import Page, read_page
from tenure.engine.relay.relay import PAGE, PAUSE
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import Refused, UnitOfWork


class Reader:
    """`step` is for one thread; `start` runs it in a new thread."""

    def __init__(
        self,
        engine: Engine,
        name: str,
        about: str,
        kinds: frozenset[str],
        leading: Callable[[], LeaderEngine | None],
        *,
        failed: Callable[[str], object] = lambda _: None,
    ) -> None:
        """`about`: what the row shows instead of a URL. `failed` receives errors, each once until it changes."""
        self.engine, self.name, self.about, self.kinds = engine, name, about, kinds
        self.leading, self._failed = leading, failed
        self._mark = 0
        self._is_led = False  # as of the last step: only then is the mark current
        self._troubles = 0
        self._said: str | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"tenure-{self.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(limits.RELAY_SEND)

    def _run(self) -> None:
        while not self._ended.is_set():
            pause = self.step()
            if not pause:
                continue
            if self._troubles or not self._is_led:
                self._ended.wait(pause)
                continue
            try:
                self.engine.store.wait(self._mark, pause)
            except StoreError:
                self._ended.wait(pause)
        if not self._troubles:
            self.step()  # the last events of a short run

    def step(self) -> float:
        """Read at most one page; return the seconds until the next step."""
        try:
            led = self.leading()
            self._is_led = led is not None
            if led is None:
                self.idle()
                return PAUSE
            self._mark = self.engine.store.mark()
            more = self.read(led)
            self._troubles, self._said = 0, None
            return 0.0 if more else PAUSE
        except Refused:  # no longer leads
            return PAUSE
        except Exception as error:  # noqa: BLE001 - a bug must not end the thread for good
            self.trouble(error)
        self._troubles += 1
        return min(limits.RELAY_BACK_OFF, 0.25 * 2.0 ** min(self._troubles, 10))

    def trouble(self, error: Exception) -> None:
        text = error.message if isinstance(error, TenureError) else f"{type(error).__name__}: {error}"
        if text != self._said:
            self._said = text
            self._failed(f"{self.name}: {text}")

    def read(self, led: LeaderEngine) -> bool:
        """Read and act; True where there is more to read at once."""
        raise NotImplementedError

    def idle(self) -> None:
        """Called instead of `read` while this process does not lead."""

    # --- the row ---

    def page(self, led: LeaderEngine, *, after: int = 0) -> Page:
        """The next page; a new reader gets the events from now on, as does one that was cut off."""
        page = read_page(self.engine, self.name, self.kinds, PAGE, after=after)
        if page is None or page.row.cut_off_at is not None:
            led.transact((), self._register)
            page = read_page(self.engine, self.name, self.kinds, PAGE)
        assert page is not None
        return page

    def _register(self, work: UnitOfWork) -> None:
        row = work.get(Sink, "", self.name)
        end = end_of_log(work)
        if row is None:
            row = Sink(project="", id=self.name, sequence=end, url=self.about, created_at=work.now)
            work.record("sink.added", project="", details={"sink": self.name, "url": self.about})
        elif row.cut_off_at is not None:
            details = {"sink": self.name, "from": row.sequence + 1, "to": end}
            work.record("sink.gap", project="", level="error", details=details)
        work.put(replace(row, sequence=end if row.cut_off_at is not None else row.sequence, cut_off_at=None))

    def move(self, led: LeaderEngine, row: Sink, end: int, *, sent: int = 0, error: str | None = None) -> bool:
        """Move the place under the term; False where somebody has moved or removed it meanwhile."""

        def decide(work: UnitOfWork) -> bool:
            current = work.get(Sink, "", self.name)
            if current is None or current.sequence != row.sequence:
                return False
            work.put(
                replace(
                    current, sequence=end, sent=current.sent + sent, sent_at=work.now if sent else current.sent_at,
                    error=error, error_at=work.now if error else None,
                )
            )  # fmt: skip
            return True

        return led.transact((), decide)

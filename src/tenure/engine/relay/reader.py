"""A reader of the log that is not a broker: local hooks, notices. Its place is a row of sinks, as a relay's is."""

from __future__ import annotations

from collections.abc import Callable

from tenure.core.errors import spelled
from tenure.core.records import Sink, replace
from tenure.engine.archive.log_readers import end_of_log
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.leader_thread import LeaderThread
from tenure.engine.relay.page import PAGE, Page, read_page
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import UnitOfWork


class Reader(LeaderThread):
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
        super().__init__(engine, name, leading)
        self.about, self.kinds = about, kinds
        self._report = failed
        self._last_error: str | None = None

    def work(self, led: LeaderEngine) -> bool:
        more = self.read(led)
        self._last_error = None
        return more

    def failed(self, error: Exception) -> None:
        text = spelled(error)
        if text != self._last_error:
            self._last_error = text
            self._report(f"{self.name}: {text}")

    def read(self, led: LeaderEngine) -> bool:
        """Read and act; True where there is more to read at once."""
        raise NotImplementedError

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

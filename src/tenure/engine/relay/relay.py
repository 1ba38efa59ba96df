"""The loop of one sink: read a page, send it, move the row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tenure.core import limits
from tenure.core.errors import StoreError, TenureError, spelled
from tenure.core.events import Event
from tenure.core.records import Sink as SinkRow
from tenure.core.records import replace
from tenure.core.redaction import without_secrets
from tenure.engine.archive.log_readers import end_of_log
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.announce import Announcer
from tenure.engine.relay.leader_thread import LeaderThread
from tenure.engine.relay.page import PAGE, Page, facts_of, read_page
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import Refused, UnitOfWork
from tenure.sinks import names
from tenure.sinks.envelope import messages_of
from tenure.sinks.port import Message, Sink, SinkUnavailable

ANNOUNCE_EVERY = 30.0
LAG_EVERY = 15.0  # a sink is asked how far its consumers are behind
ERROR_EVERY = 60 * 1_000_000  # a sink that stays down is written to its row this often


class Settings(NamedTuple):
    """One sink's, from the configuration of the process that runs it."""

    name: str
    url: str = ""  # without its password
    kinds: frozenset[str] = frozenset()  # of events; none: all, and commands and dead letters
    projects: tuple[str, ...] = ()
    max_lag: int = limits.RELAY_LAG
    announces: bool = True  # it carries commands
    short_names: bool = False


class Progress(NamedTuple):
    """What one step has done, for metrics."""

    sent: int = 0
    error: str | None = None
    consumer_lag: int | None = None  # messages, where the sink knows and was asked


class Relay(LeaderThread):
    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        open_sink: Callable[[], Sink],
        leading: Callable[[], LeaderEngine | None],
        monotonic: Callable[[], float],
        *,
        stepped: Callable[[str, Progress], None] = lambda *_: None,
    ) -> None:
        super().__init__(engine, f"relay-{settings.name}", leading)
        self.settings = settings
        self._open, self._monotonic, self._stepped = open_sink, monotonic, stepped
        self._sink: Sink | None = None
        self._announcer = Announcer()
        self._announce_at = self._lag_at = 0.0

    def work(self, led: LeaderEngine) -> bool:
        """Send at most one page."""
        progress, more = self._send_page(led)
        self._stepped(self.settings.name, progress)
        return more

    def _send_page(self, led: LeaderEngine) -> tuple[Progress, bool]:
        page = self._page(led)
        if page.row.paused_at is not None:
            return Progress(), False
        sink = self._opened()
        self._check_identity(led, sink, page.row)
        if page.row.cut_off_at is not None:
            self._send_gap(led, sink, page)
            return Progress(), True
        batch = [
            (event, message)
            for event, facts in page.events
            for message in messages_of(event, facts, short_names=self.settings.short_names)
            if self._is_wanted(message)
        ]
        sent, error = self._send(sink, [message for _, message in batch])
        end = page.end if sent == len(batch) else _before(batch[sent][0], batch, page.row.sequence)
        if end != page.row.sequence:
            self._move(led, page.row, end, sent)
        if error is not None:
            raise error
        self._announce(sink, page.row)
        return Progress(sent, consumer_lag=self._consumer_lag(sink)), page.is_full or end != page.end

    def _consumer_lag(self, sink: Sink) -> int | None:
        now = self._monotonic()
        if now < self._lag_at:
            return None
        self._lag_at = now + LAG_EVERY
        return sink.lag()

    def _send(self, sink: Sink, messages: Sequence[Message]) -> tuple[int, SinkUnavailable | None]:
        """How many were acknowledged, and why not all. Sends nothing more once the lease may be over."""
        sent = 0
        while sent < len(messages) and self.leading() is not None:
            try:
                sent += sink.send(messages[sent:], limits.RELAY_SEND)
            except SinkUnavailable as error:
                return sent, error
        return sent, None

    def _page(self, led: LeaderEngine) -> Page:
        settings = self.settings
        page = read_page(self.engine, settings.name, settings.kinds, PAGE)
        if page is None or (page.row.url, page.row.projects, page.row.max_lag) != settings[1:2] + settings[3:5]:
            led.transact((), self._register)
            page = read_page(self.engine, settings.name, settings.kinds, PAGE)
        assert page is not None
        return page

    def _register(self, work: UnitOfWork) -> None:
        """A new sink gets the events from now on."""
        s = self.settings
        row = work.get(SinkRow, "", s.name)
        if row is None:
            row = SinkRow(project="", id=s.name, sequence=end_of_log(work), created_at=work.now)
            work.record("sink.added", project="", details={"sink": s.name, "url": s.url})
        work.put(replace(row, url=s.url, projects=s.projects, max_lag=s.max_lag))

    def _is_wanted(self, message: Message) -> bool:
        """With `kinds` a sink gets the events that it names, and neither commands nor dead letters in full."""
        return not self.settings.kinds or names.family_of(message.name) == names.EVENTS

    def _opened(self) -> Sink:
        if self._sink is None:
            self._sink = self._open()
        return self._sink

    def _check_identity(self, led: LeaderEngine, sink: Sink, row: SinkRow) -> None:
        identity = sink.identity()
        if identity == row.identity:
            return
        if row.identity is None and hasattr(sink, "rewound"):  # a new sink has nothing to lose by it
            sink.rewound()

        def decide(work: UnitOfWork) -> None:
            current = work.get(SinkRow, "", row.id)
            if current is None:
                return
            if current.identity is not None:
                work.record("sink.forgot", project="", level="warning", details={"sink": row.id})
            work.put(replace(current, identity=identity))

        led.transact((), decide)
        if row.identity is not None:
            self._announcer.forget()
            self._announce_at = 0.0
            self._announce(sink, row, everything=True)

    def _send_gap(self, led: LeaderEngine, sink: Sink, page: Page) -> None:
        """The sink was cut off: it first learns which events it does not get, then continues after them."""

        def decide(work: UnitOfWork) -> tuple[int, Event]:
            end = end_of_log(work)
            details = {"sink": page.row.id, "from": page.row.sequence + 1, "to": end}
            work.record("sink.gap", project="", level="error", details=details)
            return end, work.events[-1]

        end, event = led.transact((), decide)
        ((event, facts),) = self.engine.read(lambda tx: facts_of(tx, self.engine.tenant, [event]))
        if sink.send(messages_of(event, facts), limits.RELAY_SEND):
            self._move(led, page.row, end, 1)

    def _move(self, led: LeaderEngine, row: SinkRow, end: int, sent: int) -> None:
        def decide(work: UnitOfWork) -> None:
            current = work.get(SinkRow, "", row.id)
            if current is None or current.sequence != row.sequence:
                return  # removed, or rewound meanwhile: the next page begins there
            work.put(
                replace(
                    current, sequence=end, sent=current.sent + sent, sent_at=work.now, cut_off_at=None, error=None,
                    error_at=None,
                )
            )  # fmt: skip

        led.transact((), decide)

    def _announce(self, sink: Sink, row: SinkRow, *, everything: bool = False) -> None:
        now = self._monotonic()
        if not self.settings.announces or self.settings.kinds or now < self._announce_at:
            return
        _, error = self._send(sink, self._announcer.sweep(self.engine, row, everything=everything))
        if error is not None:
            raise error
        self._announce_at = now + ANNOUNCE_EVERY

    # --- trouble ---

    def failed(self, error: Exception) -> None:
        text = without_secrets(spelled(error))
        self._stepped(self.settings.name, Progress(error=text))
        if not isinstance(error, StoreError):
            self.close()
            self._note_error(text)

    def _note_error(self, text: str) -> None:
        def decide(work: UnitOfWork) -> None:
            row = work.get(SinkRow, "", self.settings.name)
            if row is None or (row.error_at is not None and work.now < row.error_at + ERROR_EVERY):
                return
            work.put(replace(row, error=text[:500], error_at=work.now))

        with suppress(Refused, TenureError):  # the next step reports the store's error
            led = self.leading()
            if led is not None:
                led.transact((), decide)

    def close(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()


def _before(event: Event, batch: Sequence[tuple[Event, Message]], start: int) -> int:
    """The sequence of the last event of which every message is sent: the one before `event`."""
    earlier = [e.sequence for e, _ in batch if e.sequence < event.sequence]
    return max(earlier, default=start)

"""The loop of one sink: read a page, send it, move the row."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tenure.core import limits
from tenure.core.errors import StoreError, TenureError
from tenure.core.events import Event
from tenure.core.records import Sink as SinkRow
from tenure.core.records import replace
from tenure.engine.archive.log_readers import end_of_log
from tenure.engine.duties.election import LeaderEngine
from tenure.engine.relay.announce import Announcer
from tenure.engine.relay.page import Page, facts_of, read_page
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import Refused, UnitOfWork
from tenure.sinks import names
from tenure.sinks.envelope import messages_of
from tenure.sinks.port import Message, Sink, SinkUnavailable

PAGE = 1000  # events
ANNOUNCE_EVERY = 30.0
PAUSE = 1.0  # between two looks at the log while nothing is written
LAG_EVERY = 15.0  # a sink is asked how far its consumers are behind
GATHERED = 0.05  # seconds after a page that is not full, so that single events share a write of the row
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


class Relay:
    """`step` is for one thread; `start` runs it in a new thread."""

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
        """`leading` returns the engine of the current term while this process leads by its own clock."""
        self.engine, self.settings = engine, settings
        self._open, self._leading, self._monotonic, self._stepped = open_sink, leading, monotonic, stepped
        self._sink: Sink | None = None
        self._announcer = Announcer()
        self._announce_at = self._lag_at = 0.0
        self._troubles = 0
        self._mark = 0
        self._is_led = False  # as of the last step: only then is the mark current
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    # --- the thread ---

    def start(self) -> None:
        name = f"tenure-relay-{self.settings.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join(limits.RELAY_SEND)
        self._close()

    def _run(self) -> None:
        while not self._ended.is_set():
            pause = self.step()
            if pause and self._is_led and not self._troubles:
                self._ended.wait(GATHERED)
                self._wait_for_news(pause)
            elif pause:
                self._ended.wait(pause)
        if not self._troubles:
            self.step()  # the last events of a short run

    def _wait_for_news(self, pause: float) -> None:
        try:
            self.engine.store.wait(self._mark, pause)
        except StoreError:
            self._ended.wait(pause)

    # --- a step ---

    def step(self) -> float:
        """Send at most one page; return the seconds until the next step."""
        try:
            led = self._leading()
        except TenureError:  # it is looked up in the store where that was copied
            return PAUSE
        self._is_led = led is not None
        if led is None:
            return PAUSE
        try:
            self._mark = self.engine.store.mark()
            progress, more = self._send_page(led)
            self._troubles = 0
        except Refused:  # no longer leads
            return PAUSE
        except TenureError as error:
            return self._back_off(led, error)
        except Exception as error:  # noqa: BLE001 - a bug, or a library's, must not end the thread for good
            return self._back_off(led, SinkUnavailable(f"{type(error).__name__}: {error}"))
        self._stepped(self.settings.name, progress)
        return 0.0 if more else PAUSE

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
        while sent < len(messages) and self._leading() is not None:
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
        with self.engine.store.begin(self.engine.tenant, write=False) as tx:
            ((event, facts),) = facts_of(tx, self.engine.tenant, [event])
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

    def _back_off(self, led: LeaderEngine, error: TenureError) -> float:
        self._troubles += 1
        self._stepped(self.settings.name, Progress(error=error.message))
        if isinstance(error, SinkUnavailable):
            self._close()
            self._note_error(led, error)
        back_off = min(limits.RELAY_BACK_OFF, 0.25 * 2.0 ** min(self._troubles, 10))
        return back_off * (0.5 + self.engine.random.fraction())

    def _note_error(self, led: LeaderEngine, error: SinkUnavailable) -> None:
        def decide(work: UnitOfWork) -> None:
            row = work.get(SinkRow, "", self.settings.name)
            if row is None or (row.error_at is not None and work.now < row.error_at + ERROR_EVERY):
                return
            work.put(replace(row, error=error.message[:500], error_at=work.now))

        with suppress(Refused, TenureError):  # the next step reports the store's error
            led.transact((), decide)

    def _close(self) -> None:
        sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()


def _before(event: Event, batch: Sequence[tuple[Event, Message]], start: int) -> int:
    """The sequence of the last event of which every message is sent: the one before `event`."""
    earlier = [e.sequence for e, _ in batch if e.sequence < event.sequence]
    return max(earlier, default=start)

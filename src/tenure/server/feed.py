"""New events, read once for everybody in this process who wants to know: live streams, waiting claims, metrics.

One thread waits for the store and reads what is new; the event loop hands it on. Nothing depends on it having been
prompt: streams catch up from the log by their cursor, and whoever waits for work also looks from time to time. While
nobody waits it reads more rarely, since a page costs much the same whether it holds one event or a hundred; behind a
full page it reads on at once, or it would fall behind for good.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from tenure.client.wire import plain
from tenure.core import limits
from tenure.core.errors import StoreError, TenureError
from tenure.core.events import Event
from tenure.core.filters import matches
from tenure.engine import Engine
from tenure.engine.reads.tasks import event_view

PAGE = 1000
WAIT = 0.2  # seconds between looks whether the server is closing
LULL = 0.1  # seconds from a page that was not full to the next one, while nobody waits for news
HELD_BACK = 0.01  # an event is there, but one before it has not committed yet
AWAY = 1.0  # between tries while the store is away
BEAT = 15.0  # a sign of life on a silent stream, so that proxies keep it and a dead one shows
MOST_BEHIND = limits.STREAM_BEHIND

SIGN_OF_LIFE = b": still here\n\n"

Listener = Callable[[Sequence[Event]], None]


class Feed:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.position = -1  # the last sequence that was handed on; below 0 until the store was heard of
        self.listeners: list[Listener] = []  # called in the event loop
        self._streams: dict[str, set[Stream]] = {}
        self._news = asyncio.Event()
        self._closing = threading.Event()
        self._waiting = 0  # who wants to hear at once
        self._is_awaited = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        with suppress(StoreError):  # away at the start: its thread waits for it, as when it goes away later
            self.position = self._settled()
        self._thread = threading.Thread(target=self._read, name="tenure-feed", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End every stream; their readers come back to another server, or to this one's next life."""
        self._closing.set()
        self._is_awaited.set()
        self._news.set()
        for streams in self._streams.values():
            for stream in streams:
                stream.end()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    # --- the thread ---

    def _read(self) -> None:
        store, mark = self.engine.store, self.position
        while not self._closing.is_set():
            try:
                if mark < 0:
                    self.position = mark = self._settled()
                if not store.wait(mark, WAIT):
                    continue
                events = self._page(mark)
            except StoreError:
                self._closing.wait(AWAY)
                continue
            if not events:
                self._closing.wait(HELD_BACK)
                continue
            mark = events[-1].sequence
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._tell, events)
            if len(events) < PAGE:
                self._is_awaited.wait(LULL)

    def _page(self, mark: int) -> list[Event]:
        with self.engine.store.begin(self.engine.tenant, write=False) as tx:
            tx.lock("log", ())
            return tx.events({}, after=mark, limit=PAGE)

    def _settled(self) -> int:
        """Where the log ends; or further back, where somebody still writes before that end."""
        end = self.engine.store.mark()
        last = self._page(max(0, end - PAGE))
        return last[-1].sequence if last else end

    def _tell(self, events: Sequence[Event]) -> None:
        self.position = events[-1].sequence
        self._news.set()
        self._news = asyncio.Event()
        for listener in self.listeners:
            listener(events)
        if any(event.kind.startswith("key.") for event in events):
            for streams in self._streams.values():
                for stream in streams:
                    stream.look_up()
        if self._streams:
            for event in events:
                for stream in self._streams.get(event.project, ()):
                    stream.put(event)

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """While somebody wants to hear of each event at once."""
        self._await(1)
        try:
            yield
        finally:
            self._await(-1)

    def _await(self, more: int) -> None:
        self._waiting += more
        if self._waiting or self._closing.is_set():
            self._is_awaited.set()
        else:
            self._is_awaited.clear()

    async def beyond(self, mark: int, seconds: float) -> None:
        """Return as soon as an event beyond `mark` was handed on, or when the time is over."""
        with self.awaited(), suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.position <= mark and not self._closing.is_set():
                    await self._news.wait()

    # --- streams ---

    def subscribe(self, project: str, where: Mapping[str, Any]) -> Stream:
        stream = Stream(where)
        if self._closing.is_set():
            stream.end()
        self._streams.setdefault(project, set()).add(stream)
        self._await(1)
        return stream

    def unsubscribe(self, project: str, stream: Stream) -> None:
        streams = self._streams.get(project, set())
        if stream in streams:
            streams.remove(stream)
            self._await(-1)
        if not streams:
            self._streams.pop(project, None)


class Stream:
    """Events for one reader, as they come; asynchronous."""

    def __init__(self, where: Mapping[str, Any]) -> None:
        self._where = where
        self._events: deque[Event] = deque()
        self._news = asyncio.Event()
        self._is_over = False
        self._beats = False

    def put(self, event: Event) -> None:
        if self._is_over or not matches(event, self._where):
            return
        if len(self._events) >= MOST_BEHIND:
            self.end()
            return
        self._events.append(event)
        self._news.set()

    def end(self) -> None:
        self._is_over = True
        self._news.set()

    def look_up(self) -> None:
        """Give a sign of life now: who sends it asks first whether the reader may read on."""
        self._beats = True
        self._news.set()

    async def chunks(self, after: int) -> AsyncIterator[bytes]:
        """What was put in behind `after`, as server-sent events, until the end; and a sign of life at each beat."""
        loop = asyncio.get_running_loop()
        beat = loop.time() + BEAT
        while not self._is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(beat):
                    await self._news.wait()
            if loop.time() >= beat or self._beats:
                beat, self._beats = loop.time() + BEAT, False
                yield SIGN_OF_LIFE
            self._news.clear()
            while self._events:
                event = self._events.popleft()
                if event.sequence > after:
                    after = event.sequence
                    yield sent(event_view(event))


def sent(view: Mapping[str, Any]) -> bytes:
    """One event as a stream carries it."""
    data = msgspec.json.encode(plain(view))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (view["sequence"], str(view["kind"]).encode(), data)


def told(error: TenureError) -> bytes:
    """The last word of a stream that cannot go on."""
    return b"event: error\ndata: %s\n\n" % msgspec.json.encode({"code": error.code, "message": error.message})

"""Reads new events once for all listeners in this process: live streams, waiting claims, metrics.

One thread waits for the store and reads the new events of all tenants that this process serves; the event loop
distributes them, to each tenant's feed its own. Nothing depends on the feed being prompt: streams catch up from the log
by their cursor, and waiting claims also poll. While nobody waits the thread reads less often, since a page with one
event costs much the same as one with a hundred; after a full page it reads again at once, or it would never catch up.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from types import MappingProxyType
from typing import Any

import msgspec

from tenure.client.wire import plain
from tenure.core import limits
from tenure.core.errors import StoreError, TenureError
from tenure.core.events import STORE_KINDS, Event
from tenure.core.filters import matches
from tenure.core.records import STORE, Task
from tenure.engine import Engine
from tenure.engine.reads.event_log import event_view, tasks_of
from tenure.stores.port import Asked, Transaction

PAGE = 1000
WAIT = 0.2  # seconds between checks whether the server is closing
LULL = 0.1  # seconds between reads while nobody waits for events
HELD_BACK = 0.01  # seconds, while an event before the newest has not committed yet
RETRY = 1.0  # seconds between tries while the store is unavailable
BEAT = 15.0  # seconds between heartbeats of a silent stream: proxies keep it open, and a dead client is noticed
MOST_BEHIND = limits.STREAM_BEHIND
RECENT = 10_000  # events kept for those who wait for news of their tasks and were not waiting when they came

# What a holder reports itself: no news for it.
_OF_HOLDER = frozenset(
    {"task.claimed", "task.started", "task.progress", "task.checkpoint", "task.artifact", "task.landing"}
)


HEARTBEAT = b": heartbeat\n\n"

Listener = Callable[[Sequence[Event]], None]
Of = tuple[str, str]  # project and id of a task


class FeedReader:
    """The thread that reads the logs of one store's tenants for their feeds, in one event loop."""

    def __init__(self) -> None:
        self.closing = threading.Event()
        self.is_awaited = threading.Event()
        self._awaited = 0  # how many want events at once
        self._feeds: dict[str, Feed] = {}  # by tenant
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.loop: asyncio.AbstractEventLoop | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread with the first feed."""
        if self._thread is None:
            self.loop = loop
            self._thread = threading.Thread(target=self._read, name="tenure-feed", daemon=True)
            self._thread.start()

    def add(self, feed: Feed) -> None:
        with self._lock:
            self._feeds[feed.engine.tenant] = feed

    def remove(self, feed: Feed) -> None:
        with self._lock:
            self._feeds.pop(feed.engine.tenant, None)

    def close(self) -> None:
        self.closing.set()
        self.is_awaited.set()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def awaiting(self, more: int) -> None:
        """So many more callers want each event at once."""
        self._awaited += more
        if self._awaited or self.closing.is_set():
            self.is_awaited.set()
        else:
            self.is_awaited.clear()

    # --- the thread ---

    def _read(self) -> None:
        while not self.closing.is_set():
            with self._lock:
                feeds = list(self._feeds.values())
            try:
                changed = self._changed(feeds)
                pages = [feed.read_on() for feed in changed]
            except StoreError:
                self.closing.wait(RETRY)
                continue
            if not changed or max(pages) == PAGE:
                continue
            if not any(pages):
                self.closing.wait(HELD_BACK)
            else:
                self.is_awaited.wait(LULL)

    def _changed(self, feeds: Sequence[Feed]) -> list[Feed]:
        """The feeds with something to read; none after a while without any."""
        ends = {feed.engine.tenant: feed.end_of_log() for feed in feeds}
        behind = [feed for feed in feeds if ends[feed.engine.tenant] > feed.read_up_to]
        if not feeds:
            self.closing.wait(WAIT)
        if behind or not feeds:
            return behind
        # By the store's own marks: a wait for another one begins with a query.
        news = feeds[0].engine.store.wait(ends, WAIT)
        return [feed for feed in feeds if feed.engine.tenant in news]


class Feed:
    """The new events of one tenant. `reader`: the thread that reads for it and others; by default its own."""

    def __init__(self, engine: Engine, reader: FeedReader | None = None) -> None:
        self.engine = engine
        self.position = -1  # the last sequence that was distributed; below 0 until the store was read
        self.read_up_to = -1  # the last sequence that the thread has read
        self._end = -1  # of the log, as asked since the last page
        self.listeners: list[Listener] = []  # called in the event loop
        self._streams: dict[str, set[Stream]] = {}
        self._news = asyncio.Event()
        self._recent: deque[tuple[int, Of]] = deque()
        self._recent_since = 0  # the sequence after which `_recent` is complete
        self._by_task: dict[Of, set[asyncio.Future[None]]] = {}
        self._reader = reader or FeedReader()
        self._waiting = 0  # how many want its events at once

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        with suppress(StoreError):  # unavailable at the start: the thread retries, as it does later
            self.position = self.read_up_to = self._recent_since = self._settled()
        self._reader.add(self)
        self._reader.start(loop)

    def start_later(self, loop: asyncio.AbstractEventLoop, after: int | None = None) -> None:
        """As `start`, without a query in the event loop: the thread finds the end of the log."""
        if after is not None:
            self.position = self.read_up_to = after
        self._recent_since = 1 << 62 if after is None else after  # not known yet: who waits for a task looks itself
        self._reader.add(self)
        self._reader.start(loop)

    def leave(self) -> None:
        """Read no more for this tenant, and end its streams; the others of the thread go on."""
        self._reader.remove(self)
        self._end_streams()

    @property
    def is_used(self) -> bool:
        """Whether somebody follows or waits."""
        return bool(self._waiting or self._streams or self._by_task)

    def close(self) -> None:
        """End every stream; the readers reconnect to another server, or to this one after its restart."""
        self._reader.close()
        self._end_streams()

    def _end_streams(self) -> None:
        self._news.set()
        for waiting in self._by_task.values():
            for future in waiting:
                _resolve(future)
        for streams in self._streams.values():
            for stream in streams:
                stream.end()

    def join(self) -> None:
        self._reader.join()

    # --- for the thread ---

    def end_of_log(self) -> int:
        if self.read_up_to < 0:
            self.position = self.read_up_to = self._recent_since = self._settled()
        if self._end < 0:
            self._end = self.engine.mark()
        return self._end

    def read_on(self) -> int:
        """Read the next page and pass it to the event loop; returns its number of events."""
        self._end = -1
        events, tasks = self._page(self.read_up_to)
        if events:
            self.read_up_to = events[-1].sequence
            assert self._reader.loop is not None
            self._reader.loop.call_soon_threadsafe(self._distribute, events, tasks)
        return len(events)

    def _page(self, mark: int) -> tuple[list[Event], dict[str, Task]]:
        """Events; and their tasks, whose traces are shown, if anybody follows."""

        def read(tx: Transaction) -> tuple[list[Event], dict[str, Task]]:
            tx.expect([Asked("events", ({},), {"after": mark, "limit": PAGE})])
            events = tx.events({}, after=mark, limit=PAGE)
            return events, tasks_of(tx, events) if self._streams else {}

        return self.engine.read(read, follows=True)

    def _settled(self) -> int:
        """The end of the log, or an earlier sequence if a transaction before the end is still open."""
        end = self.engine.mark()
        last, _ = self._page(max(0, end - PAGE))
        return last[-1].sequence if last else end

    def _distribute(self, events: Sequence[Event], tasks: Mapping[str, Task] = MappingProxyType({})) -> None:
        self.position = events[-1].sequence
        self._news.set()
        self._news = asyncio.Event()
        self._note_tasks(events)
        for listener in self.listeners:
            listener(events)
        if any(event.kind.startswith(("key.", "member.")) for event in events):
            for streams in self._streams.values():
                for stream in streams:
                    stream.check()
        if self._streams:
            for event in events:
                if event.project or event.kind in STORE_KINDS:
                    for stream in self._streams.get(event.project, ()):
                        stream.put(event, tasks.get(event.task or ""))

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """While a caller wants each event at once."""
        self._await(1)
        try:
            yield
        finally:
            self._await(-1)

    def _await(self, more: int) -> None:
        self._waiting += more
        self._reader.awaiting(more)

    async def beyond(self, mark: int, seconds: float) -> bool:
        """Return when an event beyond `mark` was distributed, or after `seconds`."""
        with self.awaited(), suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.position <= mark and not self._reader.closing.is_set():
                    await self._news.wait()
        return True  # its mark is the position

    # --- news of single tasks ---

    def _note_tasks(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.task is None or event.kind in _OF_HOLDER:
                continue
            of = (event.project, event.task)
            self._recent.append((event.sequence, of))
            for future in self._by_task.get(of, ()):
                _resolve(future)
        while len(self._recent) > RECENT:
            self._recent_since = self._recent.popleft()[0]

    async def beyond_of(self, mark: int, seconds: float, project: str, tasks: Iterable[str]) -> bool:
        """Whether one of these tasks has an event beyond `mark` that its holder did not cause, within `seconds`.

        Also True where that is not known any more: the caller reads the rows anyway.
        """
        wanted = {(project, task) for task in tasks}
        recent = takewhile(lambda one: one[0] > mark, reversed(self._recent))
        if mark < self._recent_since or any(of in wanted for _, of in recent) or self._reader.closing.is_set():
            return True
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for of in wanted:
            self._by_task.setdefault(of, set()).add(future)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await future
        finally:
            for of in wanted:
                self._by_task[of].discard(future)
                if not self._by_task[of]:
                    del self._by_task[of]
        return future.done() and not future.cancelled()

    # --- streams ---

    def subscribe(self, project: str, where: Mapping[str, Any], *, store: bool = False) -> Stream:
        """The events of a project; with `store` also those of sinks and leaders, which belong to none."""
        stream = Stream(where, self.engine.tenant)
        if self._reader.closing.is_set():
            stream.end()
        for name in (project, STORE) if store else (project,):
            self._streams.setdefault(name, set()).add(stream)
        self._await(1)
        return stream

    def unsubscribe(self, project: str, stream: Stream) -> None:
        if stream in self._streams.get(project, ()):
            self._await(-1)
        for name in (project, STORE):
            streams = self._streams.get(name, set())
            streams.discard(stream)
            if not streams:
                self._streams.pop(name, None)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Stream:
    """Live events for one reader."""

    def __init__(self, where: Mapping[str, Any], tenant: str) -> None:
        self._tenant = tenant
        self._where = where
        self._events: deque[tuple[Event, Task | None]] = deque()
        self._news = asyncio.Event()
        self._is_over = False
        self._beats = False

    def put(self, event: Event, task: Task | None = None) -> None:
        if self._is_over or not matches(event, self._where):
            return
        if len(self._events) >= MOST_BEHIND:
            self.end()
            return
        self._events.append((event, task))
        self._news.set()

    def end(self) -> None:
        self._is_over = True
        self._news.set()

    def check(self) -> None:
        """Send a heartbeat now: the sender then checks whether the reader may still read."""
        self._beats = True
        self._news.set()

    async def chunks(self, after: int) -> AsyncIterator[bytes]:
        """Events after `after` as server-sent events, until the end, with heartbeats."""
        loop = asyncio.get_running_loop()
        beat = loop.time() + BEAT
        while not self._is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(beat):
                    await self._news.wait()
            if loop.time() >= beat or self._beats:
                beat, self._beats = loop.time() + BEAT, False
                yield HEARTBEAT
            self._news.clear()
            while self._events:
                event, task = self._events.popleft()
                if event.sequence > after:
                    after = event.sequence
                    yield event_message(event_view(event, task, self._tenant))


def event_message(view: Mapping[str, Any]) -> bytes:
    """One event as a server-sent event."""
    data = msgspec.json.encode(plain(view))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (view["sequence"], str(view["kind"]).encode(), data)


def error_event(error: TenureError) -> bytes:
    """The last message of a stream that cannot continue."""
    return b"event: error\ndata: %s\n\n" % msgspec.json.encode({"code": error.code, "message": error.message})

"""A bell for event loops: one thread waits for the store on behalf of all who wait, and is gone when nobody does."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from tenure.core.errors import StoreError
from tenure.stores.port import Store

SLICE = 0.2  # seconds that the thread waits at a time: who comes meanwhile is heard then
AWAY = 1.0  # between tries while the store is away


class Bell:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[asyncio.Future[None], tuple[asyncio.AbstractEventLoop, int]] = {}
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self._thread: threading.Thread | None = None

    async def wait(self, mark: int, seconds: float) -> bool:
        """True as soon as there are events beyond `mark`, False when the time is over."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._add(future, loop, mark)
        try:
            # What came before we were heard of is news too.
            if await asyncio.to_thread(self._store.mark) > mark:
                return True
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._waiting.pop(future, None)
        return True

    def close(self) -> None:
        self._is_closed.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _add(self, future: asyncio.Future[None], loop: asyncio.AbstractEventLoop, mark: int) -> None:
        with self._lock:
            self._waiting[future] = (loop, mark)
            if self._thread is None and not self._is_closed.is_set():
                self._thread = threading.Thread(target=self._listen, name="tenure-bell", daemon=True)
                self._thread.start()

    def _listen(self) -> None:
        while True:
            with self._lock:
                marks = [mark for _, mark in self._waiting.values()]
                if not marks or self._is_closed.is_set():
                    self._thread = None
                    return
            try:
                if self._store.wait(min(marks), SLICE):
                    self._ring(self._store.mark())
            except StoreError:  # whoever asks next meets it too, and is told
                self._is_closed.wait(AWAY)

    def _ring(self, reached: int) -> None:
        with self._lock:
            woken = [(future, loop) for future, (loop, mark) in self._waiting.items() if mark < reached]
            for future, _ in woken:
                del self._waiting[future]
        for future, loop in woken:
            with suppress(RuntimeError):  # its loop has ended
                loop.call_soon_threadsafe(_wake, future)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)

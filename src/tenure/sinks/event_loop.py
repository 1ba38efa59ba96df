"""One thread with one asyncio loop: sinks whose library has no other interface, async functions of a worker."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from tenure.sinks.port import SinkUnavailable

T = TypeVar("T")
SLACK = 5.0  # seconds beyond its own deadline that a coroutine may take to stop


class EventLoop:
    """The thread starts with the first use, so that a sink that is not used costs nothing."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T], timeout: float) -> T:
        """What the coroutine answers. It keeps to `timeout` itself; one that does not is cancelled a little later."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self.running())
        except RuntimeError as error:  # the interpreter ends, or the thread cannot start
            work.close()
            raise SinkUnavailable(f"{self._name}: {error}") from None
        try:
            return future.result(timeout + SLACK)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise SinkUnavailable(f"{self._name} did not answer within {timeout:g} s") from None
        except concurrent.futures.CancelledError:
            raise SinkUnavailable(f"{self._name} was closed") from None

    def close(self, last: Coroutine[Any, Any, None] | None = None, timeout: float = 2.0) -> None:
        """Run the coroutine that lets go of connections, then end the thread. Does nothing where none has started."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            if last is not None:
                last.close()
            return
        asyncio.run_coroutine_threadsafe(_end(last, timeout), loop)
        thread.join(timeout + SLACK)

    def running(self) -> asyncio.AbstractEventLoop:
        """The loop, started if it is not."""
        if self._loop is None:
            loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_serve, args=(loop,), name=f"loop of {self._name}", daemon=True)
            self._thread.start()
            self._loop = loop
        return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _end(last: Coroutine[Any, Any, None] | None, patience: float) -> None:
    loop = asyncio.get_running_loop()
    if last is not None:
        await asyncio.wait((asyncio.ensure_future(last),), timeout=patience)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    loop.stop()

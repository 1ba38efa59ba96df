"""An event loop for a worker that was started without one."""

from __future__ import annotations

import asyncio
import threading

from tenure.core import limits


class OwnLoop:
    """An event loop in its own thread, for async functions of a worker that was started without one."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="tenure-loop", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(limits.WORKER_GRACE)
        if not self._thread.is_alive():
            self.loop.close()

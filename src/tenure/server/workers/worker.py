"""What one worker has of the others, and its part that starts and stops with it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from tenure.server.process_memory import Memory
from tenure.server.requests import Receive, Send
from tenure.server.workers.peers import PeerGone, Peers, Sender
from tenure.server.workers.supervisor import Handles

REQUEST = "request"
LONGEST_PATH = 90  # characters; the address of a Unix socket has at most 104, with the worker's name


class Worker:
    """A part of the server: after its start other workers can call this one, and the parent knows that it serves."""

    def __init__(self, handles: Handles, count: int, folder: str, memory: Memory) -> None:
        self.number, self.count, self.folder, self.memory = handles.number, count, folder, memory
        self.peers = Peers(folder, handles.number, count)
        self.predecessor = handles.predecessor
        self.name = ""  # as the coordinator calls this process
        self._handles = handles
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listening: asyncio.Task[None] | None = None

    async def pass_on(self, number: int, value: Any, receive: Receive, send: Send) -> bool:
        """Have another worker answer a request; False where it has ended and nothing was sent.

        Its own answer ends with the client's connection, as if it had that itself.
        """
        if not 0 <= number < self.count:
            return False
        is_begun = False

        async def passed() -> None:
            nonlocal is_begun
            async for message in self.peers.ask(number, REQUEST, value):
                is_begun = True
                await send(message)

        passing = asyncio.ensure_future(passed())
        left = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait((passing, left), return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                passing.result()
            return True
        except PeerGone:
            if is_begun:
                raise  # the client sees by its end that the answer is not whole
            return False
        finally:
            passing.cancel()
            left.cancel()

    def answer_requests(self, take: Callable[[Any, Receive, Send], Awaitable[None]]) -> None:
        """`take` answers requests that other workers pass on."""

        async def answer(value: Any, tell: Sender, gone: asyncio.Event) -> None:
            async def receive() -> MutableMapping[str, Any]:
                await gone.wait()
                return {"type": "http.disconnect"}

            await take(value, receive, tell)

        self.peers.answers[REQUEST] = answer

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._handles.life, self._orphaned)
        self._listening = self._loop.create_task(self._listen())

    async def _listen(self) -> None:
        await self.peers.listen()
        self._handles.tell_ready(self.name)

    def _orphaned(self) -> None:
        assert self._loop is not None
        self._loop.remove_reader(self._handles.life)
        os.kill(os.getpid(), signal.SIGTERM)

    def stop(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self.peers.close)


async def _left(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


@contextmanager
def private_folder() -> Iterator[str]:
    """A folder for the workers' sockets and counts, that only this user can enter."""
    base = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="tenure-", dir="/tmp" if len(base) > LONGEST_PATH - 20 else base)  # noqa: S108 - 0700
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)

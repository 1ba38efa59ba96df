"""Calls from one worker of a server to another, over Unix sockets in a folder that only their user can enter.

A call is a name and a value; the answer is any number of values and a mark of the end. A worker that dies in the middle
leaves no mark, and the caller gets PeerGone.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

LARGEST = 1 << 26  # bytes of one value; the largest body of a request is smaller
_END: list[Any] = []
Sender = Callable[[Any], Awaitable[None]]
Handler = Callable[[Any, Sender, asyncio.Event], Awaitable[None]]  # the value, the answer, whether the caller is gone


class PeerGone(Exception):
    """The other worker has ended, or is about to start."""


class Peers:
    """One for a worker, in its event loop. `answers` has the function for each name."""

    def __init__(self, folder: str, number: int, count: int) -> None:
        self._folder, self.number, self.count = folder, number, count
        self.answers: dict[str, Handler] = {}
        self._server: asyncio.Server | None = None

    @property
    def others(self) -> list[int]:
        return [number for number in range(self.count) if number != self.number]

    async def listen(self) -> None:
        path = self._path(self.number)
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - of a worker that died; a path is a text here
        self._server = await asyncio.start_unix_server(self._accept, path)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def ask(self, number: int, name: str, value: Any = None) -> AsyncIterator[Any]:
        """The values of the answer."""
        try:
            reader, writer = await asyncio.open_unix_connection(self._path(number))
        except OSError as error:
            raise PeerGone(f"worker {number}: {error.strerror or error}") from None
        try:
            await _write(writer, [name, value])
            while (answer := await _read(reader)) != _END:
                yield answer[0]
        except (OSError, EOFError) as error:
            raise PeerGone(f"worker {number} broke off: {error}") from None
        finally:
            writer.close()

    async def ask_once(self, number: int, name: str, seconds: float, value: Any = None) -> Any:
        """The first value of the answer; None where the worker is gone, or does not answer within `seconds`."""
        with suppress(PeerGone, TimeoutError):
            async with asyncio.timeout(seconds):
                async for answer in self.ask(number, name, value):
                    return answer
        return None

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, f"worker-{number}")  # noqa: PTH118 - a socket's address is a text

    # --- answering ---

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = asyncio.Event()
        left: asyncio.Task[None] | None = None
        try:
            name, value = await _read(reader)
            left = asyncio.ensure_future(_left(reader, gone))

            async def send(answer: Any) -> None:
                await _write(writer, [answer])

            await self.answers[name](value, send, gone)
            await _write(writer, _END)
        except (OSError, EOFError):
            gone.set()
        finally:
            if left is not None:
                left.cancel()
            writer.close()


async def _left(reader: asyncio.StreamReader, gone: asyncio.Event) -> None:
    with suppress(OSError):
        await reader.read(1)
    gone.set()


async def _write(writer: asyncio.StreamWriter, value: Any) -> None:
    data = msgspec.msgpack.encode(value)
    writer.write(len(data).to_bytes(4, "big") + data)
    await writer.drain()


async def _read(reader: asyncio.StreamReader) -> Any:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > LARGEST:
        raise EOFError(f"a value of {size} bytes")
    return msgspec.msgpack.decode(await reader.readexactly(size))

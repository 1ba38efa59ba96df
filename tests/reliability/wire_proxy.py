"""Stands between workers and a PostgreSQL server, and does to their connections what networks do.

A process of its own: `python -m tests.reliability.wire_proxy SERVER_PORT SEED`. It prints the port it listens on; then
each line that it reads is the name of a fault to strike with, and it answers `hit` once it has struck a connection on
which something was under way, or `missed` when the line `never mind` comes first. It ends when its input does.

It knows the frames of PostgreSQL's messages, so that it can cut *after* the server has committed and before anybody is
told, and *before* a COMMIT that is on its way.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

HOST = "127.0.0.1"
CHUNK = 1 << 16
FAULTS = (
    "cut after the commit", "cut before the commit", "cut in a request", "reset", "half-open", "black hole", "delay",
)  # fmt: skip
HOLE = (0.2, 2.5)  # seconds
LATE = (0.02, 0.12)  # seconds a piece
LATE_PIECES = 12
WRITES = (b"INSERT", b"UPDATE", b"DELETE", b"MERGE")


class Frames:
    """Cuts a stream into messages: a letter, four bytes of length (which count themselves), the rest."""

    def __init__(self) -> None:
        self._left = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """Each message that is now complete: where it begins, counted from the beginning of `data`; letter; rest."""
        buffer, offset = self._left + data, -len(self._left)
        place = 0
        while len(buffer) >= place + 5:
            (length,) = struct.unpack_from("!I", buffer, place + 1)
            if len(buffer) < place + 1 + length:
                break
            yield offset + place, buffer[place : place + 1], buffer[place + 5 : place + 1 + length]
            place += 1 + length
        self._left = buffer[place:]


class Answers:
    """What the server says, one turn (up to ReadyForQuery) at a time."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._status = b"I"
        self._tags: list[bytes] = []
        self._failed = False
        self.is_over = True  # nothing has come since the last turn ended
        self.committed = False  # the last turn ended a transaction, and kept what it had written

    def feed(self, data: bytes) -> None:
        for _, letter, rest in self._frames.feed(data):
            self.is_over = False
            if letter == b"C":
                self._tags.append(rest.rstrip(b"\0"))
            elif letter == b"E":
                self._failed = True
            elif letter == b"Z":
                wrote_by_itself = self._status == b"I" and any(tag.startswith(WRITES) for tag in self._tags)
                self.committed = not self._failed and rest == b"I" and (b"COMMIT" in self._tags or wrote_by_itself)
                self._status, self._tags, self._failed, self.is_over = rest, [], False, True


class Questions:
    """What the client says; finds the COMMIT among it."""

    def __init__(self) -> None:
        self._frames = Frames()
        self._commits: set[bytes] = set()  # names of statements that were prepared as COMMIT
        self._started = False

    def feed(self, data: bytes) -> int | None:
        """Where in the data a COMMIT begins, if one does."""
        if not self._started:  # the first message has no letter
            self._started = True
            return None
        found = None
        for place, letter, rest in self._frames.feed(data):
            is_commit = False
            if letter == b"P":
                name, text = rest.split(b"\0")[:2]
                (self._commits.add if text.strip() == b"COMMIT" else self._commits.discard)(name)
            elif letter == b"B":
                is_commit = rest.split(b"\0")[1] in self._commits
            elif letter == b"Q":
                is_commit = rest.startswith(b"COMMIT")
            if is_commit and found is None and place >= 0:
                found = place
        return found


class Proxy:
    def __init__(self, server_port: int, seed: str) -> None:
        self.server_port = server_port
        self.dice = random.Random(seed)
        self.wanted: str | None = None
        self.is_pending = False  # a connection was chosen, and nothing has happened to it yet

    async def serve(self) -> None:
        listening = await asyncio.start_server(self._connected, HOST, 0)
        print(listening.sockets[0].getsockname()[1], flush=True)
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := (await lines.readline()).decode().strip():
            if line in FAULTS:
                self.wanted = line
            elif self.wanted is not None or self.is_pending:
                self.wanted, self.is_pending = None, False
                print("missed", flush=True)

    def take(self, fault: str) -> bool:
        """Whether this is the fault to strike with; it is struck once."""
        if self.wanted != fault:
            return False
        self.wanted = None
        return True

    def hit(self) -> None:
        print("hit", flush=True)

    async def _connected(self, from_client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        try:
            from_server, to_server = await asyncio.open_connection(HOST, self.server_port)
        except OSError:
            to_client.transport.abort()
            return
        line = Line(self, to_client, to_server)
        both = [asyncio.ensure_future(line.ask(from_client)), asyncio.ensure_future(line.answer(from_server))]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        line.cut()
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)


class Line:
    """One connection of a client, and the one to the server that stands for it."""

    def __init__(self, proxy: Proxy, to_client: asyncio.StreamWriter, to_server: asyncio.StreamWriter) -> None:
        self.proxy, self.to_client, self.to_server = proxy, to_client, to_server
        self.questions, self.answers = Questions(), Answers()
        self.is_established = False
        self.swallows = False
        self.opens = asyncio.Event()  # clear while everything is held up
        self.opens.set()
        self.late = 0  # pieces that will still be late

    async def ask(self, client: asyncio.StreamReader) -> None:
        """Hand on what the client says, until it closes or is cut off."""
        with suppress(OSError):
            while data := await client.read(CHUNK):
                commit = self.questions.feed(data)
                if self.is_established and await self._strike(data, commit):
                    return
                await self._pass(self.to_server, data)

    async def _strike(self, data: bytes, commit: int | None) -> bool:
        """What falls on a request; True where the line is cut by it."""
        proxy = self.proxy
        if commit is not None and proxy.take("cut before the commit"):
            return await self._send_and_cut(data[:commit], self.cut)
        if len(data) > 1 and proxy.take("cut in a request"):
            return await self._send_and_cut(data[: proxy.dice.randrange(1, len(data))], self.cut)
        if proxy.take("reset"):
            return await self._send_and_cut(data, self.reset)
        if proxy.take("half-open"):
            self.swallows = proxy.is_pending = True
        elif proxy.take("black hole"):
            self.opens.clear()
            asyncio.get_running_loop().call_later(proxy.dice.uniform(*HOLE), self.opens.set)
            proxy.hit()
        elif proxy.take("delay"):
            self.late = LATE_PIECES
            proxy.hit()
        return False

    async def _send_and_cut(self, data: bytes, cut: Callable[[], None]) -> bool:
        if data:
            self.to_server.write(data)
            with suppress(OSError):
                await self.to_server.drain()
            await asyncio.sleep(self.proxy.dice.choice((0.0, 0.0, 0.002)))  # the server may have begun
        cut()
        self.proxy.hit()
        return True

    async def answer(self, server: asyncio.StreamReader) -> None:
        """Hand on what the server says; while a commit is to be cut off, whole turns only."""
        proxy, held = self.proxy, b""
        with suppress(OSError):
            while data := await server.read(CHUNK):
                self.answers.feed(data)
                held += data
                if proxy.wanted == "cut after the commit" and self.is_established:
                    if not self.answers.is_over:
                        continue
                    if self.answers.committed and proxy.take("cut after the commit"):
                        part = proxy.dice.choice((0, 0, proxy.dice.randrange(len(held))))
                        self.to_client.write(held[:part])  # at most all but the last byte
                        with suppress(OSError):
                            await self.to_client.drain()
                        self.cut()
                        proxy.hit()
                        return
                self.is_established = self.is_established or self.answers.is_over
                if self.swallows:
                    if proxy.is_pending:
                        proxy.is_pending = False
                        proxy.hit()
                else:
                    await self._pass(self.to_client, held)
                held = b""

    async def _pass(self, to: asyncio.StreamWriter, data: bytes) -> None:
        if self.late > 0:
            self.late -= 1
            await asyncio.sleep(self.proxy.dice.uniform(*LATE))
        await self.opens.wait()
        to.write(data)
        await to.drain()

    def cut(self) -> None:
        """Both ends see the connection close."""
        self.to_client.close()
        self.to_server.close()

    def reset(self) -> None:
        """Both ends are told that there never was a connection."""
        for writer in (self.to_client, self.to_server):
            peer = writer.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


if __name__ == "__main__":
    asyncio.run(Proxy(int(sys.argv[1]), sys.argv[2]).serve())

"""A server that says what it is told to say, one reply a request; and clocks that no test has to wait for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

CUT = b""  # the connection ends without an answer


def reply(status: int, value: Any, *headers: str, type: str = "application/json") -> bytes:
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    head = [f"HTTP/1.1 {status} X", f"Content-Type: {type}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


def problem(status: int, code: str, *headers: str, **more: Any) -> bytes:
    told = {"status": status, "code": code, "detail": f"it is {code}", "definite": True, **more}
    return reply(status, told, *headers, type="application/problem+json")


class Stub:
    """Its replies are used up one by one; the last one stays. `requests` has the head and body of each."""

    def __init__(self, *replies: bytes) -> None:
        self.replies = list(replies)
        self.requests: list[tuple[str, bytes]] = []
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(ConnectionError), connection, connection.makefile("rb") as stream:
            while (head := self._head(stream)) is not None:
                length = next((line for line in head.split("\r\n") if line.lower().startswith("content-length:")), ":0")
                self.requests.append((head, stream.read(int(length.partition(":")[2]))))
                said = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                if said == CUT:
                    return
                connection.sendall(said)

    def _head(self, stream: Any) -> str | None:
        lines = []
        while (line := stream.readline()) not in (b"\r\n", b""):
            lines.append(line.decode())
        return "".join(lines) or None

    def hang_up(self) -> None:
        """End all connections that are idle now."""
        for connection in self._open:
            connection.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def headers(self, name: str) -> list[str]:
        """What each request has in this header."""
        return [
            line.partition(":")[2].strip()
            for head, _ in self.requests
            for line in head.split("\r\n")
            if line.lower().startswith(name.lower() + ":")
        ]

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._open:
            connection.close()


@contextmanager
def stubbed(*replies: bytes) -> Iterator[Stub]:
    stub = Stub(*replies)
    try:
        yield stub
    finally:
        stub.close()


class Time:
    """A monotonic clock that only pauses move on."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
